"""Gaussian moments of a centred function: what the one-step theory needs of an activation or a teacher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.numbers import whole
from gradrank.onestep.functions import Scalar, centred


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments over z ~ N(0, 1), by adaptive quadrature; every one with a bound on its error in ``errors``."""

    function: Scalar
    errors: dict[str, float]  # of the moments asked for so far

    @cached_property
    def mu1(self) -> float:
        """μ₁ = E z f(z), which is E f′(z)."""
        return self._moment("mu1", lambda z: z * self.function.value(z))

    @cached_property
    def variance(self) -> float:
        """E f(z)², f being centred."""
        return self._moment("variance", lambda z: self.function.value(z) ** 2)

    @property
    def mu2_squared(self) -> float:
        """μ₂² = E f² − μ₁² = ‖P_{>1} f‖²: what no linear function explains."""
        return max(self.variance - self.mu1**2, 0.0)

    @property
    def linear(self) -> bool:
        """Whether nothing but the linear part is left, up to rounding."""
        return self.mu2_squared <= 1e-13 * self.mu1**2

    @cached_property
    def slope_variance(self) -> float:
        """Var f′(z)."""
        second = self._moment("slope_variance", lambda z: self.function.derivative(z) ** 2)
        return max(second - self.mu1**2, 0.0)

    def hermite(self, order: int) -> float:
        """Return E f(z) He_k(z), which is E f⁽ᵏ⁾(z) for a smooth f."""
        order = whole("order", order, 0)
        return self._moment(f"hermite{order}", lambda z: self.function.value(z) * hermite_polynomial(z, order))

    def _moment(self, name: str, integrand: Callable[[torch.Tensor], torch.Tensor]) -> float:
        try:
            found = self.function.expectation(integrand)
        except ConvergenceError as error:
            raise InputError(
                f"{self.function.name}: the moment {name} over N(0, 1) does not exist or cannot be computed ({error}); "
                "give a function that grows slower"
            ) from None
        self.errors[name] = float(found.error[0])
        return float(found.value[0])


def hermite_polynomial(z: torch.Tensor, order: int) -> torch.Tensor:
    """Return He_k(z), the polynomial of degree k with leading coefficient 1, orthogonal over N(0, 1)."""
    before, here = torch.zeros_like(z), torch.ones_like(z)
    for k in range(order):
        before, here = here, z * here - k * before
    return here


def gaussian_moments(function: Any) -> Moments:
    """Return the moments of a function less its mean: μ₁, E f², μ₂², Var f′ and Hermite coefficients, with error estimates.

    Parameters
    ----------
    function
        A name, ``module:name`` or a function of a tensor.

    Raises
    ------
    InputError
        If there is no such function, or a moment does not exist; the latter when it is first asked for.
    """
    return moments(centred(function, "function"))


@lru_cache(maxsize=64)
def moments(function: Scalar) -> Moments:
    """Return the moments of a function; each is computed when first asked for, and kept."""
    return Moments(function, {})
