import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.gaussian_kernels import gaussian_kernel
from gradrank.gradient.kernel import conditioned_kernel, derivative_kernel, scales_and_correlations
from gradrank.problem.activations import ACTIVATIONS, activation

CLOSED = ("relu", "leaky_relu", "erf")


def data(n: int = 24, d: int = 40, spike: float = 0.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, d, generator=generator, dtype=torch.float64)
    q = torch.randn(d, generator=generator, dtype=torch.float64)
    q /= q.norm()
    return X + spike * torch.randn(n, 1, generator=generator, dtype=torch.float64) * q, q


def with_special_rows(X: torch.Tensor) -> torch.Tensor:
    X = X.clone()
    X[1] = X[0]
    X[3] = 0
    X[5] = -X[4]
    X[7] = 2 * X[6]
    return X


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_against_the_table(name: str) -> None:
    X = with_special_rows(data(spike=3.0)[0])
    choice = ACTIVATIONS[name]
    found = derivative_kernel(X, choice)
    s, rho = scales_and_correlations(X)
    table = gaussian_kernel(choice.derivative, choice.derivative, choice.breaks, choice.breaks, s, rho)
    assert found.method == "closed form"
    torch.testing.assert_close(found.value, table.value, rtol=0, atol=2e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_special_rows_symmetry_and_positive_definiteness(name: str) -> None:
    X = with_special_rows(data(spike=5.0)[0])
    choice = ACTIVATIONS[name]
    found = derivative_kernel(X, choice).value
    assert torch.equal(found, found.T)
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)
    assert float(found[0, 1]) == pytest.approx(float(found[0, 0]), rel=1e-10)
    origin = choice.derivative(torch.zeros(1, dtype=torch.float64))
    s, _ = scales_and_correlations(X)
    torch.testing.assert_close(
        found[3], origin * choice.expected_derivative(s).value.where(s > 0, origin), rtol=1e-9, atol=1e-9
    )
    g = torch.linspace(-9, 9, 40001, dtype=torch.float64)
    weight = torch.exp(-(g**2) / 2) / torch.exp(-(g**2) / 2).sum()
    for i, k in [(4, 5), (6, 7)]:  # one variable and its negative or double
        sign = -1.0 if k == 5 else 1.0
        along = (choice.derivative(s[i] * g) * choice.derivative(sign * s[k] * g)) @ weight
        assert float(found[i, k]) == pytest.approx(float(along), abs=2e-4 if "relu" in name else 1e-7)
    eigenvalues = torch.linalg.eigvalsh(found)
    assert float(eigenvalues[0]) >= -1e-8 * float(eigenvalues[-1])


@pytest.mark.parametrize("name", ["tanh", "elu", "relu", "softplus"])
def test_against_a_simulation(name: str) -> None:
    X, _ = data(n=8, spike=2.0)
    choice = ACTIVATIONS[name]
    found = derivative_kernel(X, choice).value
    w = torch.randn(200_000, X.shape[1], generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    slopes = choice.derivative(w @ X.T / math.sqrt(X.shape[1]))
    mean = slopes.T @ slopes / len(w)
    spread = ((slopes**2).T @ (slopes**2) / len(w) - mean**2).clamp(min=0).sqrt() / math.sqrt(len(w))
    assert bool(((found - mean).abs() <= 4.5 * spread + 1e-12).all())


@pytest.mark.parametrize(("name", "spike"), [("tanh", 1.0), ("tanh", 15.0), ("softplus", 3.0), ("elu", 5.0)])
def test_averaging_over_a_direction_gives_the_same_kernel(name: str, spike: float) -> None:
    X, q = data(spike=spike)
    plain, averaged = derivative_kernel(X, ACTIVATIONS[name]), derivative_kernel(X, ACTIVATIONS[name], 3 * q)
    torch.testing.assert_close(plain.value, averaged.value, rtol=0, atol=2e-7)
    assert averaged.error < 1e-6
    assert "direction" in averaged.method


def test_conditioned_on_one_shift_against_a_simulation() -> None:
    X, q = data(n=6, spike=4.0)
    choice, kappa = ACTIVATIONS["tanh"], torch.tensor([0.2], dtype=torch.float64)
    found = conditioned_kernel(X, choice, q, kappa, torch.ones(1, dtype=torch.float64)).value
    w = torch.randn(200_000, 40, generator=torch.Generator().manual_seed(4), dtype=torch.float64) / math.sqrt(40)
    w += (kappa - w @ q)[:, None] * q
    slopes = choice.derivative(w @ X.T)
    mean = slopes.T @ slopes / len(w)
    spread = ((slopes**2).T @ (slopes**2) / len(w) - mean**2).clamp(min=0).sqrt() / math.sqrt(len(w))
    assert bool(((found - mean).abs() <= 4.5 * spread + 1e-12).all())


def test_a_users_activation_with_a_jump_in_its_slope() -> None:
    """σ′ = 1 + 0.3·1(x > 0.5): the kernel is 1 + 0.3 (p_i + p_k) + 0.09 p_ik with Gaussian probabilities."""
    from scipy import stats

    X, _ = data(n=6, spike=2.0)
    user = activation(lambda x: torch.where(x > 0.5, 1.3 * x - 0.15, x))
    found = derivative_kernel(X, user)
    s, rho = (a.numpy() for a in scales_and_correlations(X))
    p = stats.norm.sf(0.5 / s)
    for i, k in [(0, 1), (2, 4), (3, 5)]:
        joint = stats.multivariate_normal(cov=[[1, rho[i, k]], [rho[i, k], 1]]).cdf([-0.5 / s[i], -0.5 / s[k]])
        assert float(found.value[i, k]) == pytest.approx(1 + 0.3 * (p[i] + p[k]) + 0.09 * joint, abs=1e-7)
        assert float(found.value[i, i]) == pytest.approx(1 + 0.69 * p[i], abs=1e-8)


def test_scale_extremes_and_float32() -> None:
    X, _ = data(n=6)
    s, rho = scales_and_correlations(X * 1e-200)
    torch.testing.assert_close(s * 1e200, scales_and_correlations(X)[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(rho, scales_and_correlations(X * 1e200)[1], rtol=0, atol=1e-14)
    single = derivative_kernel(X.float(), ACTIVATIONS["tanh"]).value
    assert single.dtype == torch.float64
    np.testing.assert_allclose(single, derivative_kernel(X, ACTIVATIONS["tanh"]).value, atol=1e-6)
    mixed = derivative_kernel(torch.cat([X * 1e-3, X * 3]), ACTIVATIONS["tanh"])
    assert mixed.error < 1e-7


def test_unusable_arguments() -> None:
    X, q = data(n=4)
    for bad in (X[0], X[:0], X * torch.nan):
        with pytest.raises(InputError, match="matrix is needed"):
            derivative_kernel(bad, ACTIVATIONS["tanh"])
    for direction in (q[:3], 0 * q):
        with pytest.raises(InputError, match="direction"):
            derivative_kernel(X, ACTIVATIONS["tanh"], direction)
