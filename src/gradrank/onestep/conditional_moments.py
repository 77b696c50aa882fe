"""Moments of features and teacher given the coordinate k of the spike: the ingredients of the large-step theory.

Given k = ⟨v̂, x⟩, a neuron with s = ⟨v̂, w⟩ and ρ = ‖w − s v̂‖ sees s k + ρu with u ~ N(0, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep.functions import Scalar

WIDTH, NODES = (
    8.0,
    129,
)  # of the inner rule: trapezoid, exponentially accurate for functions that are analytic near the axis
FEWEST = 40
EDGE, TAIL = 0.9, 0.01  # nodes beyond this share of the span may hold this share of E σ²
CHUNK = 1 << 21  # values of the function at a time


@lru_cache(maxsize=16)
def trapezoid(width: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes on [−width, width] and weights for an expectation over N(0, 1), adding up to one."""
    nodes = np.linspace(-width, width, count)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def count_of_nodes(strength: float) -> int:
    """Return how many nodes of k resolve functions of s k for |s| of that size: 41 up to two, and in proportion beyond."""
    return 4 * math.ceil(FEWEST / 4 * max(1.0, strength / 2)) + 1


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """E_u σ, E_u uσ and the rest of the variance, for every neuron (rows) and every k (columns)."""

    mean: np.ndarray  # c₀ (N, K)
    slope: np.ndarray  # c₁ (N, K)
    rest: np.ndarray  # c₂ (N, K) = Var_u − c₁²

    @property
    def second(self) -> np.ndarray:
        """E_u σ² (N, K)."""
        return np.asarray(self.mean**2 + self.slope**2 + self.rest)


def feature_moments(sigma: Scalar, s: np.ndarray, rho: np.ndarray, k: np.ndarray) -> FeatureMoments:
    """Return the moments of σ(s_j k + ρ_j u) over u ~ N(0, 1), for s and ρ of shape (N,) and k of shape (K,)."""
    u, weights = trapezoid(WIDTH, NODES)
    tables = [np.empty((len(s), len(k))) for _ in range(3)]
    rows = max(1, CHUNK // (len(k) * len(u)))
    for start in range(0, len(s), rows):
        part = slice(start, start + rows)
        points = s[part, None, None] * k[None, :, None] + rho[part, None, None] * u
        values = sigma.value(torch.from_numpy(points)).numpy()
        mean, slope = values @ weights, values @ (weights * u)
        for table, found in zip(tables, (mean, slope, (values**2) @ weights - mean**2 - slope**2), strict=True):
            table[part] = found
    mean, slope, rest = tables
    return FeatureMoments(mean, slope, np.maximum(rest, 0.0))


def require_resolved(name: str, density: np.ndarray, *nodes: np.ndarray) -> None:
    """Check that E σ² over the stepped neurons does not come from the outermost nodes, where it is cut off.

    Parameters
    ----------
    name
        Of the activation.
    density
        Weight times E_u σ² on the grid of the nodes.
    nodes
        The nodes of every axis of the grid; an axis of two is no rule, and has no edge.

    Raises
    ------
    InputError
        If more than a hundredth of it does, or it is not finite: σ grows too fast.
    """
    total = float(density.sum())
    edge = np.zeros(density.shape, dtype=bool)
    for axis, points in enumerate(nodes):
        if len(points) > 2:
            shape = [1] * density.ndim
            shape[axis] = -1
            edge |= (np.abs(points) > EDGE * np.abs(points).max()).reshape(shape)
    if not math.isfinite(total) or float(density[edge].sum()) > TAIL * total:
        raise InputError(
            f"activation: {name} grows too fast for neurons after this step: E σ² is not resolved; give one that grows slower"
        )


def teacher_moments(teacher: Scalar, cosine: float, k: np.ndarray) -> FeatureMoments:
    """Return the same for f* of c k + √(1 − c²) u, each of shape (K,)."""
    found = feature_moments(teacher, np.array([cosine]), np.array([math.sqrt(max(1 - cosine**2, 0.0))]), k)
    return FeatureMoments(found.mean[0], found.slope[0], found.rest[0])
