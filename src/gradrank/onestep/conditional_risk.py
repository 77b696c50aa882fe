"""`conditional_risk`: the test risk of ridge regression on the features of actual inner weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import at_least_zero, whole
from gradrank.onestep.arguments import checked_ridges, like
from gradrank.onestep.dependence import checked_dependence
from gradrank.onestep.deterministic_equivalent import implicit_penalty, ridgeless
from gradrank.onestep.functions import Scalar, centred
from gradrank.onestep.moments import moments
from gradrank.onestep.spiked_equivalent import SpikedEquivalent

STEPS = ("auto", "small", "large")
LARGE = (
    0.15  # |⟨v̂, w_j⟩| of a typical neuron above which the spike's coordinate is no longer seen linearly; the risk of
)
# "small" is off by about 0.8 times its square, relative
FEWEST = 4  # inputs: below, the neurons across the spike have one or two directions
NORMS = 0.05  # how far the mean of ‖w_j‖² may be from one, at which μ₁ and μ₂ are taken


@dataclass(frozen=True, eq=False)
class ConditionalRisk:
    """E(f̂ − f*)² given the weights, without label noise."""

    risk: Any  # a float where one penalty was given, else an array of shape (L,)
    step: str  # "small" or "large": the equivalent that was used
    reason: str  # why
    residual: Any  # of the equations solved, relative
    spike: float  # root mean square of ⟨v̂, w_j⟩
    dependence: float  # of the features' non-linear parts, which is neglected: 4 % of the risk at 0.3, 15 % at 0.45


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
    ‖w_j − ⟨v̂, w_j⟩v̂‖ enter, so that weights of any size are allowed. O(m³) for each evaluation of a fixed point that takes
    5 to 30 of them, and 41 more at the end; 4 s a penalty at m = 1000 on one core.

    Both take what is not linear in the features to be independent between neurons. For random rows and σ with a quadratic part
    that holds for m ≪ d². ``dependence`` of the result says how far it does, and above 0.65 weights are refused.

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
        "small", "large", or "auto": large where the root mean square of ⟨v̂, w_j⟩ is above 0.15 or the mean of ‖w_j‖² is not
        within 5 % of one; small otherwise, which then is right to 2 %, and to 5 % near these bounds.
    spike
        v, shape (d,), the direction of the spike; the first singular vector of W unless given.

    Raises
    ------
    InputError
        If a value is not usable, λ = 0 where the risk diverges (for large steps: with a number of samples within 1 %
        of the features' rank), the activation grows too fast for the stepped neurons, or the features depend on each
        other beyond their linear parts.
    ConvergenceError
        If an equation is not solved.
    """
    W = _matrix(weights)
    beta, ridges, n = _unit("direction", direction, W.shape[1]), checked_ridges(ridge), whole("n", n, 2)
    noise = at_least_zero("noise", noise)
    if step not in STEPS:
        raise unusable("step", step, f"give one of {', '.join(STEPS)}")
    sigma, target = centred(activation, "activation"), centred(teacher, "teacher")
    _, values, right = np.linalg.svd(W, full_matrices=False)
    v = right[0] if spike is None else _unit("spike", spike, W.shape[1])
    dependence = checked_dependence(W, v, sigma)
    size = float(np.sqrt(np.mean((W @ v) ** 2)))
    chosen, reason = (step, "as asked for") if step != "auto" else _choice(W, size)
    number = partial(like, ridge)
    if chosen == "small":
        risk, residual = _small(values, right @ beta, len(W), ridges, n, sigma, target, noise)
    else:
        ridges = ridgeless(ridges, moments(sigma).variance, min(W.shape) if moments(sigma).linear else len(W), n)
        risk, residual = SpikedEquivalent.of(W, beta, v, sigma, target).risks(ridges, n, noise)
    return ConditionalRisk(number(risk), chosen, reason, number(residual), size, dependence)


def _choice(W: np.ndarray, size: float) -> tuple[str, str]:
    """Return the equivalent that holds for these weights, and why."""
    seen = f"the root mean square of ⟨v̂, w_j⟩ is {size:.3g}"
    if size > LARGE:
        return "large", f"{seen}, above {LARGE}"
    square = float((W**2).sum(axis=1).mean())
    if abs(square - 1) > NORMS:
        return "large", f"the rows' mean square norm is {square:.3g}, not 1"
    return "small", f"{seen}, at most {LARGE}"


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
    array = real_array("weights", weights, "finite real numbers of shape (m, d)")
    if array.ndim != 2 or len(array) < 2 or array.shape[1] < FEWEST:
        raise InputError(
            f"weights: shape {array.shape} is not allowed; give (m, d), m at least 2 and d at least {FEWEST}"
        )
    return array


def _unit(name: str, vector: Any, d: int) -> np.ndarray:
    if vector is None:
        raise InputError(f"{name}: is missing; give a vector of shape ({d},)")
    array = real_array(name, vector, f"a finite vector of shape ({d},)")
    size = float(np.linalg.norm(array)) if array.shape == (d,) else 0.0
    if not 0 < size < math.inf:
        raise InputError(f"{name}: shape {array.shape} is not allowed or its norm is zero; give ({d},), not zero")
    return np.asarray(array / size)
