"""Activation functions σ with σ′, σ″ and E σ′(s g), each computed where it is exact."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.expectations import Expectation, gaussian_expectation
from gradrank.foundation.names import look_up
from gradrank.foundation.references import is_reference, resolve

Function = Callable[[torch.Tensor], torch.Tensor]
LEAKY_SLOPE = 0.01
GELU_SCALE = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Activation:
    """An activation σ and its derivatives, as elementwise functions of a tensor."""

    name: str
    formula: str
    value: Function
    derivative: Function
    second_derivative: Function
    breaks: tuple[float, ...] = ()  # where σ or σ′ has a kink or a jump
    smooth: bool = True  # σ ∈ C² with bounded second derivative: Theorem 3.1 of LRG asks for it
    bounded: bool = False  # σ′ vanishes at infinity: μ_j is of order one only while w_jᵀΣw_j is (assumption 4.3 of LRG)
    mean_derivative: Callable[[torch.Tensor], torch.Tensor] | None = None  # E σ′(s g) in closed form

    def expected_derivative(self, std: torch.Tensor) -> Expectation:
        """Return μ(s) = E σ′(s g), g ~ N(0, 1), for standard deviations of shape (k,), with its error."""
        s = std.detach().to("cpu", torch.float64)
        if self.mean_derivative is not None:
            value = self.mean_derivative(s)
            return Expectation(value, value.abs() * 1e-15, "closed form")
        return gaussian_expectation(self.derivative, s, breaks=self.breaks)


def _sigmoid_derivative(x: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(x)
    return s.mul(1 - s)


def _sigmoid_second(x: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(x)
    return s * (1 - s) * (1 - 2 * s)


def _tanh_derivative(x: torch.Tensor) -> torch.Tensor:
    return 1 - torch.tanh(x).square_()


def _tanh_second(x: torch.Tensor) -> torch.Tensor:
    t = torch.tanh(x)
    return -2 * t * (1 - t * t)


def _softplus(x: torch.Tensor) -> torch.Tensor:
    return functional.softplus(x, threshold=40.0)  # torch's own threshold, 20, leaves an error of e^−20


def _step(x: torch.Tensor) -> torch.Tensor:
    return (x > 0).to(x.dtype)


def _leaky_derivative(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, LEAKY_SLOPE).masked_fill_(x > 0, 1.0)


def _elu_derivative(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x.clamp(max=0))


def _elu_second(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, torch.zeros_like(x), torch.exp(x.clamp(max=0)))


def _swish_derivative(x: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))


def _swish_second(x: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def _gelu_derivative(x: torch.Tensor) -> torch.Tensor:
    return torch.add(torch.special.ndtr(x), x * torch.exp(-x * x / 2), alpha=GELU_SCALE)


def _gelu_second(x: torch.Tensor) -> torch.Tensor:
    return (2 - x * x) * torch.exp(-x * x / 2) * GELU_SCALE


def _erf_derivative(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-x * x) * (2 / math.sqrt(math.pi))


def _erf_second(x: torch.Tensor) -> torch.Tensor:
    return -2 * x * torch.exp(-x * x) * (2 / math.sqrt(math.pi))


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("sigmoid", "1/(1 + e^−x)", torch.sigmoid, _sigmoid_derivative, _sigmoid_second, bounded=True),
        Activation("tanh", "tanh x", torch.tanh, _tanh_derivative, _tanh_second, bounded=True),
        Activation(
            "relu",
            "max(x, 0)",
            torch.relu,
            _step,
            torch.zeros_like,
            (0.0,),
            smooth=False,
            mean_derivative=lambda s: torch.full_like(s, 0.5),
        ),
        Activation(
            "leaky_relu",
            "max(x, 0.01 x)",
            lambda x: functional.leaky_relu(x, LEAKY_SLOPE),
            _leaky_derivative,
            torch.zeros_like,
            (0.0,),
            smooth=False,
            mean_derivative=lambda s: torch.full_like(s, (1 + LEAKY_SLOPE) / 2),
        ),
        Activation("elu", "x for x > 0, e^x − 1 below", functional.elu, _elu_derivative, _elu_second, (0.0,)),
        Activation("swish", "x/(1 + e^−x)", functional.silu, _swish_derivative, _swish_second),
        Activation("softplus", "log(1 + e^x)", _softplus, torch.sigmoid, _sigmoid_derivative),
        Activation(
            "gelu", "x Φ(x), Φ the normal distribution function", functional.gelu, _gelu_derivative, _gelu_second
        ),
        Activation(
            "erf",
            "erf x",
            torch.erf,
            _erf_derivative,
            _erf_second,
            bounded=True,
            mean_derivative=lambda s: (2 / math.sqrt(math.pi)) / torch.sqrt(1 + 2 * s * s),
        ),
    )
}


def activation(choice: str | Function | Activation, field: str = "network.activation") -> Activation:
    """Return the activation of that name, of ``module:name``, or made from a user's elementwise function.

    Raises
    ------
    InputError
        If the name is unknown, the function cannot be imported, or it is not elementwise and differentiable.
    """
    if isinstance(choice, Activation):
        return choice
    if not isinstance(choice, str) and not callable(choice):
        raise unusable(field, choice, f"give one of {', '.join(ACTIVATIONS)}, module:name or a function of a tensor")
    if isinstance(choice, str) and not is_reference(choice):
        return look_up(field, choice, ACTIVATIONS)
    function = resolve(field, choice) if isinstance(choice, str) else choice
    name = choice if isinstance(choice, str) else getattr(function, "__name__", "user")
    if isinstance(function, Activation):
        return function
    return user_activation(function, name, field)


def user_activation(function: Function, name: str, field: str = "network.activation") -> Activation:
    """Wrap an elementwise torch function; σ′ and σ″ come from autograd.

    Nothing is assumed of its smoothness: ``smooth`` is False, since a kink cannot be seen from outside.
    """
    probe = torch.linspace(-2, 2, 5, dtype=torch.float64)
    try:
        shape = function(probe).shape
        derivative = _autograd(function)(probe)
        apart = torch.cat([function(probe[:2]), function(probe[2:])])
        elementwise = shape == probe.shape and torch.allclose(apart, function(probe), equal_nan=True)
        precisions = [function(probe.to(dtype)).dtype == dtype for dtype in (torch.float64, torch.float32)]
    except (Exception, SystemExit) as error:  # a user's function may fail in any way
        raise InputError(
            f"{field}: {name} fails on a float64 tensor ({type(error).__name__}: {error}); "
            "give a differentiable elementwise function of a torch tensor"
        ) from error
    if not all(precisions):
        raise InputError(f"{field}: {name} changes the precision of its argument; give a function that keeps the dtype")
    if not elementwise or not bool(torch.isfinite(derivative).all()):
        raise InputError(
            f"{field}: {name} is not elementwise with finite derivatives; give σ as a function of a tensor"
        )
    first = _autograd(function)
    return Activation(name, "given by the user", function, first, _autograd(first), smooth=False)


def _autograd(function: Function) -> Function:
    """Return the elementwise derivative of an elementwise function."""

    def derivative(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_(True)
            y = function(x)
            if not y.requires_grad:  # constant: autograd knows no path to x
                return torch.zeros_like(x)
            (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True)
        return torch.zeros_like(x) if slope is None else slope

    def detached(x: torch.Tensor) -> torch.Tensor:
        slope = derivative(x)
        return slope if x.requires_grad else slope.detach()

    return detached
