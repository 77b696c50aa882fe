"""What linear models reach on the same data: the bounds that a learned feature has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import at_least_zero
from gradrank.onestep.arguments import checked_ratio
from gradrank.onestep.deterministic_equivalent import peak
from gradrank.onestep.functions import centred
from gradrank.onestep.moments import moments


@dataclass(frozen=True)
class LinearRisk:
    """The risk of ridge regression on the inputs themselves, without label noise."""

    risk: float
    ridge: float  # the best one, unless it was given
    bound: float  # ‖P_{>1} f*‖², reached with infinitely many samples


def linear_bound(teacher: Any) -> float:
    """Return ‖P_{>1} f*‖² = E f*² − μ₁*²: the risk of the best linear function of x ~ N(0, I).

    With n of the order of d, kernel ridge regression with a rotation-invariant kernel, and ridge regression on random
    features or on features after a step of size Θ(1), do not get below it either, in the limit (Ba et al. 2022,
    arXiv:2205.01445; for the last two `asymptotic_risk` shows it term by term).
    """
    return moments(centred(teacher, "teacher")).mu2_squared


def linear_risk(psi1: float, teacher: Any, noise: float, ridge: float | None = None) -> LinearRisk:
    """Return the limit of the risk of min (1/n)‖y − Xw‖² + λ‖w‖² for x ~ N(0, I), n/d = ψ₁.

    What is not linear in f* acts as noise of variance μ₂*²: with κ(1 − 1/(ψ₁(1 + κ))) = λ,
    risk = [μ₂*² + μ₁*²κ²/(1 + κ)² + noise²]/(1 − 1/(ψ₁(1 + κ)²)) − noise². The best λ is (μ₂*² + noise²)/(ψ₁μ₁*²).

    Raises
    ------
    InputError
        If a value is not usable, or λ = 0 at n = d, where the risk diverges.
    """
    psi1, noise = checked_ratio("psi1", psi1), at_least_zero("noise", noise)
    target = moments(centred(teacher, "teacher"))
    if ridge is None:
        if not abs(target.mu1) > 1e-12:
            raise unusable(
                "teacher", target.function.name, "it has no linear part: the best ridge is infinite, give one"
            )
        ridge = (target.mu2_squared + noise**2) / (psi1 * target.mu1**2)
    ridge = at_least_zero("ridge", ridge)
    if ridge == 0 and psi1 == 1:
        if target.mu2_squared + noise**2 > 0:
            raise peak()
        return LinearRisk(0.0, ridge, 0.0)  # nothing is left to learn wrong
    # κ² + κ(1 − 1/ψ₁ − λ) − λ = 0
    half = (1 - 1 / psi1 - ridge) / 2
    kappa = -half + (half**2 + ridge) ** 0.5 if half <= 0 else ridge / (half + (half**2 + ridge) ** 0.5)
    bias = target.mu2_squared + target.mu1**2 * (kappa / (1 + kappa)) ** 2
    risk = (bias + noise**2) / (1 - 1 / (psi1 * (1 + kappa) ** 2)) - noise**2
    return LinearRisk(risk, ridge, target.mu2_squared)
