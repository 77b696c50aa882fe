"""`large_step_risk`: the test risk after a step of size η̃√m, as a function of ratios and moments only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import above_zero, at_least_zero
from gradrank.onestep.arguments import checked_ratio, checked_ridges, like
from gradrank.onestep.deterministic_equivalent import ridgeless
from gradrank.onestep.functions import Scalar, centred
from gradrank.onestep.moments import moments
from gradrank.onestep.spike_theory import gradient_norm
from gradrank.onestep.spiked_features import SpikedFeatures

LAWS = ("gaussian", "signs")
WEAKEST, STRONGEST = 0.1, 25.0  # of r: without a width, and what the nodes resolve
SMALLEST = 10.0  # r²d: W₀ has the component N(0, 1/d) along v̂, which the limit leaves out


@dataclass(frozen=True, eq=False)
class LargeStepRisk:
    """E(f̂ − f*)² without label noise, with the parameters of the spiked features."""

    risk: Any  # a float where one penalty was given, else an array of shape (L,)
    residual: Any  # of the fixed point, relative
    linear_bound: float  # ‖P_{>1} f*‖² = μ₂*², which this risk can go below
    strength: float  # r: ⟨v̂, w_j⟩ = r ã_j
    cosine: float  # c = ⟨v̂, β⟩
    widening: float  # τ: ‖w⊥ⱼ‖² = 1 + τ ã_j²


def spike_parameters(
    eta_tilde: float, activation: Scalar, teacher: Scalar, noise: float, psi0: float
) -> tuple[float, float, float]:
    """Return r = η̃ μ₁‖v‖, c = μ₁*/‖v‖ and τ = η̃² Var σ′(z) (E f*² + noise²)/ψ₀ (derived for this project)."""
    sigma, target = moments(activation), moments(teacher)
    size = gradient_norm(target, noise, psi0)
    if not size > 0:
        raise unusable("teacher", teacher.name, "it is constant: nothing is learned")
    widening = eta_tilde**2 * sigma.slope_variance * (target.variance + noise**2) / psi0
    return eta_tilde * sigma.mu1 * size, target.mu1 / size, widening


def large_step_risk(
    eta_tilde: float,
    ridge: Any,
    psi1: float,
    psi2: float,
    activation: Any,
    teacher: Any,
    noise: float,
    psi0: float | None = None,
    width: float | None = None,
    *,
    outer: str = "gaussian",
) -> LargeStepRisk:
    """Return the limit of the test risk of ridge regression on σ(XW₁ᵀ), W₁ = W₀ − η √m ∇L with η = η̃√m.

    The step gives neuron j the component ⟨v̂, w_j⟩ = r ã_j along the gradient's direction v̂, which meets the
    teacher at the cosine c, and lengthens the rest: ‖w⊥ⱼ‖² = 1 + τ ã_j². The features are then Gaussian given k =
    ⟨v̂, x⟩ only; see `gradrank.onestep.spiked_features` for the equations. They were derived for this project (the
    large step: Ba et al. 2022, arXiv:2205.01445; a replica result for the same limit: Cui et al. 2024,
    arXiv:2402.04980, not compared). With the width given they agree with simulations to 3 % for odd activations and
    ψ₀ ≥ 1, and to 7 % for relu at d = 400, λ = 0.01, whose mean over u feels the scatter of ‖w⊥ⱼ‖ as well. The step's part
    across v̂ counts as isotropic. With n₀ < d samples it is not: at ψ₀ = ½, erf, η̃ = 2, the limit is 7 % too low, where
    `conditional_risk` is within 2 %.

    Without a width everything that some function of k can express is learned at no cost, however weak it is in the
    features. That is far from networks of any size where r is below about ½, and for activations that are not odd: for
    relu it gives 0.074 where m = 1000 has 0.104.

    Parameters
    ----------
    eta_tilde
        η̃ > 0 of the step η = η̃√m.
    ridge
        λ ≥ 0, a number or several; 0 is the ridgeless limit, taken at 1e-9 E σ².
    psi1, psi2, psi0
        n/d, m/d, and n₀/d of the step's samples; ψ₀ = ψ₁ unless given.
    activation, teacher
        Names, ``module:name`` or functions of a tensor; both are centred.
    noise
        Standard deviation of the label noise.
    width
        m, for the leading correction of a finite width; infinite unless given.
    outer
        The law of ã_j: "gaussian", or "signs".

    Raises
    ------
    InputError
        If a value is not usable, λ = 0 where ψ₁ is within 1 % of the features' rank over d, near which the risk diverges,
        the step is too small for the width given or too large for the nodes, or the activation grows too fast.
    ConvergenceError
        If the fixed point is not reached.
    """
    psi1, psi2 = checked_ratio("psi1", psi1), checked_ratio("psi2", psi2)
    psi0 = psi1 if psi0 is None else checked_ratio("psi0", psi0)
    eta_tilde, noise = above_zero("eta_tilde", eta_tilde), at_least_zero("noise", noise)
    width = None if width is None else above_zero("width", width)
    if outer not in LAWS:
        raise unusable("outer", outer, f"give one of {', '.join(LAWS)}")
    ridges = checked_ridges(ridge)
    sigma, target = centred(activation, "activation"), centred(teacher, "teacher")
    r, c, tau = spike_parameters(eta_tilde, sigma, target, noise, psi0)
    if abs(moments(sigma).mu1) < 1e-9 * math.sqrt(moments(sigma).variance):
        raise unusable("activation", sigma.name, "E σ′(z) = 0: the first step learns no direction")
    if width is not None and r * r < SMALLEST * psi2 / width:
        raise unusable(
            "eta_tilde",
            eta_tilde,
            f"⟨v̂, w⟩ of the step, {abs(r):.2g}, is no larger than at the start for m = {width:g}; use asymptotic_risk",
        )
    if width is None and abs(r) < WEAKEST:
        raise unusable(
            "eta_tilde",
            eta_tilde,
            f"⟨v̂, w⟩ of the step is {abs(r):.2g}: an infinite width learns from it what no network does; give width, or use "
            "asymptotic_risk",
        )
    if abs(r) > STRONGEST:
        raise unusable("eta_tilde", eta_tilde, f"⟨v̂, w⟩ of the step is {abs(r):.3g}; up to {STRONGEST:g} is resolved")
    features = SpikedFeatures.of(sigma, target, r, c, tau, outer)
    rank = min(psi2, 1.0) if moments(sigma).linear else psi2
    ridges = ridgeless(ridges, moments(sigma).variance, rank, psi1)
    risk, residual = features.risks(ridges, psi1, psi2, noise, math.inf if width is None else float(width))
    number = partial(like, ridge)
    return LargeStepRisk(number(risk), number(residual), moments(target).mu2_squared, r, c, tau)
