"""`particle_flow`: the gradient flow of m neurons on the population risk, in closed form, or on samples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from gradrank.flow.symmetric.integration import integrate
from gradrank.flow.symmetric.kernels import relu_field, relu_gram
from gradrank.flow.symmetric.targets import Target
from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.numbers import above_zero, finite, increasing_times, whole
from gradrank.foundation.random import stream, unit_rows

EXACT, ON_SAMPLES = 1e-8, 1e-4  # tolerances


@dataclass(frozen=True, eq=False)
class Particles:
    """Neurons of the mean-field network f(x) = (1/m) Σ a_j relu(⟨b_j, x⟩)."""

    a: np.ndarray  # (m,)
    B: np.ndarray  # (m, d)

    def output(self, X: np.ndarray) -> np.ndarray:
        """Return f(x_i) for rows of (n, d)."""
        return np.asarray(np.maximum(X @ self.B.T, 0) @ self.a / len(self.a))

    def predictor(self) -> np.ndarray:
        """Return ½ (1/m) Σ a_j b_j, the w of the linear part of f, shape (d,)."""
        return np.asarray(self.a @ self.B / (2 * len(self.a)))

    def mirrored(self, T: np.ndarray, sign: float = 1.0) -> Particles:
        """Return (sign·a, Tb)."""
        return Particles(sign * self.a, self.B @ T.T)


class Risk(Protocol):
    """A risk with its gradient by every neuron."""

    def velocity(self, state: Particles) -> tuple[np.ndarray, np.ndarray]:
        """Return a′ = E[R relu(⟨b, x⟩)] and b′ = aE[R 1(⟨b, x⟩ > 0)x] with R = f* − f."""

    def loss(self, state: Particles) -> float:
        """Return ½E(f − f*)²."""


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """Inputs x ~ N(0, I): every expectation is closed."""

    target: Target

    def velocity(self, state: Particles) -> tuple[np.ndarray, np.ndarray]:
        """Return the velocities of a and B."""
        G, dG = self.target.field(state.B)
        h, dh = relu_field(state.B, state.a / len(state.a), state.B)
        return G - h, state.a[:, None] * (dG - dh)

    def loss(self, state: Particles) -> float:
        """Return ½[E f*² − 2(1/m)Σ a_j G*(b_j) + aᵀKa/m²]."""
        a = state.a / len(state.a)
        cross, own = a @ self.target.field(state.B)[0], a @ relu_gram(state.B, state.B) @ a
        return float(0.5 * (self.target.second_moment - 2 * cross + own))


@dataclass(frozen=True, eq=False)
class SampleRisk:
    """The mean over samples (X, y)."""

    X: np.ndarray
    y: np.ndarray

    def __post_init__(self) -> None:
        X = real_array("X", self.X, "samples (n, d)")
        y = real_array("y", self.y, "labels (n,)")
        if X.ndim != 2 or y.shape != X.shape[:1] or not len(X):
            raise InputError(f"y: shape {y.shape} for samples of shape {X.shape} is not allowed; give (n,) and (n, d)")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def velocity(self, state: Particles) -> tuple[np.ndarray, np.ndarray]:
        """Return the velocities of a and B."""
        H = self.X @ state.B.T
        active = np.maximum(H, 0)
        R = (self.y - active @ state.a / len(state.a)) / len(self.y)
        return active.T @ R, state.a[:, None] * ((R[:, None] * (H > 0)).T @ self.X)

    def loss(self, state: Particles) -> float:
        """Return the mean of ½(f − y)²."""
        return float(0.5 * np.mean((state.output(self.X) - self.y) ** 2))


class CorrelatedRisk:
    """A population risk for x ~ N(0, C), where the target is given as a function of C^(−½)x."""

    def __init__(self, target: Target, covariance: np.ndarray) -> None:
        if isinstance(target, type) or not hasattr(target, "field"):
            raise unusable("target", target, "give a target such as LinearTarget")
        self.white = PopulationRisk(target)
        C = real_array("covariance", covariance, "a covariance matrix (d, d)")
        if (
            C.ndim != 2
            or C.size == 0
            or C.shape[0] != C.shape[1]
            or not np.allclose(C, C.T, rtol=0, atol=1e-12 * np.abs(C).max(initial=0))
        ):
            raise InputError(f"covariance: shape {C.shape} is not allowed or it is not symmetric; give (d, d)")
        values, vectors = np.linalg.eigh(C)
        if values[0] < -1e-12 * abs(values[-1]):
            raise InputError("covariance: is not positive semidefinite; give a covariance matrix")
        self.root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T

    def velocity(self, state: Particles) -> tuple[np.ndarray, np.ndarray]:
        """Return the velocities: those of C^½b, taken back by C^½."""
        da, dB = self.white.velocity(Particles(state.a, state.B @ self.root))
        return da, dB @ self.root

    def loss(self, state: Particles) -> float:
        """Return ½E(f − f*)²."""
        return self.white.loss(Particles(state.a, state.B @ self.root))


@dataclass(frozen=True, eq=False)
class ParticleFlow:
    """Neurons, risk and what is conserved, at the times asked for."""

    times: np.ndarray  # (T,)
    states: tuple[Particles, ...]
    loss: np.ndarray  # (T,)
    imbalance: np.ndarray  # (T,) largest change of a_j² − ‖b_j‖² since the start


def initial_particles(
    m: int, d: int, sigma: float = 1.0, seed: int = 0, *, group: Sequence[tuple[float, Any]] = ()
) -> Particles:
    """Draw a = ±σ and b uniform on the sphere of radius σ, independent; or such a set closed under a group.

    Parameters
    ----------
    m, d
        Neurons and input dimension; m is a multiple of the group's order where one is given.
    sigma, seed
        σ, and the seed.
    group
        All elements of a finite group, the identity included, as pairs (sign, T): each drawn neuron (a, b) comes
        with (sign·a, Tb). The antipodal set of odd targets is [(1, I), (−1, −I)].

    Raises
    ------
    InputError
        If m is no multiple of the group's order, or a T is not orthogonal.
    """
    m, d, sigma = whole("m", m, 1), whole("d", d, 1), above_zero("sigma", sigma)
    _check_group(group, d)
    require_memory("m", 8.0 * m * (d + 1), "give fewer neurons or a smaller d")
    order = max(1, len(group))
    if m % order:
        raise unusable("m", m, f"give a multiple of the group's order {order}")
    rng = stream(whole("seed", seed, 0), "symmetric.particles")
    a = sigma * (rng.integers(0, 2, m // order) * 2.0 - 1.0)
    start = Particles(a, sigma * unit_rows(rng, m // order, d))
    if not group:
        return start
    copies = [start.mirrored(orthogonal(T, d), sign) for sign, T in group]
    return Particles(np.concatenate([copy.a for copy in copies]), np.concatenate([copy.B for copy in copies]))


def _check_group(group: Sequence[tuple[float, np.ndarray]], d: int) -> None:
    """Check that pairs (sign, T) with signs ±1 are closed under products: then they are a group."""
    if not isinstance(group, Sequence) or not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in group):
        raise InputError("group: is not a list of pairs; give pairs (sign, T) of 1 or −1 and an orthogonal matrix")
    members = [(finite("group.sign", sign), orthogonal(T, d)) for sign, T in group]
    if any(abs(sign) != 1 for sign, _ in members):
        raise unusable("group", [sign for sign, _ in members], "give signs of 1 and −1")
    for (s, T), (r, U) in itertools.product(members, repeat=2):
        if not any(v == s * r and np.allclose(V, T @ U, rtol=0, atol=1e-9) for v, V in members):
            raise InputError(
                "group: is not closed under products; give all elements of a finite group, the identity among them"
            )


def orthogonal(T: Any, d: int) -> np.ndarray:
    """Return an orthogonal matrix of shape (d, d), or raise an `InputError`."""
    array = real_array("T", T, f"an orthogonal ({d}, {d}) matrix")
    if array.shape != (d, d) or not np.allclose(array @ array.T, np.eye(d), rtol=0, atol=1e-12):
        raise InputError(
            f"T: shape {array.shape} is not allowed or it is not orthogonal; give an orthogonal ({d}, {d}) matrix"
        )
    return array


def particle_flow(
    target: Target | Risk,
    particles: Particles | int,
    times: Sequence[float],
    *,
    d: int | None = None,
    sigma: float = 1.0,
    seed: int = 0,
    tolerance: float | None = None,
) -> ParticleFlow:
    """Integrate a′ = E[R relu(⟨b, x⟩)], b′ = aE[R 1(⟨b, x⟩ > 0)x], R = f* − f, for x ~ N(0, I) or on samples.

    An embedded Runge-Kutta pair of order 5(4) (Dormand and Prince 1980) controls its steps; O(m²d) a stage.

    Parameters
    ----------
    target
        A target with closed expectations (`LinearTarget`, `NetworkTarget`, `NormTarget`, `ProjectedTarget`), or a
        risk: `SampleRisk`, `CorrelatedRisk`.
    particles
        The neurons at time 0, or how many to draw by `initial_particles`, with ``d``, ``sigma`` and ``seed``.
    times
        Increasing times of at least 0.
    tolerance
        Relative tolerance of a step; the absolute one is a hundredth of it. 1e-8 unless given; for samples 1e-4, since their
        velocity jumps wherever a neuron passes a sample.

    Raises
    ------
    InputError
        If a value is not usable.
    ConvergenceError
        If the integrator cannot keep the tolerance, or takes more than 30,000 evaluations for it.
    """
    grid = increasing_times(times)
    if isinstance(target, type) or not (hasattr(target, "velocity") or hasattr(target, "field")):
        raise unusable("target", target, "give a target such as LinearTarget, or a risk such as SampleRisk")
    if isinstance(particles, Particles):
        a, B = real_array("particles.a", particles.a, "(m,)"), real_array("particles.B", particles.B, "(m, d)")
        if B.ndim != 2 or a.shape != B.shape[:1] or not len(a):
            raise InputError(f"particles: shapes {a.shape} and {B.shape} are not allowed; give (m,) and (m, d)")
        start = Particles(a, B)
    elif d is None:
        raise InputError("d: is missing; give the input dimension together with the number of particles")
    else:
        start = initial_particles(particles, d, sigma, seed)
    risk: Any = target if hasattr(target, "velocity") else PopulationRisk(cast(Target, target))
    m, shape = len(start.a), start.B.shape
    try:
        risk.velocity(start)
    except InputError:
        raise
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(
            f"target: does not fit neurons of dimension {shape[1]} ({' '.join(str(error).split())})"
        ) from None
    if tolerance is None:
        tolerance = ON_SAMPLES if isinstance(risk, SampleRisk) else EXACT

    def unpacked(flat: np.ndarray) -> Particles:
        return Particles(flat[:m], flat[m:].reshape(shape))

    def velocity(flat: np.ndarray) -> np.ndarray:
        da, dB = risk.velocity(unpacked(flat))
        return np.concatenate([da, dB.ravel()])

    first = np.concatenate([start.a, start.B.ravel()])
    states = tuple(map(unpacked, integrate(velocity, first, grid, tolerance=tolerance, name="particle flow")))
    balance = start.a**2 - (start.B**2).sum(axis=1)
    drift = [float(np.abs(s.a**2 - (s.B**2).sum(axis=1) - balance).max()) for s in states]
    return ParticleFlow(grid, states, np.array([risk.loss(s) for s in states]), np.array(drift))
