"""The law of the correlation ρ_T of two inputs under shaped ReLU: closed in itself, and solved to seven digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.linalg import solve_banded
from scipy.special import expit

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import above_zero, finite, finite_times, whole
from gradrank.foundation.random import stream
from gradrank.initialization.shaped_relu import ShapedReLU, angle_defect

SPACING = 0.01  # of the grid in y = artanh ρ; the moments are extrapolated from this and half of it
STEPS_PER_UNIT = 400  # of time, of its square root beyond one
STIFF = 0.004  # largest w of half a step of the sampler
STEPS_PER_MOVE, MOST_STEPS = 40, 4000  # of (c₊ − c₋)²T, the largest distance that the drift moves artanh ρ
DAMPED = 4  # first steps, which are implicit: the start is a point mass


@dataclass(frozen=True, eq=False)
class CorrelationLaw:
    """The distribution of ρ_T."""

    mean: float
    variance: float
    mean_artanh: float  # E artanh ρ_T
    nodes: np.ndarray  # grid of artanh ρ, increasing
    cumulative: np.ndarray  # P(artanh ρ_T ≤ nodes)

    def cdf(self, rho: Any) -> np.ndarray:
        """Return P(ρ_T ≤ ρ) by interpolation, to about six digits."""
        rho = real_array("rho", rho, "correlations, numbers from −1 to 1")
        y = np.arctanh(np.clip(rho, -1 + 1e-15, 1 - 1e-15))
        found = np.interp(y, self.nodes, self.cumulative, 0.0, 1.0)
        return np.asarray(found)


def drift_of_artanh(y: np.ndarray, strength: float) -> np.ndarray:
    """Return A(sin θ − θ cos θ)/sin² θ + ½ tanh y with θ = 2 arctan e^(−y) and A = (c₊ − c₋)²/2π: dy = drift dt + dB."""
    bounded = np.clip(y, -300.0, 300.0)  # beyond, the first term has its limit; cosh would overflow
    theta = 2 * np.arctan(np.exp(-bounded))
    sine = 1 / np.cosh(bounded)
    defect = angle_defect(torch.from_numpy(np.atleast_1d(theta))).numpy()
    return np.asarray(strength / (2 * math.pi) * defect / sine**2 + 0.5 * np.tanh(y))


def correlation_moments(
    rho0: float, time: float, c_plus: float, c_minus: float, *, width: int | None = None
) -> CorrelationLaw:
    """Return mean, variance and distribution of ρ_T for dρ = [ν(ρ) − ½ρ(1 − ρ²)]dt + (1 − ρ²)dB.

    The Fokker-Planck equation of y = artanh ρ, whose noise is additive, by exponentially fitted fluxes (Scharfetter and
    Gummel 1969) and the trapezoidal rule, the start being a grid point; extrapolated in the spacing. ±1 are never reached.

    Parameters
    ----------
    rho0
        ρ_0 in (−1, 1).
    time
        T = depth/width.
    c_plus, c_minus
        Slopes of `ShapedReLU`.
    width
        Takes (c₊ − c₋)² times c of that width, for the comparison with a network.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    shaping, T = ShapedReLU(c_plus, c_minus), above_zero("time", time)
    y0 = math.atanh(_correlation(rho0))
    if width is not None:
        width = whole("width", width, 1)
    strength = shaping.strength(width)
    spacing = SPACING * max(math.sqrt(T), 1e-3)
    coarse, fine = (_solve(y0, T, strength, spacing / refined, refined) for refined in (1, 2))
    y, mass = fine
    defect, variance, artanh = ((4 * b - a) / 3 for a, b in zip(_moments(*coarse), _moments(*fine), strict=True))
    edges = np.cumsum(mass) - mass / 2  # the mass of a cell lies half on either side of its node
    return CorrelationLaw(1 - defect, variance, artanh, y, edges)


def _moments(y: np.ndarray, mass: np.ndarray) -> tuple[float, float, float]:
    """Return the mean and the variance of 1 − ρ, which keeps its digits near ρ = 1, and the mean of artanh ρ."""
    defect = 2 * expit(-2 * y)
    mean = float(mass @ defect)
    return mean, float(mass @ (defect - mean) ** 2), float(mass @ y)


def _correlation(rho: float) -> float:
    if not -1 < finite("rho0", rho) < 1:
        raise unusable("rho0", rho, "give a number between −1 and 1")
    return float(rho)


def _solve(y0: float, T: float, strength: float, h: float, refined: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid and the probability of each of its cells at time T."""
    reach = 8 * math.sqrt(T) + 0.5 * T + 1.0
    # Far below zero the drift is (c₊ − c₋)² e^(−2y)/8: beyond 7 + ½ log of its inverse strength nothing gets.
    depth = reach if strength == 0 else min(reach, 7.0 + max(0.0, -0.5 * math.log(strength)))
    below = min(y0, 0.0) - depth
    above = max(y0, 0.0) + reach + math.log1p(strength * T)
    y = y0 + h * np.arange(math.floor((below - y0) / h), math.ceil((above - y0) / h) + 1)
    midpoints = (y[:-1] + y[1:]) / 2
    peclet = 2 * h * drift_of_artanh(midpoints, strength)
    forward, backward = (0.5 / h**2 * _bernoulli(sign * peclet) for sign in (-1.0, 1.0))
    # dm_i/dt = inflow − outflow; `forward` moves mass from i to i + 1, `backward` from i + 1 to i.
    diagonal = -np.append(forward, 0.0) - np.insert(backward, 0, 0.0)
    moves = min(STEPS_PER_MOVE * strength * T, MOST_STEPS)
    steps = max(8, math.ceil(STEPS_PER_UNIT * min(T, math.sqrt(T))), math.ceil(moves)) * refined
    dt = T / steps
    mass = np.zeros(len(y))
    mass[round((y0 - y[0]) / h)] = 1.0

    def implicit(m: np.ndarray, tau: float) -> np.ndarray:
        banded = np.zeros((3, len(y)))
        banded[0, 1:], banded[1], banded[2, :-1] = -tau * backward, 1 - tau * diagonal, -tau * forward
        return np.asarray(solve_banded((1, 1), banded, m))

    def explicit(m: np.ndarray, tau: float) -> np.ndarray:
        moved = diagonal * m
        moved[1:] += forward * m[:-1]
        moved[:-1] += backward * m[1:]
        return np.asarray(m + tau * moved)

    for _ in range(2 * DAMPED):
        mass = implicit(mass, dt / 2)
    for _ in range(steps - DAMPED):
        mass = implicit(explicit(mass, dt / 2), dt / 2)
    return y, mass


def _bernoulli(x: np.ndarray) -> np.ndarray:
    """Return x/(e^x − 1)."""
    small = np.abs(x) < 1e-5
    safe = np.where(small, 1.0, x)
    with np.errstate(over="ignore"):
        return np.where(small, 1 - x / 2 + x**2 / 12, safe / np.expm1(safe))


def correlation_flow(rho0: float, times: Sequence[float], c_plus: float, c_minus: float) -> np.ndarray:
    """Return ρ(t) of the infinite-width limit at the same depth scaling, ρ′ = ν(ρ), in θ = arccos ρ; shape (len(times),).

    Raises
    ------
    InputError
        If a value is not usable.
    """
    strength = ShapedReLU(c_plus, c_minus).strength()
    theta0 = math.acos(_correlation(rho0))
    grid = finite_times(times)

    def slope(_: float, theta: np.ndarray) -> np.ndarray:
        defect = angle_defect(torch.from_numpy(theta)).numpy()
        return np.asarray(-strength / (2 * math.pi) * defect / np.sin(theta))

    asked, place = np.unique(grid, return_inverse=True)
    found = solve_ivp(slope, (0.0, max(float(asked[-1]), 1e-12)), [theta0], "DOP853", asked, rtol=1e-12, atol=1e-14)
    return np.asarray(np.cos(found.y[0])[place])


def sample_correlation(
    rho0: float, time: float, c_plus: float, c_minus: float, samples: int, seed: int = 0, *, step: float = 0.02
) -> torch.Tensor:
    """Draw ρ_T, shape (samples,): half a step of the drift ν(ρ), the noise and the drift ½tanh y in y = artanh ρ, half a step of ν.

    The noise is additive in y, and ±1 cannot be crossed. The step of ν is that of a layer's kernel, which stays in [−1, 1];
    steps are shortened for steep slopes.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    shaping, T, dt = ShapedReLU(c_plus, c_minus), above_zero("time", time), above_zero("step", step)
    strength = shaping.strength()
    rng = stream(whole("seed", seed, 0), "initialization.correlation")
    y = np.full(whole("samples", samples, 1), math.atanh(_correlation(rho0)))
    steps = math.ceil(T / min(dt, 8 * STIFF / max(strength, 1e-300)))
    h = T / steps
    for _ in range(steps):
        y = _drifted(y, strength * h / 8)
        y = y + 0.5 * np.tanh(y) * h + math.sqrt(h) * rng.standard_normal(len(y))
        y = _drifted(y, strength * h / 8)
    return torch.from_numpy(np.tanh(y))


def _drifted(y: np.ndarray, mixed: float) -> np.ndarray:
    """Return artanh of (1 − w)ρ + w(2/π)(√(1 − ρ²) + ρ arcsin ρ), in 1 ± ρ: w = (c₊ − c₋)² t/4 is an Euler step of ρ′ = ν(ρ)."""
    bounded = np.clip(y, -300.0, 300.0)
    theta = 2 * np.arctan(np.exp(-bounded))
    gain = mixed * (2 / math.pi) * angle_defect(torch.from_numpy(theta)).numpy()
    above, below = 2 / (1 + np.exp(-2 * bounded)), 2 / (1 + np.exp(2 * bounded))
    moved = 0.5 * (np.log(above + gain) - np.log(below - gain))
    return np.asarray(np.where(np.abs(y) < 300.0, moved, y))
