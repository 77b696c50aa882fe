"""`conditional_risk`: the test risk of ridge regression on the features of actual inner weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import at_least_zero, whole
from gradrank.onestep.arguments import checked_ridges, like
from gradrank.onestep.deterministic_equivalent import implicit_penalty, ridgeless
from gradrank.onestep.functions import Scalar, centred
from gradrank.onestep.moments import moments
from gradrank.onestep.spiked_equivalent import SpikedEquivalent

STEPS = ("auto", "small", "large")
LARGE = 0.5  # |⟨v̂, w_j⟩| of a typical neuron above which the spike's coordinate is no longer seen linearly


@dataclass(frozen=True, eq=False)
class ConditionalRisk:
    """E(f̂ − f*)² given the weights, without label noise."""

    risk: Any  # a float where one penalty was given, else an array of shape (L,)
    step: str  # "small" or "large": the equivalent that was used
    reason: str  # why
    residual: Any  # of the equations solved, relative
    spike: float  # root mean square of ⟨v̂, w_j⟩


def conditional_risk(
    weights: Any,
    ridge: Any,
    n: int,
    activation: Any,
    teacher: Any,
    noise: float,
    direction: Any = None,
    *,
    step: str = "auto",
    spike: Any = None,
) -> ConditionalRisk:
    """Return the test risk of min (1/n)‖y − Sw‖² + λ‖w‖², S = σ(XWᵀ), y = f*(βᵀx) + noise·ε, for an actual W and fresh x ~ N(0, I).

    "small": the features are equivalent to Gaussian ones with the covariance C = μ₁² WWᵀ + μ₂² I and the covariance
    b = μ₁μ₁* Wβ with f*; μ₁ and μ₂ are those of rows of norm one, which the rows of W₀ are up to O(d^(−½)). With κ(1 − df₁/n) = λ,

        risk = [E f*² − 2bᵀ(C + κ)⁻¹b + bᵀ(C + κ)⁻¹C(C + κ)⁻¹b + noise²]/(1 − df₂/n) − noise².

    One singular value decomposition of W serves all penalties.

    "large" (steps of size √m): the features are Gaussian given the coordinate k = ⟨v̂, x⟩ of the spike only, with
    a leverage and a residual variance that depend on k; see `gradrank.onestep.spiked_equivalent`. The actual norms
    ‖w_j − ⟨v̂, w_j⟩v̂‖ enter. O(m³) for each evaluation of a fixed point that takes 5 to 30 of them, and 41 more
    at the end; 4 s a penalty at m = 1000 on one core.

    Parameters
    ----------
    weights
        W, shape (m, d): a tensor or an array.
    ridge
        λ ≥ 0, a number or several; 0 is the ridgeless limit, for large steps taken at 1e-9 E σ².
    n
        Samples of the ridge regression.
    activation, teacher
        Names, ``module:name`` or functions of a tensor; both are centred.
    noise
        Standard deviation of the label noise.
    direction
        β, shape (d,), scaled to norm one.
    step
        "small", "large", or "auto": large where the root mean square of ⟨v̂, w_j⟩ is above ½.
    spike
        v, shape (d,), the direction of the spike; the first singular vector of W unless given.

    Raises
    ------
    InputError
        If a value is not usable, or λ = 0 where the risk diverges.
    ConvergenceError
        If an equation is not solved.
    """
    W = _matrix(weights)
    beta, ridges, n = _unit("direction", direction, W.shape[1]), checked_ridges(ridge), whole("n", n, 2)
    at_least_zero("noise", noise)
    if step not in STEPS:
        raise unusable("step", step, f"give one of {', '.join(STEPS)}")
    sigma, target = centred(activation, "activation"), centred(teacher, "teacher")
    _, values, right = np.linalg.svd(W, full_matrices=False)
    v = right[0] if spike is None else _unit("spike", spike, W.shape[1])
    size = float(np.sqrt(np.mean((W @ v) ** 2)))
    chosen, reason = (step, "as asked for") if step != "auto" else _choice(size)
    number = partial(like, ridge)
    if chosen == "small":
        risk, residual = _small(values, right @ beta, len(W), ridges, n, sigma, target, noise)
    else:
        ridges = ridgeless(ridges, moments(sigma).variance, len(W), n)
        risk, residual = SpikedEquivalent.of(W, beta, v, sigma, target).risks(ridges, n, noise)
    return ConditionalRisk(number(risk), chosen, reason, number(residual), size)


def _choice(size: float) -> tuple[str, str]:
    word, chosen = ("above", "large") if size > LARGE else ("at most", "small")
    return chosen, f"the root mean square of ⟨v̂, w_j⟩ is {size:.3g}, {word} {LARGE}"


def _small(
    values: np.ndarray,
    along: np.ndarray,
    m: int,
    ridges: np.ndarray,
    n: int,
    sigma: Scalar,
    target: Scalar,
    noise: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return risk and residual from the singular values of W and β's coordinates along its right vectors."""
    of_sigma, of_target = moments(sigma), moments(target)
    rest = of_sigma.mu2_squared
    c = np.concatenate([of_sigma.mu1**2 * values**2 + rest, np.full(m - len(values), rest)])
    b = np.concatenate([of_sigma.mu1 * of_target.mu1 * values * along, np.zeros(m - len(values))])
    rank = int((c > 1e-13 * c.max()).sum()) if c.max() > 0 else 0
    found = implicit_penalty(ridges, lambda kappa: float((c / (c + kappa)).sum()) / n, float(c.sum()) / n, rank / n)
    risks = []
    for kappa in found.kappa:
        inverse = np.divide(1.0, c + kappa, out=np.zeros_like(c), where=c + kappa > 0)
        bias = of_target.variance - float((b**2 * inverse * (2 - c * inverse)).sum())
        df2 = float(((c * inverse) ** 2).sum())
        risks.append((bias + noise**2) / (1 - df2 / n) - noise**2)
    return np.array(risks), found.residual


def _matrix(weights: Any) -> np.ndarray:
    array = weights.detach().cpu().numpy() if isinstance(weights, torch.Tensor) else np.asarray(weights)
    if array.ndim != 2 or min(array.shape) < 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"weights: shape {array.shape} of {array.dtype} is not allowed; give real numbers of shape (m, d)"
        )
    if not np.isfinite(array).all():
        raise InputError("weights: an entry is NaN or infinite; give finite numbers")
    return array.astype(np.float64)


def _unit(name: str, vector: Any, d: int) -> np.ndarray:
    if vector is None:
        raise InputError(f"{name}: is missing; give a vector of shape ({d},)")
    array = vector.detach().cpu().numpy() if isinstance(vector, torch.Tensor) else np.asarray(vector, dtype=float)
    size = float(np.linalg.norm(array)) if array.shape == (d,) else math.nan
    if not 0 < size < math.inf:
        raise InputError(
            f"{name}: shape {array.shape} is not allowed or not a direction; give a finite vector of shape ({d},), not zero"
        )
    return np.asarray(array / size, dtype=np.float64)
