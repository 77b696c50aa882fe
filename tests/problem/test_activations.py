import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from scipy import integrate

from gradrank.foundation.errors import InputError
from gradrank.problem.activations import ACTIVATIONS, Activation, activation

NAMES = sorted(ACTIVATIONS)
POINTS = torch.linspace(-6.03, 6.05, 200, dtype=torch.float64)  # no kink among them


def slopes(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x = x.clone().requires_grad_(True)
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    if not first.requires_grad:
        return first, torch.zeros_like(x)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.detach(), second


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_against_autograd(name: str) -> None:
    first, second = slopes(ACTIVATIONS[name].value, POINTS)
    # Autograd and the formula each lose a few units in the last place of numbers of order 1.
    torch.testing.assert_close(ACTIVATIONS[name].derivative(POINTS), first, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(ACTIVATIONS[name].second_derivative(POINTS), second, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_against_finite_differences(name: str) -> None:
    sigma, h = ACTIVATIONS[name], 1e-4
    first = (sigma.value(POINTS + h) - sigma.value(POINTS - h)) / (2 * h)
    second = (sigma.derivative(POINTS + h) - sigma.derivative(POINTS - h)) / (2 * h)
    # h²/6 of a third derivative below 6, and rounding 1e-15/h.
    torch.testing.assert_close(sigma.derivative(POINTS), first, rtol=0, atol=1e-8)
    torch.testing.assert_close(sigma.second_derivative(POINTS), second, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_formula(name: str) -> None:
    formulas = {
        "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
        "tanh": math.tanh,
        "relu": lambda x: max(x, 0),
        "leaky_relu": lambda x: max(x, 0.01 * x),
        "elu": lambda x: x if x > 0 else math.exp(x) - 1,
        "swish": lambda x: x / (1 + math.exp(-x)),
        "softplus": lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0),
        "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
        "erf": math.erf,
    }
    x = torch.tensor([-30.0, -3.3, -0.2, 0.0, 0.4, 2.7, 19.0, 21.0, 35.0, 50.0], dtype=torch.float64)
    exact = torch.tensor([formulas[name](float(t)) for t in x], dtype=torch.float64)
    torch.testing.assert_close(ACTIVATIONS[name].value(x), exact, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_arguments_stay_finite_and_reach_their_limits(name: str, dtype: torch.dtype) -> None:
    x, sigma = torch.tensor([-1e4, -800.0, 800.0, 1e4], dtype=dtype), ACTIVATIONS[name]
    first, second = sigma.derivative(x), sigma.second_derivative(x)
    assert first.dtype == second.dtype == dtype
    assert bool(torch.isfinite(sigma.value(x)).all())
    left = 0.01 if name == "leaky_relu" else 0.0
    right = 0.0 if sigma.bounded else 1.0
    assert first.tolist() == pytest.approx([left, left, right, right], abs=1e-12, rel=1e-6)
    assert second.tolist() == pytest.approx([0.0] * 4, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_leave_their_argument(name: str) -> None:
    x = POINTS.clone()
    for function in (ACTIVATIONS[name].value, ACTIVATIONS[name].derivative, ACTIVATIONS[name].second_derivative):
        function(x)
    assert x.equal(POINTS)


@pytest.mark.parametrize("name", NAMES)
def test_flags_say_what_the_derivatives_do(name: str) -> None:
    sigma = ACTIVATIONS[name]
    jump = float((sigma.derivative(torch.tensor([1e-9])) - sigma.derivative(torch.tensor([-1e-9]))).abs())
    assert sigma.smooth == (jump < 1e-6)
    assert sigma.bounded == (name in ("sigmoid", "tanh", "erf"))


@pytest.mark.parametrize("s", [0.2, 3.0, 30.0])
@pytest.mark.parametrize("name", NAMES)
def test_expected_derivative_against_quadrature_and_simulation(name: str, s: float) -> None:
    found = ACTIVATIONS[name].expected_derivative(torch.tensor([s], dtype=torch.float64))
    slope = ACTIVATIONS[name].derivative

    def integrand(t: float) -> float:
        density = math.exp(-((t / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
        return float(slope(torch.tensor([t], dtype=torch.float64))) * density

    edges = sorted({sign * min(e, 12 * s) for e in (1, 6, 40, 360) for sign in (-1, 1)} | {0.0})
    exact = sum(integrate.quad(integrand, lo, hi, epsabs=1e-11)[0] for lo, hi in pairwise(edges))
    assert float(found.value) == pytest.approx(exact, abs=float(found.error) + 1e-10)
    sample = slope(s * torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    # Five standard errors: 27 comparisons.
    assert abs(float(sample.mean()) - float(found.value)) < 5 * float(sample.std()) / math.sqrt(100_000)


def test_zero_standard_deviation_is_the_slope_at_zero() -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    for name in sorted(set(NAMES) - {"relu", "leaky_relu", "elu"}):
        sigma = ACTIVATIONS[name]
        assert float(sigma.expected_derivative(zero).value) == pytest.approx(float(sigma.derivative(zero)), abs=1e-13)


def test_user_function_gets_its_derivatives_from_autograd() -> None:
    sigma = activation(lambda x: torch.sin(2 * x))
    torch.testing.assert_close(sigma.derivative(POINTS), 2 * torch.cos(2 * POINTS), rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(sigma.second_derivative(POINTS), -4 * torch.sin(2 * POINTS), rtol=1e-13, atol=1e-14)
    s = torch.tensor([0.1, 0.8, 2.0], dtype=torch.float64)
    # E 2 cos(2 s g) = 2 e^{−2s²}.
    torch.testing.assert_close(sigma.expected_derivative(s).value, 2 * torch.exp(-2 * s**2), rtol=0, atol=1e-12)
    assert not sigma.smooth
    assert not sigma.derivative(POINTS).requires_grad


@pytest.mark.parametrize(
    ("function", "slope"), [(lambda x: 3 * x, 3.0), (lambda x: x, 1.0), (torch.zeros_like, 0.0)], ids=["3x", "x", "0"]
)
def test_constant_derivative(function: Callable[[torch.Tensor], torch.Tensor], slope: float) -> None:
    sigma = activation(function)
    assert bool((sigma.derivative(POINTS) == slope).all())
    assert not sigma.second_derivative(POINTS).any()
    mean = sigma.expected_derivative(torch.tensor([1.0, 20.0], dtype=torch.float64)).value
    assert mean.tolist() == pytest.approx([slope, slope], abs=1e-12)


def test_function_named_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cubes_for_a_test.py").write_text("def cube(x):\n    return x**3\n\nnumber = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    sigma = activation("cubes_for_a_test:cube")
    assert sigma.name == "cubes_for_a_test:cube"
    torch.testing.assert_close(sigma.derivative(POINTS), 3 * POINTS**2)
    torch.testing.assert_close(sigma.second_derivative(POINTS), 6 * POINTS)
    with pytest.raises(InputError, match=r"network\.activation: .*is a int"):
        activation("cubes_for_a_test:number")


def test_activation_object_passes_by_name_and_by_itself() -> None:
    own = Activation("own", "x", lambda x: x, torch.ones_like, torch.zeros_like)
    assert activation(own) is own
    assert activation("relu") is ACTIVATIONS["relu"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: torch.softmax(x, 0),
        lambda x: x - x.mean(),
        lambda x: x[:2],
        lambda x: x.cumsum(0),
        lambda x: x.abs().sqrt(),  # its slope at 0 is not finite
        lambda x: x.numpy() ** 2,
        lambda x: x + "text",
        5,
    ],
    ids=["sum", "softmax", "centred", "shorter", "cumulative", "infinite slope", "numpy", "raises", "number"],
)
def test_what_is_no_elementwise_differentiable_function_is_refused(function: object) -> None:
    with pytest.raises(InputError, match=r"^network\.activation: ") as caught:
        activation(function)
    assert "\n" not in str(caught.value)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"^network\.activation: 'sigmod' .*did you mean 'sigmoid'"):
        activation("sigmod")
