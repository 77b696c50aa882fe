"""The strength of a rank-one spike from the largest eigenvalue of a sample covariance matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_equation import Reals

MAX_STEPS = 200
CONVERGED = 1e-14
STEEP = 0.9  # least ψ′ of an outlier
DEVIATIONS = 4.0  # that it must stand above the edge


@dataclass(frozen=True)
class Outlier:
    """The population eigenvalue a of an outlier λ₁ = ψ(a)."""

    position: float  # a
    slope: float  # ψ′(a)
    error: float  # standard error of a, a √(2/(n ψ′(a)))


def find_outlier(largest: float, bulk: Reals, rows: int) -> Outlier | None:
    """Return the a beyond all τ with ψ(a) = a (1 + (1/n) Σ τ/(a − τ)) = λ₁ and ψ′(a) > 0, or None where there is none.

    ψ is convex there: Newton's iteration from a = λ₁ ≤ ψ(λ₁) falls to the root, or passes the threshold ψ′ = 0. Gaussian
    rows: λ₁ has the variance 2 a² ψ′(a)/n (Paul 2007 for equal τ; Bai and Yao 2012 for any).
    """
    top, a = float(bulk.max()), largest
    for _ in range(MAX_STEPS):
        if not a > top:
            return None
        ratio = bulk / (a - bulk)
        slope = 1.0 - float((ratio * ratio).sum()) / rows
        if slope <= 0.0:
            return None
        step = (a * (1.0 + float(ratio.sum()) / rows) - largest) / slope
        a -= step
        if abs(step) <= CONVERGED * a:
            return Outlier(a, slope, a * math.sqrt(2.0 / (rows * slope)))
    return None


def stands_off(outlier: Outlier | None, largest: float, bulk: Reals, rows: int) -> bool:
    """Return whether ψ′(a) ≥ 0.9 and λ₁ lies four standard deviations a √(2ψ′(a)/n) above the edge of the bulk's law.

    The first asks for a distance from each τ on its own, as a power law's first few stand apart from the others.
    """
    if outlier is None or outlier.slope < STEEP:
        return False
    deviation = outlier.error * outlier.slope
    return largest > SilversteinLaw(bulk, rows).upper_edge + DEVIATIONS * deviation


def strength_along_random(outlier: Outlier, bulk: Reals) -> tuple[float, float]:
    """Return s with det(a − diag(τ) − s q qᵀ) = 0, 1/s = Σ q_k²/(a − τ_k), and its standard error, q uniform on the sphere.

    q_k² = 1/d in the mean; their covariance 2/(d(d + 2)) (δ_kl − 1/d) and the error of a give that of s.
    """
    d, inverse = len(bulk), 1.0 / (outlier.position - bulk)
    strength = 1.0 / float(inverse.mean())
    from_position = strength**2 * float((inverse**2).mean()) * outlier.error
    from_direction = strength**2 * math.sqrt(2.0 / (d + 2)) * float(np.std(inverse))
    return strength, math.hypot(from_position, from_direction)


def strength_without_model(eigenvalues: Reals, rows: int, dimension: int) -> tuple[float, float] | None:
    """Return the strength of a spike and its standard error from the sample eigenvalues alone; None if none stands off.

    a = −1/m̃(λ₁) with the companion transform m̃(λ₁) = (1/n) Σ_{i ≥ 2} 1/(λ_i − λ₁) of the n eigenvalues of XXᵀ/n, zeros
    included, estimates the population eigenvalue of any bulk (Bai and Ding 2012); s = a − tr Σ̂/d to first order in Σ̂/a.
    λ₁ stands off where ψ′(a) = m̃²/m̃′ ≥ 0.9 and it exceeds λ₂ by four standard deviations.

    Parameters
    ----------
    eigenvalues
        The min(n, d) largest eigenvalues of XᵀX/n, descending, the first positive; shape (k,).
    rows, dimension
        n and d.
    """
    largest, rest = float(eigenvalues[0]), np.zeros(rows - 1)
    kept = min(len(eigenvalues) - 1, rows - 1)
    rest[:kept] = eigenvalues[1 : kept + 1]
    gaps = largest - rest
    if not bool((gaps > 0.0).all()):
        return None
    # The n − 1 terms over n − 1: an error of order 1/n, and a = λ₁ for an empty bulk.
    position = 1.0 / float((1.0 / gaps).mean())
    slope = 1.0 / (position**2 * float((gaps**-2.0).mean()))
    error = position * math.sqrt(2.0 / (rows * slope))
    if slope < STEEP or largest - float(rest[0]) < DEVIATIONS * error * slope:
        return None
    strength = position - float(rest.sum()) / dimension
    return (strength, error) if strength > 0.0 else None
