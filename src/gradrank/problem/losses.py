"""Losses ℓ(f, y) with the residue r = ∂ℓ/∂f."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import look_up
from gradrank.foundation.references import is_reference, resolve

PairFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss per sample and its derivative by the output f, as elementwise functions of (f, y)."""

    name: str
    formula: str
    value: PairFunction
    residue: PairFunction


def _log_cosh(f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(f - y, y - f) - math.log(2.0)


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("mse", "½ (f − y)²", lambda f, y: 0.5 * (f - y) ** 2, lambda f, y: f - y),
        Loss(
            "logistic",
            "log(1 + e^(−y f))",
            lambda f, y: functional.softplus(-y * f, threshold=40.0),
            lambda f, y: -y * torch.sigmoid(-y * f),
        ),
        Loss(
            "huber",
            "½ u² for |u| ≤ 1, |u| − ½ beyond; u = f − y",
            lambda f, y: functional.huber_loss(f, y, reduction="none"),
            lambda f, y: (f - y).clamp(-1.0, 1.0),
        ),
        Loss("log-cosh", "log cosh(f − y)", _log_cosh, lambda f, y: torch.tanh(f - y)),
        Loss(
            "squared-hinge",
            "max(0, 1 − y f)²",
            lambda f, y: torch.relu(1 - y * f) ** 2,
            lambda f, y: -2 * y * torch.relu(1 - y * f),
        ),
    )
}


def loss(choice: str | PairFunction | Loss, field: str = "loss") -> Loss:
    """Return the loss of that name, of ``module:name``, or made from a user's function ℓ(f, y).

    A user's function is elementwise; its residue comes from autograd. Logistic and squared hinge take any real label.

    Raises
    ------
    InputError
        If the name is unknown, the function cannot be imported, or it is not elementwise and differentiable.
    """
    if isinstance(choice, Loss):
        return choice
    if not isinstance(choice, str) and not callable(choice):
        raise unusable(field, choice, f"give one of {', '.join(LOSSES)}, module:name or a function of two tensors")
    if isinstance(choice, str) and not is_reference(choice):
        return look_up(field, choice, LOSSES)
    function = resolve(field, choice) if isinstance(choice, str) else choice
    name = choice if isinstance(choice, str) else getattr(function, "__name__", "user")
    return function if isinstance(function, Loss) else _user_loss(function, name, field)


def _user_loss(function: PairFunction, name: str, field: str) -> Loss:
    def residue(f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            f = f.detach().requires_grad_(True)
            return torch.autograd.grad(function(f, y).sum(), f)[0]

    probe = torch.linspace(-2, 2, 5, dtype=torch.float64)
    try:
        f, y = probe, probe.flip(0)
        whole, slope = function(f, y), residue(f, y)
        apart = torch.cat([function(f[:2], y[:2]), function(f[2:], y[2:])]) if whole.shape == f.shape else whole
        elementwise = whole.shape == f.shape and torch.allclose(apart, whole, equal_nan=True)
    except (Exception, SystemExit) as error:  # a user's function may fail in any way
        raise InputError(
            f"{field}: {name} fails on two float64 tensors ({type(error).__name__}: {error}); "
            "give a differentiable function of outputs f and labels y, elementwise"
        ) from error
    if not elementwise or not bool(torch.isfinite(slope).all()):
        raise InputError(
            f"{field}: {name} is not elementwise with finite derivatives; give ℓ(f, y), one value per sample"
        )
    return Loss(name, "given by the user", function, residue)
