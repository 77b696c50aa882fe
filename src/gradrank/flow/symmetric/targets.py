"""Targets f* with a closed field G*(b) = E f*(x)relu(⟨b, x⟩), x ~ N(0, I)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaln, ndtr

from gradrank.flow.symmetric.kernels import TINY, psi_even, psi_even_slope, relu_field, relu_gram, sphere_nodes
from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import whole


class Target(Protocol):
    """What the flow needs of a target."""

    @property
    def second_moment(self) -> float:
        """E f*(x)²."""

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return f*(x_i) for rows of (n, d)."""

    def field(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G*(b_j), shape (m,), and its gradient, shape (m, d)."""


def vector(name: str, value: Any) -> np.ndarray:
    """Return a finite vector, or raise an `InputError`."""
    array = real_array(name, value, "a vector of finite numbers")
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: the shape {array.shape} is not allowed; give a vector of finite numbers")
    return array


@dataclass(frozen=True, eq=False)
class LinearTarget:
    """f*(x) = ⟨w, x⟩; the linear part of any odd target acts on symmetric networks alike."""

    w: Any

    @cached_property
    def _w(self) -> np.ndarray:
        return vector("w", self.w)

    @property
    def second_moment(self) -> float:
        """‖w‖²."""
        return float(self._w @ self._w)

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return ⟨w, x_i⟩."""
        return np.asarray(X @ self._w)

    def field(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ½⟨w, b⟩ and ½w."""
        return B @ self._w / 2, np.broadcast_to(self._w / 2, B.shape).copy()


@dataclass(frozen=True, eq=False)
class NetworkTarget:
    """f*(x) = Σ_k a_k relu(⟨b_k, x⟩): a teacher network of a few neurons."""

    a: Any
    B: Any

    def __post_init__(self) -> None:
        a, B = self._parts
        if B.ndim != 2 or len(B) != len(a):
            raise InputError(f"B: shape {B.shape} for {len(a)} outer weights is not allowed; give a row for each")

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        return vector("a", self.a), real_array("B", self.B, "a row for each outer weight")

    @property
    def second_moment(self) -> float:
        """aᵀKa."""
        a, B = self._parts
        return float(a @ relu_gram(B, B) @ a)

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return Σ a_k relu(⟨b_k, x_i⟩)."""
        a, B = self._parts
        return np.asarray(np.maximum(X @ B.T, 0) @ a)

    def field(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ a_k K(b, b_k) and its gradient."""
        a, others = self._parts
        return relu_field(B, a, others)


@dataclass(frozen=True, eq=False)
class NormTarget:
    """f*(x) = ‖x_H‖, H the first p coordinates: low-dimensional, and invariant under rotations of H and of its complement."""

    p: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", whole("p", self.p, 1))

    @property
    def second_moment(self) -> float:
        """E‖x_H‖² = p."""
        return float(self.p)

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return ‖x_H‖."""
        return np.asarray(np.linalg.norm(X[:, : self.p], axis=1))

    def field(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return c_p‖b‖ E_s ψ_e(s‖b_H‖/‖b‖), from ‖x_H‖ = c_p E_u relu(⟨u, x_H⟩), and its gradient."""
        if B.shape[1] < self.p:
            raise InputError(f"p: {self.p} is not allowed for inputs of dimension {B.shape[1]}; give at most that")
        inside = B[:, : self.p]
        size, size_inside = np.linalg.norm(B, axis=1), np.linalg.norm(inside, axis=1)
        ratio = size_inside / np.maximum(size, TINY)
        s, weights = sphere_nodes(self.p)
        values = psi_even(ratio[:, None] * s) @ weights
        slope = (psi_even_slope(ratio[:, None] * s) * s) @ weights  # by the ratio
        c = norm_constant(self.p)
        gradient = ((values - slope * ratio) / np.maximum(size, TINY))[:, None] * B
        gradient[:, : self.p] += (slope / np.maximum(size_inside, TINY))[:, None] * inside
        return c * size * values, c * gradient


def norm_constant(p: int) -> float:
    """Return c_p = 2/E|u_1| = 2√π Γ((p + 1)/2)/Γ(p/2), u uniform on S^{p−1}: 2, π, 4 for p = 1, 2, 3."""
    return 2 * math.sqrt(math.pi) * math.exp(gammaln((p + 1) / 2) - gammaln(p / 2))


@dataclass(frozen=True, eq=False)
class ProjectedTarget:
    """f*(x) = F(x_H), H the first p coordinates, for any function F of (k, p) arrays; p ≤ 3, by product quadrature.

    The rule is the trapezoidal one on [−8, 8]^p, with 641 nodes for p = 1 and 81 a coordinate else, unless given. It is
    exponentially accurate for a smooth F where q/‖p‖ is above its spacing, 0.025 or 0.2; for neurons closer to H, and
    for an F with kinks, the field is right to about 1e-3 of its size.
    """

    function: Callable[[np.ndarray], np.ndarray]
    p: int
    nodes: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise unusable("function", self.function, "give a function of arrays (k, p)")
        object.__setattr__(self, "p", whole("p", self.p, 1))
        if self.p > 3:
            raise unusable("p", self.p, "give 1, 2 or 3")
        if self.nodes is not None:
            object.__setattr__(self, "nodes", whole("nodes", self.nodes, 17))

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nodes (k, p), weights (k,) and F at the nodes."""
        line = np.linspace(-8.0, 8.0, self.nodes or (641 if self.p == 1 else 81))
        weights = np.exp(-(line**2) / 2)
        weights = weights / weights.sum()
        grids = np.meshgrid(*[line] * self.p, indexing="ij")
        points = np.stack([grid.ravel() for grid in grids], axis=1)
        mass = np.prod(np.stack([w.ravel() for w in np.meshgrid(*[weights] * self.p, indexing="ij")]), axis=0)
        kept = mass > 1e-18
        values = real_array("function", self.function(points[kept]), "a function that returns finite real numbers (k,)")
        if values.shape != (int(kept.sum()),):
            raise InputError(f"function: gives shape {values.shape} for {int(kept.sum())} points; give (k,) for (k, p)")
        return points[kept], mass[kept], values

    @cached_property
    def second_moment(self) -> float:
        """E F(x_H)²."""
        _, mass, values = self._rule
        return float(mass @ values**2)

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return F(x_H)."""
        return real_array("function", self.function(X[:, : self.p]), "a function that returns finite real numbers (k,)")

    def reduced_field(self, P: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return G* for b_H = p and ‖b_⊥‖ = q, rows of (m, p) and (m,), and its derivatives by p and by q.

        E relu(⟨p, x_H⟩ + qg) over g: μΦ(μ/q) + qφ(μ/q).
        """
        points, mass, values = self._rule
        mean = P @ points.T
        scale = np.maximum(np.abs(q), 1e-12)[:, None]
        upper = ndtr(mean / scale)
        bell = np.exp(-((mean / scale) ** 2) / 2) / math.sqrt(2 * math.pi)
        weighted = mass * values
        G = (mean * upper + scale * bell) @ weighted
        return G, (upper * weighted) @ points, np.sign(q) * (bell @ weighted)

    def field(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G*(b) and its gradient."""
        across = B[:, self.p :]
        q = np.linalg.norm(across, axis=1)
        G, by_p, by_q = self.reduced_field(B[:, : self.p], q)
        gradient = np.concatenate([by_p, across * (by_q / np.maximum(q, TINY))[:, None]], axis=1)
        return G, gradient
