import math

import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.shifted_kernel import shifted_kernel
from gradrank.foundation.smoothing import pair_expectation

T = torch.tensor([3.0, -2.0, 0.5, 0.5], dtype=torch.float64)
S = torch.tensor([1.0, 0.7, 1.3, 1.3], dtype=torch.float64)
RHO = torch.tensor(
    [[1, 0.3, -0.5, -0.5], [0.3, 1, 0.1, 0.1], [-0.5, 0.1, 1, 1], [-0.5, 0.1, 1, 1]], dtype=torch.float64
)


def tanh_slope(x: torch.Tensor) -> torch.Tensor:
    return 1 - torch.tanh(x) ** 2


def step(x: torch.Tensor) -> torch.Tensor:
    return (x > 0.4).to(x.dtype)


@pytest.mark.parametrize("kappa", [0.0, 0.8, -2.0])
def test_one_shift_against_quadrature_of_the_shifted_functions(kappa: float) -> None:
    found = shifted_kernel(tanh_slope, tanh_slope, (), (), T, S, RHO, torch.tensor([kappa], dtype=torch.float64))
    for i in range(4):
        for k in range(4):
            exact = pair_expectation(
                lambda x, i=i: tanh_slope(kappa * T[i] + x),
                lambda x, k=k: tanh_slope(kappa * T[k] + x),
                (),
                (),
                float(S[i]),
                float(S[k]),
                1.0 if i == k else float(RHO[i, k]),
            )
            assert float(found.value[i, k]) == pytest.approx(exact, abs=1e-8)
    assert found.error <= 1e-8


def test_two_functions_and_a_jump_with_a_stated_remainder() -> None:
    kappa = 0.6
    found = shifted_kernel(step, tanh_slope, (0.4,), (), T, S, RHO, torch.tensor([kappa], dtype=torch.float64))
    for i, k in [(0, 1), (1, 0), (0, 2), (1, 2)]:
        exact = pair_expectation(
            lambda x, i=i: step(kappa * T[i] + x),
            lambda x, k=k: tanh_slope(kappa * T[k] + x),
            (0.4 - kappa * float(T[i]),),
            (),
            float(S[i]),
            float(S[k]),
            float(RHO[i, k]),
        )
        assert float(found.value[i, k]) == pytest.approx(exact, abs=1e-8)
    assert float(found.value[2, 3]) == pytest.approx(float(found.value[2, 2]), rel=1e-12)


def test_the_average_over_a_gaussian_shift_is_the_joint_expectation() -> None:
    z = torch.linspace(-9, 9, 301, dtype=torch.float64)
    weights = torch.exp(-(z**2) / 2)
    found = shifted_kernel(tanh_slope, tanh_slope, (), (), T, S, RHO, z, weights / weights.sum())
    covariance = T[:, None] * T + S[:, None] * S * RHO
    s = covariance.diagonal().sqrt()
    for i, k in [(0, 1), (0, 2), (1, 3)]:
        rho = float(covariance[i, k] / (s[i] * s[k]))
        exact = pair_expectation(tanh_slope, tanh_slope, (), (), float(s[i]), float(s[k]), rho)
        assert float(found.value[i, k]) == pytest.approx(exact, rel=1e-8)


def test_a_series_that_has_not_converged_says_so() -> None:
    s, rho = torch.full((2,), 15.0), torch.tensor([[1.0, 0.999], [0.999, 1.0]])
    found = shifted_kernel(tanh_slope, tanh_slope, (), (), torch.zeros(2), s, rho, torch.zeros(1))
    exact = pair_expectation(tanh_slope, tanh_slope, (), (), 15.0, 15.0, float(rho.double()[0, 1]))
    scale = math.sqrt(pair_expectation(lambda x: tanh_slope(x) ** 2, torch.ones_like, (), (), 15.0, 1.0, 0.0)) ** 2
    assert found.error > 1e-3
    assert abs(float(found.value[0, 1]) - exact) <= found.error * scale


def test_shapes_are_checked() -> None:
    with pytest.raises(InputError, match="shifted_kernel"):
        shifted_kernel(step, step, (), (), T[:2], S, RHO, torch.zeros(1))
