"""f*(x) = ‖x_H‖: the flow reduced to the angle to H and the size of each neuron."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import eval_jacobi, roots_jacobi

from gradrank.flow.symmetric.integration import integrate
from gradrank.flow.symmetric.kernels import zonal_eigenvalues
from gradrank.flow.symmetric.targets import norm_constant
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import above_zero, increasing_times, whole

COMPLETE = 1e-4  # of the start's loss p/2 that the harmonics may miss
ANGLES, DEGREES = 60, 100  # nodes of each sign, and even harmonics: six digits


class Harmonics:
    """Φ_n(θ), the one harmonic of degree 2n that rotations of H and of its complement leave alone, of mean square one."""

    def __init__(self, d: int, p: int, degrees: int = DEGREES) -> None:
        self.d, self.p = d, p
        self.alpha, self.beta = (d - p) / 2 - 1, p / 2 - 1
        self.n = np.arange(degrees + 1)
        nodes, weights = roots_jacobi(degrees + 1, self.alpha, self.beta)
        weights = weights / weights.sum()
        self.scale = (weights @ self._jacobi(nodes).T ** 2) ** -0.5
        self.eigenvalues = zonal_eigenvalues(d, 2 * self.n)

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return Φ_n(θ_j), shape (degrees + 1, N)."""
        return np.asarray(self.scale[:, None] * self._jacobi(np.cos(2 * theta)))

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """Return Φ_n′(θ_j), shape (degrees + 1, N)."""
        lower = np.maximum(self.n - 1, 0)[:, None]
        inner = eval_jacobi(lower, self.alpha + 1, self.beta + 1, np.cos(2 * theta)[None, :])
        factor = (self.n + self.alpha + self.beta + 1) / 2 * (self.n > 0)
        return np.asarray(self.scale[:, None] * factor[:, None] * inner * (-2 * np.sin(2 * theta)))

    def kernel(self, theta: float, other: float) -> float:
        """Return k(θ, θ′) = Σ λ_{2n}Φ_n(θ)Φ_n(θ′), K averaged over the rotations."""
        a, b = (self.values(np.array([angle]))[:, 0] for angle in (theta, other))
        return float((self.eigenvalues * a) @ b)

    def _jacobi(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(eval_jacobi(self.n[:, None], self.alpha, self.beta, x[None, :]))


@dataclass(frozen=True, eq=False)
class NormFlow:
    """Risk and alignment along the reduced flow; "positive" are the neurons with a > 0."""

    times: np.ndarray  # (T,)
    loss: np.ndarray  # (T,) ½E(f − f*)²
    mass_positive: np.ndarray  # (T,) Σ ω r² of the neurons with a > 0
    mass_negative: np.ndarray  # (T,)
    alignment_positive: np.ndarray  # (T,) mean of cos² of the angle to H, weighted by mass
    alignment_negative: np.ndarray  # (T,)
    angles: np.ndarray  # (T, 2, N) θ of the neurons, positive and negative
    sizes: np.ndarray  # (T, 2, N) r = ‖b‖ = |a|
    weights: np.ndarray  # (N,) ω of each node, both signs together adding up to one
    harmonics: Harmonics

    def output(self, X: np.ndarray, index: int = -1) -> np.ndarray:
        """Return f(x_i) of the infinitely wide network at a time, for rows of (n, d).

        A neuron averaged over the rotations is ‖x‖ Σ κ_{2n}Φ_n(θ_x)Φ_n(θ_j), κ_l the eigenvalues of relu on the sphere.
        """
        h, p = self.harmonics, self.harmonics.p
        size = np.linalg.norm(X, axis=1)
        cosine = np.linalg.norm(X[:, :p], axis=1) / np.maximum(size, 1e-300)
        mass = self.weights * self.sizes[index] ** 2
        sums = h.values(self.angles[index, 0]) @ mass[0] - h.values(self.angles[index, 1]) @ mass[1]
        relu = zonal_eigenvalues(h.d, 2 * h.n, lambda rho: np.maximum(rho, 0.0))
        return np.asarray(size * ((relu * sums) @ h.values(np.arccos(np.minimum(cosine, 1.0)))))


def norm_target_flow(
    d: int, p: int, times: Sequence[float], sigma: float = 1.0, *, angles: int = ANGLES, degrees: int = DEGREES
) -> NormFlow:
    """Integrate θ′ = ε∂_θg, (log r)′ = εg with g(θ) = c_p k(θ, 0) − Σ ω ε r² k(θ, θ_j), for inputs N(0, I_d) and dim H = p.

    b̂ = (cos θ u, sin θ v) with u in H and v across; the start is a = ±σ and b uniform on the σ-sphere, its angles the Gauss-Jacobi
    nodes of their law. The kernel is diagonal in the harmonics Φ_n, and so is the loss, ½Σ λ_{2n}(c_pΦ_n(0) − Σ ω ε r² Φ_n)²
    (Hajjar and Chizat 2023, arXiv:2211.08771, for the reduction; the spectral form is derived for this project).

    Parameters
    ----------
    d, p
        Input dimension, and dimension of H, 1 ≤ p < d.
    times
        Increasing times of at least 0.
    sigma
        σ.
    angles, degrees
        Resolution; the defaults give six digits.

    Raises
    ------
    InputError
        If a value is not usable, or the harmonics do not resolve the target (large d).
    """
    if whole("p", p, 1) >= whole("d", d, 2):
        raise unusable("p", p, f"give a number below d = {d}")
    angles, degrees, sigma = whole("angles", angles, 2), whole("degrees", degrees, 2), above_zero("sigma", sigma)
    grid = increasing_times(times)
    harmonics = Harmonics(d, p, degrees)
    nodes, weights = roots_jacobi(angles, harmonics.alpha, harmonics.beta)
    theta, weights = np.arccos(nodes) / 2, weights / weights.sum() / 2
    sign, omega = np.repeat([1.0, -1.0], angles), np.tile(weights, 2)
    wanted = norm_constant(p) * harmonics.values(np.zeros(1))[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        missing = abs(0.5 * float(harmonics.eigenvalues @ wanted**2) - p / 2)
    if not missing < COMPLETE * p:
        raise InputError(
            f"d: {d} with p = {p} is not resolved by {degrees} harmonics; give other degrees, or a smaller d"
        )

    def coefficients(angle: np.ndarray, log_r: np.ndarray) -> np.ndarray:
        return np.asarray(wanted - harmonics.values(angle) @ (omega * sign * np.exp(2 * log_r)))

    def velocity(flat: np.ndarray) -> np.ndarray:
        angle, log_r = np.split(flat, 2)
        residue = harmonics.eigenvalues * coefficients(angle, log_r)
        return np.concatenate([sign * (residue @ harmonics.slopes(angle)), sign * (residue @ harmonics.values(angle))])

    start = np.concatenate([np.tile(theta, 2), np.full(2 * angles, np.log(sigma))])
    states = integrate(velocity, start, grid, tolerance=1e-8, name="norm target")
    angle, log_r = np.split(states, 2, axis=1)
    mass = (omega * np.exp(2 * log_r)).reshape(-1, 2, angles)
    total = mass.sum(axis=2)
    aligned = (mass * np.cos(angle.reshape(mass.shape)) ** 2).sum(axis=2) / total
    loss = [0.5 * float(harmonics.eigenvalues @ coefficients(a, r) ** 2) for a, r in zip(angle, log_r, strict=True)]
    return NormFlow(
        times=grid,
        loss=np.array(loss),
        mass_positive=total[:, 0],
        mass_negative=total[:, 1],
        alignment_positive=aligned[:, 0],
        alignment_negative=aligned[:, 1],
        angles=angle.reshape(-1, 2, angles),
        sizes=np.exp(log_r).reshape(-1, 2, angles),
        weights=weights,
        harmonics=harmonics,
    )
