"""The fluctuating traces tr S(S + t)⁻¹ of a sample covariance matrix: their means and covariances in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradrank.foundation.errors import ConvergenceError
from gradrank.linalg.silverstein_equation import Reals

MAX_STEPS = 200
CONVERGED = 1e-14


def traces(eigenvalues: Reals, t: Reals) -> Reals:
    """Return D(t) = tr S(S + t)⁻¹ = Σ λ/(λ + t), t > 0, from the eigenvalues λ of S; the shape of t, (J,)."""
    return np.asarray((eigenvalues / (eigenvalues + t[:, None])).sum(axis=1))


@dataclass(frozen=True, eq=False)
class TraceStatistics:
    """Law of D(t) = tr S(S + t)⁻¹ for S = XᵀX/n with n independent Gaussian rows of covariance Σ = diag(τ) + s q qᵀ.

    q is uniform on the unit sphere and unknown. Let κ solve κ = t + (κ/n) tr Σ(Σ + κ)⁻¹, which is Silverstein's
    equation with m̃(−t) = 1/κ. To leading order in 1/n the D(t) are jointly normal (Bai and Silverstein 2004, theorem
    1.1, real case). With x = τ/(τ + κ), A_p = (1/n) Σ x^p:

        E D = n (1 − t/κ) − (1 − A₁)(A₂ − A₃)/(1 − A₂)²

        Cov(D_i, D_j) = 2 t_i t_j [(1 − A_ii) Y_ij + Z_ij²] / [(1 − A_ii)(1 − A_jj)(1 − A_ij)²]

    A_ij = (1/n) Σ x_i x_j, y_ij = τ/((τ + κ_i)(τ + κ_j)), Y = (1/n) Σ y², Z = (1/n) Σ x_i y_ij: the covariance of that
    theorem, 2 [m̃′m̃′/(m̃ − m̃)² − 1/(t_i − t_j)²] t_i t_j, written without its cancellation. The rank-one term enters
    κ exactly for the mean q_k² = 1/d, the covariance also through the scatter of q_k² (first order), and the sums A_p, of
    which it is one term of n, as an eigenvalue s + mean τ.
    """

    population: Reals  # (d,) τ > 0
    rank_one: float  # s ≥ 0
    rows: int  # n
    t: Reals  # (J,) positive

    @cached_property
    def kappa(self) -> Reals:
        """κ(t), shape (J,): Newton's iteration on a convex function, from above."""
        tau, n = self.population, self.rows
        kappa = self.t + (float(tau.sum()) + self.rank_one) / n
        for _ in range(MAX_STEPS):
            inverse = 1.0 / (tau + kappa[:, None])
            own, slope = self._rank_one_trace(kappa, inverse)
            residual = kappa * (1.0 - (inverse @ tau + own) / n) - self.t
            step = residual / (1.0 - ((inverse * inverse) @ (tau * tau) + own + kappa * slope) / n)
            if bool((step <= CONVERGED * kappa).all()):  # rounding alone turns it round
                return kappa
            kappa = kappa - np.maximum(step, 0.0)
        raise ConvergenceError(f"trace statistics: κ(t) not found at t = {float(self.t[0]):.6g} in {MAX_STEPS} steps")

    @cached_property
    def mean(self) -> Reals:
        """E D(t), shape (J,)."""
        x, weights = self._shares, self._weights / self.rows
        A1, A2, A3 = x @ weights, (x * x) @ weights, (x * x * x) @ weights
        leading = self.rows * (1.0 - self.t / self.kappa)
        return np.asarray(leading - (1.0 - A1) * (A2 - A3) / (1.0 - A2) ** 2)

    @cached_property
    def covariance(self) -> Reals:
        """Cov(D(t_i), D(t_j)), shape (J, J)."""
        n, x, kappa, t, weights = self.rows, self._shares, self.kappa, self.t, self._weights
        A = (x * weights) @ x.T / n
        below = 1.0 - np.diag(A)
        y = x[None, :, :] * (1.0 - x[:, None, :]) / kappa[:, None, None]
        Y = (y * y) @ weights / n
        Z = (x[:, None, :] * y) @ weights / n
        noise = 2.0 * np.outer(t, t) * (below[:, None] * Y + Z**2) / (np.outer(below, below) * (1.0 - A) ** 2)
        # κ moves with the rank-one term: dD = (t/κ)/(1 − A₂) dg.
        share = t / kappa / below
        return np.asarray(noise + np.outer(share, share) * self._direction_scatter)

    @property
    def _weights(self) -> Reals:
        """The weights of the terms in the sums A_p: τ and, where s > 0, the spike in the place of a mean τ."""
        d = len(self.population)
        return np.ones(d) if self.rank_one == 0.0 else np.append(np.full(d, 1.0 - 1.0 / d), 1.0)

    @cached_property
    def _shares(self) -> Reals:
        """The shares x of τ and, where s > 0, of the spike at s + mean τ; shape (J, d) or (J, d + 1)."""
        tau = self.population
        if self.rank_one > 0.0:
            tau = np.append(tau, self.rank_one + float(tau.mean()))
        return np.asarray(tau / (tau + self.kappa[:, None]))

    def _rank_one_trace(self, kappa: Reals, inverse: Reals) -> tuple[Reals, Reals]:
        """Return what s q qᵀ adds to tr Σ(Σ + κ)⁻¹, g = −κ d/dκ log(1 + s qᵀ(τ + κ)⁻¹q), and dg/dκ; shapes (J,).

        ``inverse`` is (τ + κ)⁻¹, shape (J, d).
        """
        if self.rank_one == 0.0:
            return np.zeros_like(kappa), np.zeros_like(kappa)
        squares = inverse * inverse
        u, v, w = (self.rank_one * part.mean(axis=1) for part in (inverse, squares, squares * inverse))
        g = kappa * v / (1.0 + u)
        return g, (v - 2.0 * kappa * w) / (1.0 + u) + kappa * (v / (1.0 + u)) ** 2

    @property
    def _direction_scatter(self) -> Reals:
        """Cov(g_i, g_j) over q, from Cov(q_k², q_l²) = 2/(d(d + 2)) (δ_kl − 1/d); shape (J, J)."""
        d, kappa = len(self.population), self.kappa
        inverse = 1.0 / (self.population + kappa[:, None])
        u, v = self.rank_one * inverse.mean(axis=1), self.rank_one * (inverse**2).mean(axis=1)
        first = inverse**2 / (1.0 + u)[:, None]
        second = inverse * (v / (1.0 + u) ** 2)[:, None]
        slope = (self.rank_one * kappa)[:, None] * (first - second)
        slope = slope - slope.mean(axis=1, keepdims=True)
        return np.asarray(2.0 / (d * (d + 2)) * (slope @ slope.T))
