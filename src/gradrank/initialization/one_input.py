"""One input: dV = bV(V − 1)dt + √2 V dB, the diagonal of the covariance SDE, solved exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import above_zero, finite, finite_times, increasing_times, whole
from gradrank.foundation.random import stream

LARGEST = 500.0  # exponent of a growing mean


def explosion_probability(b: float, v0: float) -> float:
    """Return the probability that V explodes in finite time: P(Gamma(b + 1) < bV_0) for b > 0, else 0.

    V_t = G_t/(1/V_0 − b∫G) with G = exp(√2B_t − (b + 1)t): it explodes where b∫_0^∞ G exceeds 1/V_0, and 1/∫_0^∞ G
    is a Gamma variable (Dufresne 1990). Explosion is possible iff b = (¾φ″² + φ‴)/a² > 0 (Li, Nica and Roy 2022,
    arXiv:2206.02768); otherwise, and also for b > 0, V tends to zero with the complementary probability, except
    for b ≤ −1, where it keeps coming back.

    Raises
    ------
    InputError
        If b is not finite, or V_0 not above 0.
    """
    b, v0 = finite("b", b), above_zero("v0", v0)
    return float(gammainc(b + 1, b * v0)) if b > 0 else 0.0


def mean_field_flow(v0: float, b: float, times: Sequence[float]) -> np.ndarray:
    """Return U(t) of U′ = bU(U − 1), the flow without noise: U_0/(U_0 + (1 − U_0)e^{bt}); infinity from the blow-up on.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    b, v0, t = finite("b", b), above_zero("v0", v0), finite_times(times)
    if v0 == 1:
        return np.ones(len(t))
    with np.errstate(over="ignore"):
        below = v0 + (1 - v0) * np.exp(b * t)
    return np.where(below > 0, v0 / np.where(below > 0, below, 1.0), math.inf)


def blow_up_time(v0: float, b: float) -> float:
    """Return log(V_0/(V_0 − 1))/b, at which the flow without noise explodes; infinity unless b > 0 and V_0 > 1."""
    b, v0 = finite("b", b), above_zero("v0", v0)
    return math.log(v0 / (v0 - 1)) / b if b > 0 and v0 > 1 else math.inf


@dataclass(frozen=True, eq=False)
class OneInput:
    """Samples of V_t at the times asked for, and when each exploded."""

    values: np.ndarray  # (samples, len(times)), infinity after the explosion
    explosion_times: np.ndarray  # (samples,), infinity for those that did not explode up to the last time


def sample_one_input(
    v0: float, b: float, times: Sequence[float], samples: int, seed: int = 0, *, step: float = 2e-3
) -> OneInput:
    """Draw V_t from the exact solution V_t = G_t/(1/V_0 − b∫_0^t G): only the integral is discretised, by trapezoids.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    b, v0, dt = finite("b", b), above_zero("v0", v0), above_zero("step", step)
    wanted = increasing_times(times)
    rng = stream(whole("seed", seed, 0), "initialization.one_input")
    inverse = np.full(whole("samples", samples, 1), 1 / v0)  # 1/V, of which every step is a start anew
    exploded = np.full(len(inverse), math.inf)
    values, now = np.empty((len(inverse), wanted.size)), 0.0
    for place, then in enumerate(wanted):
        steps = math.ceil((then - now) / dt - 1e-9)
        for k in range(steps):
            h = (then - now) / steps
            g = np.exp(math.sqrt(2 * h) * rng.standard_normal(len(inverse)) - (b + 1) * h)
            left = inverse - b * h * (1 + g) / 2
            exploded = np.where((left <= 0) & np.isinf(exploded), now + (k + 1) * h, exploded)
            with np.errstate(over="ignore"):
                inverse = np.where(left > 0, left, 1.0) / g
        values[:, place] = np.where(np.isinf(exploded), 1 / inverse, math.inf)
        now = float(then)
    return OneInput(values, exploded)


def inverse_mean(v0: float, b: float, time: float) -> float:
    """Return E[1/V_t] = (1/V_0 − b/(b + 2))e^{(b + 2)t} + b/(b + 2) for b ≤ 0 (1/V_0 + 2t at b = −2).

    Raises
    ------
    InputError
        If b is above 0, where V explodes, or a value is not usable.
    """
    b, v0, t = finite("b", b), above_zero("v0", v0), above_zero("time", time)
    if b > 0:
        raise unusable("b", b, "give a number of at most 0")
    if b == -2:
        return 1 / v0 + 2 * t
    if (b + 2) * t > LARGEST:
        raise unusable("time", time, f"give at most {LARGEST / (b + 2):.4g}: the mean grows as e^((b + 2)t)")
    return (1 / v0 - b / (b + 2)) * math.exp((b + 2) * t) + b / (b + 2)


def stationary_law(b: float) -> tuple[float, float]:
    """Return shape and rate of the Gamma law that V tends to for b < −1: |b| − 1 and |b|.

    Raises
    ------
    InputError
        If b ≥ −1, where there is no stationary law.
    """
    b = finite("b", b)
    if b >= -1:
        raise unusable("b", b, "there is a stationary law below −1 only")
    return -b - 1, -b
