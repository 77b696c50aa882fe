import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.gaussian_kernels import Kernel, gaussian_kernel

Function = Callable[[torch.Tensor], torch.Tensor]


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tanh_slope(x: torch.Tensor) -> torch.Tensor:
    return 1 - torch.tanh(x) ** 2


def erf_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-x * x) * 2 / math.sqrt(math.pi)


def elu_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x.clamp(max=0))


def sigmoid_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * (1 - torch.sigmoid(x))


def swish_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x)))


def gelu_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def step_at(b: float) -> Function:
    return lambda x: (x > b).to(x.dtype)


def pair(f: Function, s: float, s2: float, rho: float, breaks: tuple[float, ...] = ()) -> Kernel:
    correlation = tensor(1.0, rho, rho, 1.0).reshape(2, 2)
    return gaussian_kernel(f, f, breaks, breaks, tensor(s, s2), correlation)


def trapezoid(f: Function, g: Function, s: float, s2: float, rho: float) -> float:
    """Two-dimensional trapezoidal rule: exponentially convergent for functions without breaks."""
    across = math.sqrt(1 - rho**2)
    u = torch.arange(-9, 9, 0.12 / max(1.0, s, s2), dtype=torch.float64)
    v = torch.arange(-9, 9, 0.12 / max(1.0, s2 * across), dtype=torch.float64)
    p_u, p_v = (torch.exp(-(a**2) / 2) * (a[1] - a[0]) / math.sqrt(2 * math.pi) for a in (u, v))
    return float((f(s * u) * p_u) @ g(s2 * (rho * u[:, None] + across * v)) @ p_v)


@pytest.mark.parametrize(
    ("s", "s2", "rho"),
    [(3, 3, 0.9), (5, 5, 0.98), (10, 10, 0.99), (15, 15, 0.999), (1e-3, 1e-3, 0.7), (15, 12, -0.999), (0.5, 15, 0.95)],
)
def test_tanh_where_a_short_hermite_series_fails(s: float, s2: float, rho: float) -> None:
    found = pair(tanh_slope, s, s2, rho)
    assert float(found.value[0, 1]) == pytest.approx(trapezoid(tanh_slope, tanh_slope, s, s2, rho), rel=1e-7)
    assert found.error < 1e-7


SMOOTH = {
    "sigmoid": sigmoid_slope,
    "swish": swish_slope,
    "softplus": torch.sigmoid,
    "gelu": gelu_slope,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_random_pairs_against_two_dimensional_quadrature(name: str) -> None:
    rng = np.random.default_rng(1)
    f = SMOOTH[name]
    s = torch.from_numpy(np.exp(rng.uniform(-2, 2, 12)))
    vectors = rng.standard_normal((12, 4))
    vectors[6:] *= -1
    vectors[1] = vectors[0] + 0.05 * vectors[2]
    unit = torch.from_numpy(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    found = gaussian_kernel(f, f, (), (), s, unit @ unit.T)
    for i, k in [(0, 1), (0, 7), (2, 9), (3, 4), (5, 11), (6, 10)]:
        exact = trapezoid(f, f, float(s[i]), float(s[k]), float(unit[i] @ unit[k]))
        assert float(found.value[i, k]) == pytest.approx(exact, abs=1e-8)
    for i in (0, 5):
        exact_square = integrate.quad(
            lambda u, i=i: float(f(tensor(float(s[i]) * u))[0] ** 2) * stats.norm.pdf(u),
            -10,
            10,
            epsabs=1e-12,
            limit=200,
        )[0]
        assert float(found.value[i, i]) == pytest.approx(exact_square, rel=1e-9)


def test_elu_by_quadrants() -> None:
    """A kink of σ′ at 0: SciPy integrates each quadrant, in which the integrand is smooth."""
    for s, s2, rho in [(1.0, 2.0, 0.6), (4.0, 3.0, -0.8), (2.0, 2.0, 0.97)]:
        density = stats.multivariate_normal(cov=[[s**2, s * s2 * rho], [s * s2 * rho, s2**2]]).pdf
        nodes, weights = np.polynomial.legendre.leggauss(160)
        x = 9 * s * (nodes + 1) / 2
        y = 9 * s2 * (nodes + 1) / 2
        exact = 0.0
        for a in (-1, 1):
            for b in (-1, 1):
                grid = np.stack(np.meshgrid(a * x, b * y, indexing="ij"), axis=-1)
                values = np.exp(np.minimum(grid, 0).sum(-1)) * density(grid)
                exact += 81 * s * s2 / 4 * float(weights @ values @ weights)
        assert float(pair(elu_slope, s, s2, rho, (0.0,)).value[0, 1]) == pytest.approx(exact, rel=1e-7)


def test_erf_closed_form() -> None:
    s = tensor(0.01, 0.5, 1.0, 7.0, 20.0)
    rho = torch.full((5, 5), 0.995, dtype=torch.float64)
    rho[0, 3] = rho[3, 0] = -0.5
    found = gaussian_kernel(erf_slope, erf_slope, (), (), s, rho)
    a, b = (s**2)[:, None], (s**2)[None, :]
    exact = (4 / math.pi) / torch.sqrt((1 + 2 * a) * (1 + 2 * b) - 4 * a * b * rho**2)
    off = ~torch.eye(5, dtype=torch.bool)
    assert bool(((found.value - exact).abs()[off] <= 2e-8).all())
    diagonal = (4 / math.pi) / torch.sqrt(1 + 4 * s**2)
    torch.testing.assert_close(found.value.diagonal(), diagonal, rtol=1e-11, atol=0)


@pytest.mark.parametrize("rho", [-1.0, -0.9, 0.0, 0.5, 0.999, 1 - 1e-9])
def test_jumps_against_orthant_probabilities(rho: float) -> None:
    found = pair(step_at(0.0), 0.7, 3.0, rho, (0.0,))
    assert float(found.value[0, 1]) == pytest.approx(0.5 - math.acos(rho) / (2 * math.pi), abs=1e-8)
    b = 0.8
    found = pair(step_at(b), 2.0, 2.5, rho, (b,))
    if abs(rho) < 1:
        lower = stats.multivariate_normal(cov=[[1, rho], [rho, 1]], allow_singular=True).cdf([-b / 2.0, -b / 2.5])
        assert float(found.value[0, 1]) == pytest.approx(float(lower), abs=1e-6 if rho > 0.99 else 1e-8)


def test_two_different_functions_and_their_order() -> None:
    s, rho = tensor(1.0, 2.0), tensor(1.0, 0.4, 0.4, 1.0).reshape(2, 2)
    found = gaussian_kernel(torch.sigmoid, tanh_slope, (), (), s, rho).value
    assert float(found[0, 1]) == pytest.approx(trapezoid(torch.sigmoid, tanh_slope, 1.0, 2.0, 0.4), rel=1e-8)
    assert float(found[1, 0]) == pytest.approx(trapezoid(torch.sigmoid, tanh_slope, 2.0, 1.0, 0.4), rel=1e-8)
    assert float(found[0, 0]) == pytest.approx(trapezoid(torch.sigmoid, tanh_slope, 1.0, 1.0, 1 - 1e-15), rel=1e-6)


def test_zero_standard_deviation_and_no_rows_alive() -> None:
    found = gaussian_kernel(
        torch.sigmoid, torch.sigmoid, (), (), tensor(0.0, 1.5, 0.0), torch.eye(3, dtype=torch.float64)
    )
    torch.testing.assert_close(found.value[0], tensor(0.25, 0.25, 0.25), rtol=1e-12, atol=0)
    only = gaussian_kernel(tanh_slope, tanh_slope, (), (), tensor(0.0, 0.0), torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(only.value, torch.ones(2, 2, dtype=torch.float64))


def test_structure_too_fine_is_an_error_or_right() -> None:
    def narrow(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-((300 * (x - 0.37)) ** 2))

    with pytest.raises(ConvergenceError, match="standard deviation"):
        pair(narrow, 2.0, 2.0, 0.9)


def test_shapes_are_checked() -> None:
    with pytest.raises(InputError, match="rho"):
        gaussian_kernel(torch.sigmoid, torch.sigmoid, (), (), tensor(1.0, 1.0), torch.eye(3))
    with pytest.raises(InputError, match="finite s"):
        gaussian_kernel(torch.sigmoid, torch.sigmoid, (), (), tensor(-1.0, 1.0), torch.eye(2))


def test_the_stated_error_is_not_below_the_true_one() -> None:
    s = torch.linspace(0.3, 9.0, 30, dtype=torch.float64)
    rho = torch.full((30, 30), 0.97, dtype=torch.float64)
    found = gaussian_kernel(tanh_slope, tanh_slope, (), (), s, rho)
    for i, k in [(0, 29), (28, 29), (10, 20), (0, 1)]:
        exact = trapezoid(tanh_slope, tanh_slope, float(s[i]), float(s[k]), 0.97)
        assert abs(float(found.value[i, k]) - exact) <= 3 * found.error * float(found.value.diagonal().max())
