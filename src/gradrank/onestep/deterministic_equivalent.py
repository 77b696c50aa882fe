"""The implicit penalty κ of a ridge regression: κ(1 − df₁(κ)/n) = λ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from gradrank.foundation.errors import ConvergenceError, InputError

TOLERANCE = 1e-10  # of the equation's residual, relative to the larger of λ and κ
RIDGELESS = 1e-9  # of E σ²: the penalty that stands for zero where an equation needs one
PEAK = 0.01  # relative distance of rank and samples within which it does not: the error is RIDGELESS over its square


def peak() -> InputError:
    """Return the error for λ = 0 with as many features as samples."""
    return InputError(
        "ridge: 0 is not allowed where there are as many features as samples: the risk diverges there; give one above 0"
    )


def ridgeless(ridges: np.ndarray, variance: float, features: float, samples: float) -> np.ndarray:
    """Return the penalties with 1e-9 E σ² in the place of zero, whose limit it gives to five digits.

    Parameters
    ----------
    ridges
        The penalties.
    variance
        E σ².
    features, samples
        The features' rank, and the number of samples; or both over d.

    Raises
    ------
    InputError
        For λ = 0 with as many samples as the features' rank, up to 1 %: there is no limit, or it is not resolved.
    """
    if bool((ridges == 0).any()) and abs(features - samples) < PEAK * samples:
        raise InputError(
            "ridge: 0 is not allowed where there are as many features as samples, up to 1 %: the risk diverges there; give one "
            "above 0"
        )
    return np.where(ridges == 0, RIDGELESS * variance, ridges)


@dataclass(frozen=True, eq=False)
class ImplicitPenalty:
    """The roots κ for a grid of penalties."""

    kappa: np.ndarray  # (L,)
    residual: np.ndarray  # (L,) |κ(1 − df₁/n) − λ| over the larger of λ and κ


def implicit_penalty(
    ridges: np.ndarray, df1_share: Callable[[float], float], trace_share: float, rank_share: float
) -> ImplicitPenalty:
    """Return κ ≥ λ with κ(1 − df₁(κ)/n) = λ for every λ ≥ 0; df₁(κ) = tr C(C + κ)⁻¹.

    The root is unique for λ > 0: κ ↦ κ(1 − df₁/n) is negative where df₁ > n and increasing beyond. For λ = 0 it is the solution of
    df₁(κ) = n where the features have a rank above n, and 0 where they have a lower one.

    Parameters
    ----------
    ridges
        The penalties λ, shape (L,).
    df1_share
        κ ↦ df₁(κ)/n.
    trace_share
        tr C/n, which bounds κ − λ.
    rank_share
        rank C/n.

    Raises
    ------
    InputError
        For λ = 0 where the rank equals n: the interpolation peak, at which the risk diverges.
    ConvergenceError
        If a root is not found to 1e-10.
    """
    roots = np.array([_root(float(ridge), df1_share, trace_share, rank_share) for ridge in ridges])
    shares = np.array([df1_share(root) if root > 0 else rank_share for root in roots])
    residual = np.abs(roots * (1 - shares) - ridges) / np.maximum(np.maximum(ridges, roots), np.finfo(float).tiny)
    if not bool((residual <= TOLERANCE).all()):
        worst = int(np.argmax(residual))
        raise ConvergenceError(
            f"the implicit penalty of ridge {ridges[worst]:.3g} was not found: relative residual {residual[worst]:.1e}"
        )
    return ImplicitPenalty(roots, residual)


def _root(ridge: float, df1_share: Callable[[float], float], trace_share: float, rank_share: float) -> float:
    if ridge == 0.0:
        if abs(rank_share - 1) < 1e-12:
            raise peak()
        if rank_share < 1:
            return 0.0

    def excess(log_kappa: float) -> float:
        kappa = float(np.exp(log_kappa))
        return 1 - df1_share(kappa) - ridge / kappa

    upper = np.log(ridge + trace_share) + 1e-9
    lower = np.log(ridge) - 1e-9 if ridge > 0 else upper - 1.0
    while excess(lower) > 0:
        lower -= 2.0
        if lower < -690.0:  # rounding: κ is zero for all that can be told
            return 0.0
    return float(np.exp(brentq(excess, lower, upper, xtol=1e-15, rtol=1e-15, maxiter=500)))
