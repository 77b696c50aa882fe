"""Second moments with a common variable: against `shifted_kernel`, quadrature and simulation."""

import math

import pytest
import torch

from gradrank.foundation.shifted_kernel import shifted_kernel
from gradrank.foundation.shifted_moments import ShiftedMoments
from gradrank.foundation.smoothing import Function, pair_expectation
from gradrank.problem.activations import ACTIVATIONS

KAPPA = torch.tensor([-0.7, 0.0, 0.4], dtype=torch.float64)
TANH, RELU, ELU = (ACTIVATIONS[name] for name in ("tanh", "relu", "elu"))


def common(n: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return t, s, ρ and vectors v with s ρ s = v vᵀ."""
    generator = torch.Generator().manual_seed(seed)
    t = 3 * torch.randn(n, generator=generator, dtype=torch.float64)
    v = torch.randn(n, 4, generator=generator, dtype=torch.float64) / 2
    s = v.norm(dim=1)
    unit = v / s[:, None]
    return t, s, unit @ unit.T, v


def slope_product(x: torch.Tensor) -> torch.Tensor:
    return TANH.derivative(x) * TANH.second_derivative(x)


def simulated(
    functions: list[Function], weights: list[torch.Tensor], t: torch.Tensor, v: torch.Tensor, kappa: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean of h hᵀ over 200,000 draws and its standard error."""
    draws = 200_000
    u = torch.randn(draws, v.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    argument = kappa * t + u @ v.T
    h = sum((a * f(argument) for a, f in zip(weights, functions, strict=True)), start=torch.zeros_like(argument))
    mean = h.T @ h / draws
    return mean, ((h**2).T @ (h**2) / draws - mean**2).clamp(min=0).sqrt() / math.sqrt(draws)


@pytest.mark.parametrize("name", ["tanh", "relu", "elu", "swish"])
def test_one_function_is_the_shifted_kernel(name: str) -> None:
    """With a break the series converges algebraically: both are as good as the error they state."""
    sigma = ACTIVATIONS[name]
    t, s, rho, _ = common()
    functions = [(sigma.derivative, sigma.breaks)]
    moments = ShiftedMoments(functions, t, s, rho, KAPPA, tolerance=1e-9)
    a, ones = torch.linspace(-1, 2, 6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    largest = max(float(moments.matrix(index, [ones]).diagonal().max()) for index in range(len(KAPPA)))
    for index, kappa in enumerate(KAPPA):
        expected = shifted_kernel(
            sigma.derivative, sigma.derivative, sigma.breaks, sigma.breaks, t, s, rho, kappa, torch.ones(1)
        )
        found = moments.matrix(index, [a])
        bound = 4 * largest * (expected.error + moments.error) + 1e-12  # |a| ≤ 2
        torch.testing.assert_close(found, a[:, None] * expected.value * a, rtol=0, atol=bound)
        torch.testing.assert_close(found, found.T, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ["tanh", "relu", "elu"])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_one_function_against_a_simulation(name: str, index: int) -> None:
    sigma = ACTIVATIONS[name]
    t, s, rho, v = common(seed=2)
    ones = torch.ones(6, dtype=torch.float64)
    moments = ShiftedMoments([(sigma.derivative, sigma.breaks)], t, s, rho, KAPPA)
    mean, error = simulated([sigma.derivative], [ones], t, v, float(KAPPA[index]))
    unseen = 1e-4  # an event that never came in 200,000 draws leaves no standard error
    slack = 4.5 * error + moments.error * float(mean.diagonal().max()) + unseen * (error == 0)
    assert bool(((moments.matrix(index, [ones]) - mean).abs() <= slack).all())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_two_functions_with_a_weight_for_every_sample(sign: float) -> None:
    t, s, rho, v = common(seed=3)
    generator = torch.Generator().manual_seed(5)
    first, second = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    moments = ShiftedMoments([(TANH.derivative, ()), (slope_product, ())], t, s, rho, KAPPA)
    found = moments.matrix(2, [sign * first, second])
    mean, error = simulated([TANH.derivative, slope_product], [sign * first, second], t, v, float(KAPPA[2]))
    assert bool(((found - mean).abs() <= 4.5 * error + 1e-4 * error.max()).all())
    flipped, _ = simulated([TANH.derivative, slope_product], [-sign * first, second], t, v, float(KAPPA[2]))
    assert bool(((found - flipped).abs() > 4.5 * error).any())  # the cross term counts


def test_two_functions_against_the_product_rule() -> None:
    """E (a f + b g)ᵢ (a f + b g)ₖ term by term, each by nested quadrature."""
    t, s, rho, _ = common()
    a, b = torch.tensor([1.0, -2, 0.5, 3, 0, 1]).double(), torch.tensor([0.3, 1, -1, 0, 2, 1]).double()
    moments = ShiftedMoments([(TANH.derivative, ()), (slope_product, ())], t, s, rho, KAPPA, tolerance=1e-10)
    found, kappa = moments.matrix(0, [a, b]), float(KAPPA[0])
    for i, k in [(0, 1), (2, 5), (3, 4), (1, 1)]:
        total = 0.0
        for weight, f in ((a, TANH.derivative), (b, slope_product)):
            for weight_k, g in ((a, TANH.derivative), (b, slope_product)):
                exact = pair_expectation(
                    lambda x, f=f, i=i: f(kappa * t[i] + x),
                    lambda x, g=g, k=k: g(kappa * t[k] + x),
                    (),
                    (),
                    float(s[i]),
                    float(s[k]),
                    min(1.0, float(rho[i, k])),
                )
                total += float(weight[i] * weight_k[k]) * exact
        assert float(found[i, k]) == pytest.approx(total, abs=1e-7)


def test_duplicate_rows_share_the_diagonal() -> None:
    t, s, rho, _ = common(5)
    twice = [0, 1, 2, 3, 4, 4]
    t, s, rho = t[twice], s[twice], rho[twice][:, twice]
    for sigma in (RELU, ELU):
        ones = torch.ones(6, dtype=torch.float64)
        value = ShiftedMoments([(sigma.derivative, sigma.breaks)], t, s, rho, KAPPA).matrix(2, [ones])
        assert float(value[4, 5]) == pytest.approx(float(value[4, 4]), rel=1e-12)
        torch.testing.assert_close(value[4, :4], value[5, :4], rtol=1e-12, atol=0)
    step = ShiftedMoments([(RELU.derivative, (0.0,))], t, s, rho, KAPPA).matrix(2, [ones])
    probability = torch.special.ndtr(0.4 * t / s)  # E 1(κt + su > 0)² = P(u > −κt/s)
    torch.testing.assert_close(step.diagonal(), probability, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "relu", "elu", "softplus"])
def test_rows_without_variance_are_constants(name: str) -> None:
    """s = 0: h = f(κt), whose moments are products of means; for t = 0 too, where f may have its break."""
    sigma = ACTIVATIONS[name]
    t, s, rho, _ = common()
    s, rho, t = s.clone(), rho.clone(), t.clone()
    s[[1, 3]], t[3] = 0.0, 0.0
    rho[[1, 3]], rho[:, [1, 3]] = 0.0, 0.0
    rho.fill_diagonal_(1.0)
    value = ShiftedMoments([(sigma.derivative, sigma.breaks)], t, s, rho, KAPPA).matrix(
        0, [torch.ones(6, dtype=torch.float64)]
    )
    fixed = sigma.derivative(KAPPA[0] * t[[1, 3]])
    u = torch.linspace(-9, 9, 200_001, dtype=torch.float64)
    weight = torch.exp(-(u**2) / 2) / torch.exp(-(u**2) / 2).sum()
    for i in (0, 2, 4):
        mean = float(sigma.derivative(KAPPA[0] * t[i] + s[i] * u) @ weight)
        torch.testing.assert_close(value[i, [1, 3]], fixed * mean, rtol=0, atol=5e-5)
    torch.testing.assert_close(value[[1, 3], [1, 3]], fixed**2, rtol=1e-12, atol=0)
    assert float(value[1, 3]) == pytest.approx(float(fixed.prod()), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("name", "spread"), [("relu", 1.0), ("elu", 1.0), ("tanh", 6.0)])
def test_the_stated_error_bounds_the_true_one(name: str, spread: float) -> None:
    """Loose and tight tolerance: the difference of the matrices is the loose one's error, but for the tight one's."""
    sigma = ACTIVATIONS[name]
    t, s, rho, _ = common(12, seed=4)
    rho = (0.9 * rho + 0.1 * torch.ones(12, 12)).fill_diagonal_(1.0)
    functions = [(sigma.derivative, sigma.breaks)]
    ones = torch.ones(12, dtype=torch.float64)
    loose = ShiftedMoments(functions, t, spread * s, rho, KAPPA, tolerance=0.05)
    tight = ShiftedMoments(functions, t, spread * s, rho, KAPPA, tolerance=1e-14)
    assert tight.error < 0.2 * loose.error
    matrices = [(loose.matrix(index, [ones]), tight.matrix(index, [ones])) for index in range(3)]
    size = max(float(exact.diagonal().max()) for _, exact in matrices)
    worst = max(float((rough - exact).abs().max()) for rough, exact in matrices) / size
    assert 1e-9 < worst <= loose.error + tight.error + 1e-12


def test_the_stated_error_covers_the_product_of_two_functions() -> None:
    """f lives on the first sample, g on the second: neither E f f nor E g g has a remainder, E f g has."""
    t, s = torch.tensor([0.0, 8.0], dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    rho = torch.tensor([[1.0, -0.995], [-0.995, 1.0]], dtype=torch.float64)

    def left(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-((x / 0.1) ** 2))

    def right(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-(((x - 8.0) / 0.1) ** 2))

    moments = ShiftedMoments([(left, ()), (right, ())], t, s, rho, torch.ones(1, dtype=torch.float64))
    one = torch.tensor([1.0, 0.0], dtype=torch.float64)
    found = float(moments.matrix(0, [one, 1 - one])[0, 1])
    # E exp(−(u² + v²)/h²) = det(1 + 2Σ/h²)^(−½) for correlated standard normals.
    sigma = torch.eye(2, dtype=torch.float64) + 2 / 0.01 * rho
    exact = float(torch.linalg.det(sigma)) ** -0.5
    size = float(moments.matrix(0, [one, one]).diagonal().max())
    assert abs(found - exact) / size <= moments.error
    assert moments.error > 1e-4
