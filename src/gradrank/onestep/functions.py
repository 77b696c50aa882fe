"""Activations and teachers, centred: E f(z) = 0 for z ~ N(0, 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from gradrank.foundation.errors import ConvergenceError, InputError, unusable
from gradrank.foundation.expectations import Expectation, gaussian_expectation
from gradrank.foundation.names import allowed_names
from gradrank.foundation.references import is_reference
from gradrank.problem.activations import ACTIVATIONS, Activation, activation, user_activation
from gradrank.problem.targets import LINKS


@dataclass(frozen=True, eq=False)
class Scalar:
    """A centred function of one variable with its derivative."""

    name: str
    raw: Activation  # as it was given
    mean: float  # E f(z) of the function given, subtracted

    @property
    def breaks(self) -> tuple[float, ...]:
        """Where the function or its derivative has a kink or a jump, as far as that is known."""
        return self.raw.breaks

    def value(self, x: torch.Tensor) -> torch.Tensor:
        """Return f(x) − E f(z)."""
        return self.raw.value(x) - self.mean

    def derivative(self, x: torch.Tensor) -> torch.Tensor:
        """Return f′(x)."""
        return self.raw.derivative(x)

    def activation(self) -> Activation:
        """Return it as an activation of a network."""
        return replace(self.raw, value=self.value)

    def expectation(self, weighted: Callable[[torch.Tensor], torch.Tensor]) -> Expectation:
        """Return E weighted(z), z ~ N(0, 1), by adaptive quadrature that knows this function's kinks."""
        return gaussian_expectation(weighted, torch.ones(1, dtype=torch.float64), breaks=self.breaks)


def centred(choice: Any, field: str) -> Scalar:
    """Return the function of that name, of ``module:name``, or a user's function of a tensor, less its mean E f(z).

    Names are those of the activations and of the target links; "relu" means relu − 1/√(2π).

    Raises
    ------
    InputError
        If there is no such function, it is not elementwise and differentiable, or E f(z) does not exist.
    """
    if isinstance(choice, Scalar):
        return choice
    if isinstance(choice, str) and not is_reference(choice):
        return _named(choice, field)
    return _centred(activation(choice, field), field)


@lru_cache(maxsize=64)
def _named(name: str, field: str) -> Scalar:
    if name in ACTIVATIONS:
        return _centred(ACTIVATIONS[name], field)
    if name not in LINKS:
        known = [*ACTIVATIONS, *(link for link in LINKS if link not in ACTIVATIONS)]
        raise unusable(field, name, f"{allowed_names(name, known)}, module:name or a function of a tensor")
    return _centred(user_activation(LINKS[name], name, field), field)


def _centred(raw: Activation, field: str) -> Scalar:
    whole = Scalar(raw.name, raw, 0.0)
    try:
        mean = float(whole.expectation(raw.value).value[0])
    except ConvergenceError as error:
        raise InputError(
            f"{field}: {raw.name} has no mean over N(0, 1) ({error}); give a function that grows slower"
        ) from None
    return replace(whole, mean=mean)
