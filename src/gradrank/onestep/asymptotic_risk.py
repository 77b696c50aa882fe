"""`asymptotic_risk`: the test risk after no step or one of size Θ(1), as a function of ratios and moments only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import at_least_zero
from gradrank.onestep.arguments import checked_ratio, checked_ridges, like
from gradrank.onestep.deterministic_equivalent import implicit_penalty, ridgeless
from gradrank.onestep.functions import centred
from gradrank.onestep.moments import Moments, moments
from gradrank.onestep.spike_theory import gradient_norm

Number = Any  # a float where one penalty was given, else an array of shape (L,)
WIDEST = 1e11  # ψ₂: beyond, the risk was off by 1 %


@dataclass(frozen=True, eq=False)
class AsymptoticRisk:
    """E(f̂ − f*)² without label noise, and what it is made of."""

    risk: Number
    bias: Number  # of the estimator that the penalty κ gives with infinitely many samples
    variance: Number  # risk − bias
    improvement: Number  # δ = risk at η = 0 less risk, at least 0
    linear_bound: float  # ‖P_{>1} f*‖² = μ₂*², below which neither this risk nor a linear model gets
    kappa: Number  # implicit penalty
    df2_share: Number  # df₂/n; the variance factor is 1/(1 − df₂/n)
    residual: Number  # of the equation for κ, relative


def asymptotic_risk(
    eta: float,
    ridge: Any,
    psi1: float,
    psi2: float,
    activation: Any,
    teacher: Any,
    noise: float,
    psi0: float | None = None,
) -> AsymptoticRisk:
    """Return the limit of the test risk of ridge regression on σ(XW₁ᵀ), n, d, m → ∞ with n/d = ψ₁, m/d = ψ₂.

    W₁ = W₀ − η √m ∇L with η = Θ(1) (Ba et al. 2022, arXiv:2205.01445), min (1/n)‖y − Sw‖² + λ‖w‖² on fresh samples, S not
    normalised: a penalty on Φ = S/√m of λ′‖a‖² is λ = mλ′. The features are equivalent to Gaussian ones with the covariance
    C = μ₁² W₁W₁ᵀ + μ₂² I and covariance b = μ₁μ₁* W₁β with f*. With ω = (μ₂² + κ)/μ₁²,

        m(ω) = lim (1/d) tr(W₀ᵀW₀ + ω)⁻¹,     S(ω) = m − θ₂²m²/(1 + m + θ₁²m) = lim βᵀ(W₁ᵀW₁ + ω)⁻¹β,
        κ(1 − df₁/n) = λ,     risk = {μ₂*² + noise² + μ₁*² [ωS − (κ/μ₁²)(S + ωS′)]}/(1 − df₂/n) − noise²,

    derived for this project and checked against simulation. The improvement over η = 0 is never negative, and the risk never below
    ‖P_{>1} f*‖². The activation is centred; its even part acts as noise, since W₁'s rows keep their norms in the limit.

    Parameters
    ----------
    eta
        Size of the step, at least 0; infinity gives the limit of large η within this formula.
    ridge
        λ ≥ 0, a number or several; 0 is the ridgeless limit, for a linear activation with ψ₂ ≤ 1 taken at 1e-9 E σ².
    psi1, psi2, psi0
        n/d, m/d, and n₀/d of the step's samples; ψ₀ = ψ₁ unless given.
    activation, teacher
        Names, ``module:name`` or functions of a tensor; both are centred.
    noise
        Standard deviation of the label noise.

    Raises
    ------
    InputError
        If a value is not usable, the activation has μ₁ = 0, or λ = 0 at n = m, where the risk diverges.
    ConvergenceError
        If the equation for κ is not solved to 1e-10.
    """
    psi1, psi2 = checked_ratio("psi1", psi1), checked_ratio("psi2", psi2)
    psi0 = psi1 if psi0 is None else checked_ratio("psi0", psi0)
    if psi2 > WIDEST:
        raise unusable("psi2", psi2, f"give at most {WIDEST:g}: beyond, the spectrum of the features loses its digits")
    noise = at_least_zero("noise", noise)
    eta = math.inf if isinstance(eta, (float, np.floating)) and eta == math.inf else at_least_zero("eta", eta)
    ridges = checked_ridges(ridge)
    sigma, target = moments(centred(activation, "activation")), moments(centred(teacher, "teacher"))
    if abs(sigma.mu1) < 1e-9 * math.sqrt(sigma.variance or 1.0):
        raise unusable(
            "activation", sigma.function.name, "E σ′(z) = 0: the features hold nothing linear; give one with E σ′ ≠ 0"
        )
    bulk = _Bulk(sigma.mu1**2, sigma.mu2_squared, psi1, psi2)
    if bulk.linear and psi2 <= 1:  # ω would be zero
        ridges = ridgeless(ridges, sigma.variance, psi2, psi1)
    rank = (min(psi2, 1.0) if bulk.linear else psi2) / psi1
    found = implicit_penalty(ridges, bulk.df1_share, psi2 * sigma.variance / psi1, rank)
    df2 = np.array([bulk.df2_share(kappa) for kappa in found.kappa])
    bias, learned = (
        np.array(v) for v in zip(*map(partial(_bias, bulk, target, eta, noise, psi0), found.kappa), strict=True)
    )
    improvement = learned / (1 - df2)
    risk = (bias + noise**2) / (1 - df2) - noise**2
    number = partial(like, ridge)
    return AsymptoticRisk(
        risk=number(risk),
        bias=number(bias),
        variance=number(risk - bias),
        improvement=number(improvement),
        linear_bound=target.mu2_squared,
        kappa=number(found.kappa),
        df2_share=number(df2),
        residual=number(found.residual),
    )


@dataclass(frozen=True)
class _Bulk:
    """The spectrum of C without its spike: μ₁² W₀W₀ᵀ + μ₂² I."""

    slope: float  # μ₁²
    rest: float  # μ₂²
    psi1: float
    psi2: float

    @property
    def linear(self) -> bool:
        return self.rest <= 1e-13 * self.slope  # as Moments.linear

    def df1_share(self, kappa: float) -> float:
        m, _ = transform(self.omega(kappa), self.psi2)
        return (self.psi2 - kappa * m / self.slope - (self.psi2 - 1) * self.share(kappa)) / self.psi1

    def df2_share(self, kappa: float) -> float:
        m, slope = transform(self.omega(kappa), self.psi2)
        kept = 1 - self.share(kappa)
        within = 1 - 2 * kappa * m / self.slope - kappa**2 * slope / self.slope**2
        return (within + (self.psi2 - 1) * kept**2) / self.psi1

    def omega(self, kappa: float) -> float:
        return (self.rest + kappa) / self.slope

    def share(self, kappa: float) -> float:
        """κ/(μ₂² + κ): what the penalty leaves out in a direction of the least variance."""
        return 1.0 if self.linear else kappa / (self.rest + kappa)


def transform(omega: float, psi2: float) -> tuple[float, float]:
    """Return m(ω) = lim (1/d) tr(W₀ᵀW₀ + ω)⁻¹ and m′(ω), W₀ of shape (ψ₂d, d) with N(0, 1/d) entries: ωm² + (ω + ψ₂ − 1)m = 1."""
    p = omega + psi2 - 1
    D = math.sqrt(p * p + 4 * omega)
    m = 2 / (p + D) if p >= 0 else (D - p) / (2 * omega)
    return m, -(m + m * m) / D


def _bias(bulk: _Bulk, target: Moments, eta: float, noise: float, psi0: float, kappa: float) -> tuple[float, float]:
    """Return the bias, and what the step has taken off it."""
    omega, ratio, linear = bulk.omega(kappa), kappa / bulk.slope, target.mu1**2
    m, slope = transform(omega, bulk.psi2)
    gain, gain_slope = _gain(m, slope, eta, bulk, target, noise, psi0)
    S, S_slope = m - gain, slope - gain_slope
    bias = target.mu2_squared + linear * (omega * S - ratio * (S + omega * S_slope))
    taken = linear * (bulk.rest / bulk.slope * gain - omega * ratio * gain_slope)
    return bias, taken


def _gain(
    m: float, slope: float, eta: float, bulk: _Bulk, target: Moments, noise: float, psi0: float
) -> tuple[float, float]:
    """Return θ₂²m²/(1 + m + θ₁²m), by which the spike lowers βᵀ(W₁ᵀW₁ + ω)⁻¹β, and its derivative by ω."""
    square = gradient_norm(target, noise, psi0) ** 2
    t = eta * eta * bulk.slope * square if square > 0 else 0.0  # θ₁²
    if t == 0:
        return 0.0, 0.0
    cosine, u = target.mu1**2 / square, 1 / t  # cosine is (θ₂/θ₁)²
    if u > 1:
        below = 1 + m * (1 + t)
        return cosine * t * m * m / below, cosine * t * m * (2 + m * (1 + t)) / below**2 * slope
    below = m + (1 + m) * u  # the same, divided by t: η may be infinite
    return cosine * m * m / below, cosine * m * (m + (2 + m) * u) / below**2 * slope
