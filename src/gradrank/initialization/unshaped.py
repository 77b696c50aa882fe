"""Unshaped ReLU networks (c = 2), whose correlations collapse: what shaping is there to prevent."""

from __future__ import annotations

import math

import numpy as np

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import above_zero, finite, whole
from gradrank.foundation.random import stream

LONGEST = 100.0  # time
COLLAPSE = math.sqrt(2) / (3 * math.pi)  # k: l²(1 − ρ_l) → 1/k² = 9π²/2


def arc_cosine_kernel(rho: float) -> float:
    """Return κ(ρ) = (√(1 − ρ²) + ρ(π − arccos ρ))/π, the correlation after one layer of infinite width."""
    rho = finite("rho", rho)
    if not -1 <= rho <= 1:
        raise unusable("rho", rho, "give a number from −1 to 1")
    return (math.sqrt(1 - rho * rho) + rho * (math.pi - math.acos(rho))) / math.pi


def collapse(rho0: float, depth: int) -> float:
    """Return 1 − ρ_l after ``depth`` layers of infinite width; iterated in x = 1 − ρ, so that no digits cancel."""
    arc_cosine_kernel(rho0)
    x = 1.0 - float(rho0)
    for _ in range(whole("depth", depth, 0)):
        theta = 2 * math.asin(min(1.0, math.sqrt(x / 2)))
        defect = math.sin(theta) - theta * math.cos(theta) if theta > 1e-2 else theta**3 / 3 * (1 - theta**2 / 10)
        x -= defect / math.pi
    return x


def sample_collapse(time: float, samples: int, seed: int = 0, *, steps: int = 2000) -> np.ndarray:
    """Draw the limit of q = l²(1 − ρ_l) at l = tn: t²/(k∫_0^t e^{s + √2B_s}ds)², exactly in law up to the trapezoidal rule.

    The solution of dq = [2q(1 − k√q)/t + 2q]dt + 2√2 q dB from q_0 = 9π²/2 (Li and Nica 2023, arXiv:2310.12079,
    for q; the solution is derived for this project). Finite networks approach it as slowly as log n/n.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    t, count = above_zero("time", time), whole("steps", steps, 2)
    rng = stream(whole("seed", seed, 0), "initialization.collapse")
    h = t / count
    b = np.zeros(whole("samples", samples, 1))
    integral = np.zeros(len(b))
    for k in range(count):
        before = np.exp(k * h + math.sqrt(2) * b)
        b = b + math.sqrt(h) * rng.standard_normal(len(b))
        integral += h * (before + np.exp((k + 1) * h + math.sqrt(2) * b)) / 2
    return np.asarray((t / (COLLAPSE * integral)) ** 2)


def collapse_moments(time: float) -> tuple[float, float]:
    """Return E q^(−½) = k(e^{2t} − 1)/(2t) and E q⁻¹ = (k²/t²)[(e^{6t} − e^{2t})/4 − (e^{6t} − 1)/6]."""
    t = above_zero("time", time)
    if t > LONGEST:
        raise unusable("time", time, f"give at most {LONGEST:g}: the moments grow as e^(6t)")
    half = COLLAPSE * math.expm1(2 * t) / (2 * t)
    one = (COLLAPSE / t) ** 2 * ((math.exp(6 * t) - math.exp(2 * t)) / 4 - math.expm1(6 * t) / 6)
    return half, one
