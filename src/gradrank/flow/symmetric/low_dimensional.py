"""f*(x) = F(x_H): the flow reduced to a, b_H and ‖b_⊥‖ of each neuron, whatever the dimension across."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradrank.flow.symmetric.integration import integrate
from gradrank.flow.symmetric.kernels import TINY, sphere_nodes
from gradrank.flow.symmetric.particles import initial_particles
from gradrank.flow.symmetric.targets import ProjectedTarget
from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import increasing_times, whole

NODES = 16  # of the average over directions across H: six digits
OUTPUT_NODES = 64  # of the same average of relu itself


@dataclass(frozen=True, eq=False)
class ReducedParticles:
    """Neurons by a, b_H and q = ‖b_⊥‖; each stands for all directions across H."""

    a: np.ndarray  # (m,)
    P: np.ndarray  # (m, p)
    q: np.ndarray  # (m,)


@dataclass(frozen=True, eq=False)
class ReducedFlow:
    """Neurons, risk, and how much of the neurons' mass lies in H, at the times asked for."""

    times: np.ndarray  # (T,)
    states: tuple[ReducedParticles, ...]
    loss: np.ndarray  # (T,)
    inside: np.ndarray  # (T,) Σ|a|‖b‖cos² over Σ|a|‖b‖
    across: int  # d − dim H

    def output(self, X: np.ndarray, index: int = -1) -> np.ndarray:
        """Return f(x_i) = (1/m)Σ_j a_j E_s relu(⟨p_j, x_H⟩ + q_j‖x_⊥‖s) at a time, for rows of (n, d).

        s is the first coordinate of S^{across − 1}; the kink of relu leaves three to four digits.
        """
        s, p = self.states[index], self.states[index].P.shape[1]
        inner, cross = X[:, :p] @ s.P.T, np.outer(np.linalg.norm(X[:, p:], axis=1), s.q)
        nodes, weights = sphere_nodes(self.across, OUTPUT_NODES)
        terms = (w * (np.maximum(inner + node * cross, 0.0) @ s.a) for node, w in zip(nodes, weights, strict=True))
        return np.asarray(sum(terms) / len(s.a))


def reduced_field(
    P: np.ndarray, q: np.ndarray, a: np.ndarray, others: np.ndarray, other_q: np.ndarray, across: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return h = Σ_j a_j k(·, ·_j), shape (m,), and its derivatives by p, shape (m, p), and by q, shape (m,).

    k = E_s ‖b‖‖b′‖ψ((p·p′ + qq′s)/(‖b‖‖b′‖)), s the first coordinate of S^{across − 1}.
    """
    nodes, weights = sphere_nodes(across, NODES)
    size, other_size = np.sqrt((P**2).sum(axis=1) + q**2), np.sqrt((others**2).sum(axis=1) + other_q**2)
    scale = np.maximum(np.outer(size, other_size), TINY)
    inner, cross = P @ others.T, np.outer(q, other_q)
    h = np.zeros(len(q))
    by_p, by_q = np.zeros_like(P), np.zeros(len(q))
    for s, weight in zip(nodes, weights, strict=True):
        rho = np.clip((inner + s * cross) / scale, -1.0, 1.0)
        sine, angle = np.sqrt(1 - rho**2), math.pi - np.arccos(rho)
        h += weight * ((scale * (sine + rho * angle)) @ a)
        radial = weight * (sine @ (a * other_size)) / np.maximum(size, TINY)
        by_p += radial[:, None] * P + weight * ((angle * a) @ others)
        by_q += radial * q + weight * s * (angle @ (a * other_q))
    return tuple(part / (2 * math.pi) for part in (h, by_p, by_q))  # type: ignore[return-value]


def low_dimensional_flow(
    target: ProjectedTarget,
    d: int,
    m: int,
    times: Sequence[float],
    *,
    sigma: float = 1.0,
    seed: int = 0,
    tolerance: float = 1e-7,
) -> ReducedFlow:
    """Integrate a′ = G* − h, p′ = a∂_p(G* − h), q′ = a∂_q(G* − h) for m reduced neurons in dimension d.

    The start is that of `initial_particles`. The error against m → ∞ is of order 1/√m, smaller than that of m
    neurons in R^d, since the directions across H are averaged (Hajjar and Chizat 2023, arXiv:2211.08771, for the
    reduction).

    Raises
    ------
    InputError
        If a value is not usable.
    ConvergenceError
        If the integrator cannot keep the tolerance.
    """
    if not isinstance(target, ProjectedTarget):
        raise unusable("target", target, "give a ProjectedTarget")
    p = target.p
    across = whole("d", d, p + 1) - p
    grid = increasing_times(times)
    drawn = initial_particles(m, d, sigma, seed)
    start = ReducedParticles(drawn.a, drawn.B[:, :p], np.linalg.norm(drawn.B[:, p:], axis=1))

    def unpacked(flat: np.ndarray) -> ReducedParticles:
        return ReducedParticles(flat[:m], flat[m : m + m * p].reshape(m, p), flat[m + m * p :])

    def velocity(flat: np.ndarray) -> np.ndarray:
        s = unpacked(flat)
        G, by_p, by_q = target.reduced_field(s.P, s.q)
        h, h_p, h_q = reduced_field(s.P, s.q, s.a / m, s.P, s.q, across)
        return np.concatenate([G - h, (s.a[:, None] * (by_p - h_p)).ravel(), s.a * (by_q - h_q)])

    def loss(s: ReducedParticles) -> float:
        G = target.reduced_field(s.P, s.q)[0]
        h = reduced_field(s.P, s.q, s.a / m, s.P, s.q, across)[0]
        return float(0.5 * (target.second_moment - 2 * np.mean(s.a * G) + np.mean(s.a * h)))

    def inside(s: ReducedParticles) -> float:
        squares = (s.P**2).sum(axis=1)
        size = np.sqrt(squares + s.q**2)
        mass = np.abs(s.a) * size
        return float((mass * squares / np.maximum(size, TINY) ** 2).sum() / mass.sum())

    first = np.concatenate([start.a, start.P.ravel(), start.q])
    states = tuple(map(unpacked, integrate(velocity, first, grid, tolerance=tolerance, name="reduced flow")))
    losses, masses = np.array([loss(s) for s in states]), np.array([inside(s) for s in states])
    return ReducedFlow(grid, states, losses, masses, across)
