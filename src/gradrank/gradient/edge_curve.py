"""The curve x(w) whose minimum is the edge of EEᵀ, with the outliers beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradrank.linalg.silverstein_equation import Reals

TRACY_WIDOM = (-1.2065335745820, 1.2679809)  # mean and standard deviation of the law of real symmetric matrices
SAME = 1e-6  # two points of log w closer than this are one


@dataclass(frozen=True, eq=False)
class Point:
    """What the equation says at one w per draw."""

    w: Reals  # (P,)
    trace: Reals  # (P,) tr C(w − C)⁻¹ without spikes
    spikes: Reals  # (P, S) values that are one at a pole, each spike by itself
    joint: Reals  # (P,) positive above the first pole of the smooth features and Σ̂'s first eigenvalue together
    ok: np.ndarray  # (P,)


@dataclass(frozen=True, eq=False)
class Curve:
    """x(w) of one draw, w descending."""

    log_w: Reals  # (k,)
    base: Reals  # (k,) m + tr C(w − C)⁻¹ without spikes
    spikes: Reals  # (k, S), the one with the first pole first
    joint: Reals  # (k,)

    @classmethod
    def of(cls, points: list[Point], draw: int, m: int) -> Curve | None:
        """Collect the points of one draw, or None where there are too few."""
        w = np.array([p.w[draw] for p in points if p.ok[draw]])
        if len(w) < 6:
            return None
        base = np.array([m + p.trace[draw] for p in points if p.ok[draw]])
        joint = np.array([p.joint[draw] for p in points if p.ok[draw]])
        spikes = np.maximum(np.array([p.spikes[draw] for p in points if p.ok[draw]]), 1e-12)
        order = np.argsort(-w)
        log_w = np.log(w[order])
        order = order[np.append(True, np.diff(log_w) < -SAME)]
        spikes = spikes[order]
        return cls(np.log(w[order]), base[order], spikes[:, np.argsort(-spikes[-1])], joint[order])

    def _x(self, first: int) -> tuple[Reals, np.ndarray]:
        """Return x(w) with the spikes from number ``first`` on, and where w is above their poles."""
        spikes = self.spikes[:, first:]
        slope = np.gradient(np.log(spikes), self.log_w, axis=0)
        above = np.cumsum((spikes >= 1).any(axis=1)) == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            extra = np.where(spikes < 1, -spikes * slope / (1 - spikes), 0.0).sum(axis=1)
        return np.exp(self.log_w) * (self.base + extra), above

    def _edge(self, first: int) -> tuple[float, float, float]:
        """Return the minimum of x(w), its Tracy-Widom scale (½x″w⁴)^(1/3), and log w there."""
        x, above = self._x(first)
        x, log_w = x[above], self.log_w[above]
        if len(x) < 3:
            return math.inf, 0.0, math.inf
        i = min(max(int(x.argmin()), 1), len(x) - 2)
        near = slice(max(0, i - 2), i + 3)
        bend = float(np.polyfit(log_w[near] - log_w[i], x[near], 2)[0])  # ½ w²x″ where x′ = 0
        return float(x.min()), (max(bend, 0.0) * math.exp(2 * log_w[i])) ** (1 / 3), float(log_w[x.argmin()])

    def largest(self) -> tuple[float, float]:
        """Return mean and standard deviation of the largest eigenvalue of EEᵀ/γ²."""
        below = self.joint <= 0
        j = int(below.argmax())
        if j > 0:
            rest, scale, at = self._edge(1)
            x, above = self._x(1)
            if above[j - 1]:
                share = float(self.joint[j - 1] / (self.joint[j - 1] - self.joint[j]))
                log_w = float(self.log_w[j - 1] + share * (self.log_w[j] - self.log_w[j - 1]))
                position = float(np.exp(np.interp(-log_w, -self.log_w[above], np.log(x[above]))))
                if (log_w > at and position > rest + 2 * scale) or math.isinf(rest):
                    slope = (x[j] - x[j - 1]) / (math.exp(self.log_w[j]) - math.exp(self.log_w[j - 1]))
                    return position, math.exp(log_w) * math.sqrt(2 * max(slope, 0.0))
        edge, scale, _ = self._edge(0)
        return edge + TRACY_WIDOM[0] * scale, TRACY_WIDOM[1] * scale
