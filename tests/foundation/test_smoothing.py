import math

import pytest
import torch
from scipy import special

from gradrank.foundation.smoothing import find_breaks, pair_expectation, smoothed


def step(x: torch.Tensor) -> torch.Tensor:
    return (x > 0.7).to(x.dtype)


@pytest.mark.parametrize("std", [0.0, 1e-3, 1.0, 40.0])
def test_smoothed_step_and_bump(std: float) -> None:
    y = torch.tensor([-3.0, 0.69, 0.0, 5.0], dtype=torch.float64)
    if std > 0:
        exact = torch.from_numpy(special.ndtr((y.numpy() - 0.7) / std))
        torch.testing.assert_close(smoothed(step, (0.7,), y, std), exact, rtol=0, atol=1e-13)
    bump = smoothed(lambda x: torch.exp(-x * x), (), y, std)
    widened = 1 + 2 * std**2
    torch.testing.assert_close(bump, torch.exp(-(y**2) / widened) / math.sqrt(widened), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("rho", [-1.0, -0.99, 0.0, 0.3, 1 - 1e-8, 1.0])
def test_pair_expectation_closed_forms(rho: float) -> None:
    def bump(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-x * x)

    for s, s2 in [(1.0, 1.0), (12.0, 0.3), (9.0, 11.0)]:
        determinant = (1 + 2 * s * s) * (1 + 2 * s2 * s2) - 4 * (s * s2 * rho) ** 2
        assert pair_expectation(bump, bump, (), (), s, s2, rho) == pytest.approx(determinant**-0.5, rel=1e-9)

    def positive(x: torch.Tensor) -> torch.Tensor:
        return (x > 0).to(x.dtype)

    expected = 0.5 - math.acos(rho) / (2 * math.pi)
    assert pair_expectation(positive, positive, (0.0,), (0.0,), 2.0, 3.0, rho) == pytest.approx(expected, abs=1e-10)


def test_breaks_are_found_where_they_are_and_only_there() -> None:
    assert find_breaks(torch.tanh, 20.0) == ()
    assert find_breaks(torch.sigmoid, 200.0) == ()
    assert find_breaks(lambda x: step(x) + torch.tanh(x), 20.0) == pytest.approx((0.7,), abs=1e-9)
    assert find_breaks(lambda x: x.clamp(-1, 1), 20.0) == pytest.approx((-1.0, 1.0), abs=1e-6)
    assert find_breaks(torch.zeros_like, 20.0) == ()
