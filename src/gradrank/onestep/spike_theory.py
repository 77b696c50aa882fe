"""The spike of the inner weights after one step of size Θ(1), and how many spikes a larger one leaves in the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import at_least_zero, finite
from gradrank.onestep.arguments import checked_ratio
from gradrank.onestep.functions import centred
from gradrank.onestep.moments import Moments, moments

HIGHEST_ORDER = 12  # of the Hermite coefficients that are looked at
VANISHES = 1e-9  # |E σ⁽ᵏ⁾| below this, relative to √(k! E σ²), is zero


@dataclass(frozen=True)
class SpikeTheory:
    """The limit of W₁'s leading singular value and of its vector's overlap with the teacher."""

    singular_value: float  # of W₁, (m, d)
    overlap: float  # ⟨u₁, β⟩² of its vector in input space; 0 below the threshold
    neuron_overlap: float  # ⟨v₁, a/‖a‖⟩² of its vector in neuron space; textbook formula, 0 below
    above_threshold: bool
    theta1: float  # strength of the spike, η μ₁ ‖v‖
    theta2: float  # its part along β, η μ₁ μ₁*
    threshold: float  # ψ₂^¼, of θ₁


def gradient_norm(teacher: Moments, noise: float, psi0: float) -> float:
    """Return the limit of ‖v‖ for v = Xᵀy/n₀: √(μ₁*² + (E f*² + noise²)/ψ₀)."""
    return math.sqrt(teacher.mu1**2 + (teacher.variance + noise**2) / psi0)


def spike_theory(
    eta: float, psi1: float, psi2: float, activation: Any, teacher: Any, noise: float, psi0: float | None = None
) -> SpikeTheory:
    """Return the spike of W₁ = W₀ − η √m ∇L in the limit n₀, d, m → ∞ (Ba et al. 2022, arXiv:2205.01445).

    The gradient is of rank one up to o(1), −√m ∇L ≈ μ₁ v ãᵀ/√m, so that W₁ is a Gaussian matrix with a spike of strength
    θ₁ = η μ₁ √(μ₁*² + (E f*² + noise²)/ψ₀). For θ₁ > ψ₂^¼, with t = θ₁² and θ₂ = η μ₁ μ₁*,

        s₁² = (1 + t)(ψ₂ + t)/t,     ⟨u₁, β⟩² = (θ₂/θ₁)² [1 − (ψ₂ + t)/(t(t + 1))],

    else s₁ = 1 + √ψ₂ and no overlap. At d ≥ 1000 and away from the threshold simulations agree to 2 % and 0.03; the
    term −f(X) of the residue, of order 1/√m, lowers s₁ by about a per cent there for η ≥ 3.

    Parameters
    ----------
    eta
        Size of the step, at least 0, independent of m.
    psi1, psi2, psi0
        n/d, m/d, and n₀/d of the step's samples; ψ₀ = ψ₁ unless given.
    activation, teacher
        Names, ``module:name`` or functions; both are centred.
    noise
        Standard deviation of the label noise.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    psi1, psi2 = checked_ratio("psi1", psi1), checked_ratio("psi2", psi2)
    psi0 = psi1 if psi0 is None else checked_ratio("psi0", psi0)
    eta, noise = at_least_zero("eta", eta), at_least_zero("noise", noise)
    sigma, target = moments(centred(activation, "activation")), moments(centred(teacher, "teacher"))
    theta1 = eta * abs(sigma.mu1) * gradient_norm(target, noise, psi0)
    theta2 = eta * abs(sigma.mu1 * target.mu1)
    threshold = psi2**0.25
    if not theta1 > threshold:
        return SpikeTheory(1 + math.sqrt(psi2), 0.0, 0.0, False, theta1, theta2, threshold)
    t = theta1**2
    return SpikeTheory(
        singular_value=math.sqrt((1 + t) * (psi2 + t) / t),
        overlap=(theta2 / theta1) ** 2 * (1 - (psi2 + t) / (t * (t + 1))),
        neuron_overlap=1 - psi2 * (1 + t) / (t * (t + psi2)),
        above_threshold=True,
        theta1=theta1,
        theta2=theta2,
        threshold=threshold,
    )


@dataclass(frozen=True)
class FeatureSpikeTheory:
    """Which spikes the features of a step with θ₁ = n^s hold, in the limit."""

    count: int
    orders: tuple[int, ...]  # k of each spike, He_k of the spike's coordinate
    absent: tuple[int, ...]  # orders that the step is large enough for, but E σ⁽ᵏ⁾ = 0
    exponents: tuple[float, ...]  # of n in the strength of each spike, k s − (k − 1)/2


def feature_spikes(s: float, activation: Any) -> FeatureSpikeTheory:
    """Return the spikes of σ(XW₁ᵀ)/√n for θ₁ = n^s, n, d, m → ∞ together (Moniri et al. 2024, arXiv:2310.07891).

    The k-th spike has the strength |E σ⁽ᵏ⁾(z)| θ₁^k m^(−(k−1)/2) ~ n^(ks − (k−1)/2), which grows where s > (k −
    1)/(2k): ℓ spikes for (ℓ − 1)/(2ℓ) < s < ℓ/(2ℓ + 2), less those with E σ⁽ᵏ⁾ = 0 (an odd σ has no even ones).

    Raises
    ------
    InputError
        If s is not in (0, ½), or is one of the boundaries (k − 1)/(2k), where the strength neither grows nor falls; or
        if it takes more than twelve orders.
    """
    s = finite("s", s)
    if not 0 < s < 0.5:
        raise unusable("s", s, "give an exponent above 0 and below ½")
    boundaries = [(k - 1) / (2 * k) for k in range(1, HIGHEST_ORDER + 2)]
    for k, boundary in enumerate(boundaries, start=1):
        if math.isclose(s, boundary, rel_tol=1e-9):
            raise InputError(
                f"s: {s} is not allowed; at (k − 1)/(2k), k = {k}, the limit is not known, give another exponent"
            )
    if s > boundaries[-1]:
        raise unusable(
            "s", s, f"give an exponent below {boundaries[-1]:.4g}: more than {HIGHEST_ORDER} orders are not computed"
        )
    reached = [k for k, boundary in enumerate(boundaries, start=1) if s > boundary]
    sigma = moments(centred(activation, "activation"))
    if not sigma.variance > 0:
        raise unusable("activation", sigma.function.name, "it is constant: the features hold nothing")
    size = {k: abs(sigma.hermite(k)) / math.sqrt(math.factorial(k) * sigma.variance) for k in reached}
    orders = tuple(k for k in reached if size[k] > VANISHES)
    return FeatureSpikeTheory(
        count=len(orders),
        orders=orders,
        absent=tuple(k for k in reached if k not in orders),
        exponents=tuple(k * s - (k - 1) / 2 for k in orders),
    )
