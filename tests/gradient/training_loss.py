"""The training loss written out in torch, apart from the library: autograd of it is what the parts must add up to."""

import math
from collections.abc import Callable

import torch
from torch.func import grad, vmap

from gradrank.problem.draw import Draw

Function = Callable[[torch.Tensor], torch.Tensor]
PairFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def wavy(t: torch.Tensor) -> torch.Tensor:
    return t + torch.sin(t) / 2


def quartic(f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (f - y) ** 4 / 4 + (f - y) ** 2


ACTIVATIONS: dict[str, Function] = {
    "sigmoid": lambda t: (1 + torch.tanh(t / 2)) / 2,
    "tanh": torch.tanh,
    "relu": lambda t: (t + t.abs()) / 2,
    "leaky_relu": lambda t: torch.where(t > 0, t, 0.01 * t),
    "elu": lambda t: torch.where(t > 0, t, torch.expm1(t.clamp(max=0))),
    "swish": lambda t: t * (1 + torch.tanh(t / 2)) / 2,
    "softplus": lambda t: torch.logaddexp(t, torch.zeros_like(t)),
    "gelu": lambda t: t * (1 + torch.erf(t / math.sqrt(2))) / 2,
    "erf": torch.erf,
    "user": wavy,
}
LOSSES: dict[str, PairFunction] = {
    "mse": lambda f, y: (f - y) ** 2 / 2,
    "logistic": lambda f, y: torch.logaddexp(-y * f, torch.zeros_like(f)),
    "huber": lambda f, y: torch.where((f - y).abs() <= 1, (f - y) ** 2 / 2, (f - y).abs() - 0.5),
    "log-cosh": lambda f, y: torch.logaddexp(f - y, y - f) - math.log(2),
    "squared-hinge": lambda f, y: (1 - y * f).clamp(min=0) ** 2,
    "user": quartic,
}


def jacobian_penalty(W: torch.Tensor, draw: Draw, activation: str) -> torch.Tensor:
    """Return (λ/2n) Σ_i ‖∂f(x_i)/∂W‖_F² with the Jacobians of torch.func."""
    sigma, a, gamma = ACTIVATIONS[activation], draw.network.a, draw.network.gamma

    def output(weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return gamma * (a @ sigma(weights @ x))

    jacobians = vmap(grad(output), in_dims=(None, 0))(W, draw.X)
    return draw.regularisers.jacobian / 2 * jacobians.square().sum() / len(draw.X)


def training_loss(W: torch.Tensor, draw: Draw, activation: str, loss: str) -> torch.Tensor:
    """Return (1/n) Σ ℓ(f(x_i), y_i) + λ/2 ‖W‖² + (λ/2n) Σ ‖∂f(x_i)/∂W‖²."""
    f = draw.network.gamma * (ACTIVATIONS[activation](draw.X @ W.T) @ draw.network.a)
    value = LOSSES[loss](f, draw.y).mean() + draw.regularisers.weight_decay / 2 * W.square().sum()
    return value + jacobian_penalty(W, draw, activation) if draw.regularisers.jacobian else value


def gradient(draw: Draw, activation: str, loss: str) -> torch.Tensor:
    """Return the gradient by autograd, shape (d, m)."""
    return grad(training_loss)(draw.network.W, draw, activation, loss).T


def frobenius(matrix: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix.double()))
