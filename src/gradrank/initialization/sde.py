"""`sample_sde`: the neural covariance SDE, by a scheme that keeps V positive semidefinite for every step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gradrank.foundation.arrays import real_array
from gradrank.foundation.devices import device_named
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.numbers import above_zero, whole
from gradrank.foundation.random import stream
from gradrank.initialization.arguments import cholesky, covariance
from gradrank.initialization.shaped_relu import ShapedReLU
from gradrank.initialization.shaping import Shaping, shaped

OVERFLOW = 1e120  # of V, whose powers are taken
MOST = 4.0  # excess variance of a log V^{αα} per time, where it is 2 without
CHUNK = 1 << 18  # entries of V at a time


def sample_sde(
    v0: Any,
    time: float,
    shaping: Shaping,
    samples: int,
    seed: int = 0,
    *,
    step: float = 0.01,
    at: Sequence[float] | None = None,
    width: int | None = None,
    cap: float | None = None,
    device: str = "cpu",
) -> torch.Tensor:
    """Draw V_T of dV = b(V) dt + Σ(V)^½ dB with Σ^{αβ,γδ} = V^{αγ}V^{βδ} + V^{αδ}V^{βγ} (Li, Nica and Roy 2022, arXiv:2206.02768).

    The noise is L dS Lᵀ with LLᵀ = V and S symmetric, var dS_ii = 2dt, var dS_ij = dt, which has this covariance. A step is half a
    step of the drift (`Shaping.drift_flow`), V ← L exp(√dt S − ½(p + 1)dt) Lᵀ, and half a step of the drift again; each keeps
    the cone of positive semidefinite matrices, and the noise keeps the mean of log det V. Weak errors at dt = 1/100 are
    below 1e-3 in the correlation for shaped ReLU.

    Where b of the diagonal's drift is positive (`ShapedSmooth.growth`), V can explode in finite time: a sample
    whose largest diagonal entry exceeds ``cap`` stops there, comes back as infinity in all entries, and a
    RuntimeWarning says how many did. Elsewhere V may be of any size that a float holds.

    Parameters
    ----------
    v0
        V_0, positive semidefinite, shape (p, p).
    time
        T = depth/width.
    shaping
        `ShapedReLU` or `ShapedSmooth`: the drift.
    samples, seed
        How many, and the seed.
    step
        Largest dt; the last one is shortened so that T is met.
    at
        Times at which V is returned, in increasing order, up to T; T alone unless given.
    width
        Corrections for networks of that width: `ShapedReLU` takes (c₊ − c₋)² times c, which removes a bias of order n^(−½);
        the diagonal gets the covariance of a layer of finite width (`Shaping.excess`) where its variance is larger, of
        order 1/n.
    cap
        Diagonal entry at which a sample counts as exploded, where it can: where the drift's b is above 0. 1000 times the
        largest entry of V_0's diagonal, or 1000, unless given.
    device
        "cpu" or "cuda".

    Returns
    -------
    torch.Tensor
        Shape (samples, p, p), or (samples, len(at), p, p) where times are given; float64.

    Raises
    ------
    InputError
        If a value is not usable, or the step is too large for the drift of shaped ReLU.
    """
    where, shaping = device_named(device), shaped(shaping)
    start = covariance(v0).to(where)
    T, dt, samples = above_zero("time", time), above_zero("step", step), whole("samples", samples, 1)
    if width is not None:
        width = whole("width", width, 1)
    highest = float(torch.diagonal(start).max())
    limit = 1e3 * max(1.0, highest) if cap is None else above_zero("cap", cap)
    if not highest < limit:
        raise InputError(f"cap: {cap} is not allowed; give a number above the diagonal of v0")
    if shaping.growth <= 0:
        limit = OVERFLOW
    if isinstance(shaping, ShapedReLU) and shaping.strength(width) * dt > 8:
        raise unusable("step", step, f"give at most {8 / shaping.strength(width):.3g} for these slopes")
    times = _times(at, T)
    p = len(start)
    require_memory("samples", 8.0 * samples * len(times) * p * p, "give fewer samples or times")
    found = torch.empty(samples, len(times), p, p, dtype=torch.float64, device=where)
    generator = torch.Generator().manual_seed(int(stream(whole("seed", seed, 0), "initialization.sde").integers(2**62)))
    size, exploded = max(1, CHUNK // (p * p)), 0
    for first in range(0, samples, size):
        V = start.repeat(min(size, samples - first), 1, 1)
        gone = torch.zeros(len(V), dtype=torch.bool, device=where)
        now = 0.0
        for place, then in enumerate(times):
            steps = max(1, math.ceil((then - now) / dt - 1e-9)) if then > now else 0
            for _ in range(steps):
                h = (then - now) / steps
                V = shaping.drift_flow(V, h / 2, width)
                gone |= _restarted(V, limit, start)
                V = shaping.drift_flow(_moved(V, h, shaping, width, generator), h / 2, width)
                gone |= _restarted(V, limit, start)
            found[first : first + len(V), place] = torch.where(gone[:, None, None], math.inf, V)
            now = then
        exploded += int(gone.sum())
    if exploded:
        warnings.warn(
            f"{exploded} of {samples} samples exceeded {limit:g} before T = {T:g} and are returned as infinity",
            RuntimeWarning,
            stacklevel=2,
        )
    return found[:, 0] if at is None else found


def _restarted(V: torch.Tensor, limit: float, start: torch.Tensor) -> torch.Tensor:
    """Return which samples are beyond the limit; they go on from the start, as anything finite: infinity is what comes back."""
    over = ~(torch.diagonal(V, dim1=-2, dim2=-1).amax(dim=-1) <= limit)  # NaN is over as well
    V[over] = start
    return over


def _moved(V: torch.Tensor, dt: float, shaping: Shaping, width: int | None, generator: torch.Generator) -> torch.Tensor:
    """Return V after the noise of a step."""
    L = cholesky(V)
    half = L @ _exponential(V, dt, generator)
    moved = half @ half.transpose(-2, -1)
    if width is not None:
        moved = _widened(moved, shaping.excess(V, width), dt, generator)
    return moved


def _widened(V: torch.Tensor, excess: torch.Tensor, dt: float, generator: torch.Generator) -> torch.Tensor:
    """Return EVE, E diagonal, which adds the excess to the covariance of the log V^{αα} and keeps E V^{αα}, where it is positive.

    Of first order in V/n, it counts up to `MOST`. A negative variance is left out: noise cannot be taken away, and its drift
    alone would make things worse.
    """
    g = torch.randn(excess.shape[:-1], dtype=torch.float64, generator=generator).to(V.device)
    more = torch.diagonal(excess, dim1=-2, dim2=-1).clamp(min=0, max=MOST) * dt
    root = more.sqrt()
    bound = root[..., :, None] * root[..., None, :]
    joint = torch.diagonal_scatter((excess * dt).clamp(min=-bound, max=bound), more, dim1=-2, dim2=-1)
    noise = (cholesky(joint) @ g[..., None])[..., 0]
    E = torch.exp(noise / 2 - more / 4)
    return V * E[..., :, None] * E[..., None, :]


def _exponential(V: torch.Tensor, dt: float, generator: torch.Generator) -> torch.Tensor:
    """Return exp(½(√dt S − ½(p + 1)dt)) for a fresh S of each sample, shape (s, p, p)."""
    s, p, _ = V.shape
    g = torch.randn(s, p, p, dtype=torch.float64, generator=generator).to(V.device)
    S = (g + g.transpose(-2, -1)) / math.sqrt(2)  # variance 2 on the diagonal, 1 off it
    exponent = S * (math.sqrt(dt) / 2)
    shift = math.exp(-(p + 1) * dt / 4)
    if p == 1:
        return torch.exp(exponent) * shift
    if p > 2:
        general: torch.Tensor = torch.linalg.matrix_exp(exponent)
        return general * shift
    half_trace = (exponent[:, 0, 0] + exponent[:, 1, 1]) / 2
    difference = (exponent[:, 0, 0] - exponent[:, 1, 1]) / 2
    radius = torch.hypot(difference, exponent[:, 0, 1])
    ratio = torch.where(radius > 1e-12, torch.sinh(radius) / radius.clamp(min=1e-300), torch.ones_like(radius))
    outer, cosh = torch.exp(half_trace) * shift, torch.cosh(radius)
    E = torch.empty_like(exponent)
    E[:, 0, 0] = outer * (cosh + ratio * difference)
    E[:, 1, 1] = outer * (cosh - ratio * difference)
    E[:, 0, 1] = E[:, 1, 0] = outer * ratio * exponent[:, 0, 1]
    return E


def _times(at: Sequence[float] | None, T: float) -> list[float]:
    if at is None:
        return [T]
    found = np.atleast_1d(real_array("at", at, f"increasing times from 0 to {T:g}"))
    if found.ndim != 1 or not found.size or found[0] < 0 or found[-1] > T or bool((np.diff(found) < 0).any()):
        raise unusable("at", at, f"give increasing times from 0 to {T:g}")
    return [float(t) for t in found]
