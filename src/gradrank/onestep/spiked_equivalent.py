"""The conditional Gaussian equivalent of features with a large spike, for actual weights.

Given k = ⟨v̂, x⟩, the features of neuron j are c₀ⱼ(k) + c₁ⱼ(k) gⱼ + √c₂ⱼ(k) zⱼ with gⱼ = ⟨w⊥ⱼ, x⟩/‖w⊥ⱼ‖ and independent zⱼ, so that
their covariance is Σₖ = (c₁c₁ᵀ) ∘ Ĝ + diag(c₂), Ĝ the Gram matrix of the unit w⊥ⱼ. With nodes k of weights ωₖ and Sₖ = Σₖ + c₀c₀ᵀ,

    Q = (λ + Σ ωₖ wₖ Sₖ)⁻¹,     wₖ = 1/(1 + dₖ),     dₖ = tr(Sₖ Q)/n,
    ā = Q Σ ωₖ wₖ (t₀c₀ + rₖ),     T̄ₖ = (t₀ − c₀ᵀā)² + t₁² + t₂ + noise² − 2rₖᵀā + āᵀΣₖā,
    T = T̄ + K(ω w² T),     Kₖₗ = tr(Sₖ Q Sₗ Q)/n,     risk = Σ ωₖ Tₖ − noise²,

with rₖ the covariance of features and teacher given k. Averaging Σₖ over k first is wrong by up to 40 %: leverage
and residual variance depend on k. Derived for this project, checked against simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from gradrank.foundation.errors import InputError
from gradrank.linalg.fixed_point import fixed_point
from gradrank.onestep.conditional_moments import (
    FeatureMoments,
    count_of_nodes,
    feature_moments,
    require_resolved,
    teacher_moments,
    trapezoid,
)
from gradrank.onestep.functions import Scalar

SPAN = 5.5  # of the rule over k
MOST = 200  # evaluations of the fixed point
TOLERANCE = 1e-9  # of d, relative
STRONGEST = 200.0  # |⟨v̂, w_j⟩|, for which the rule over k has 4001 nodes
ROWS = 64  # of the products at a time


@dataclass(frozen=True, eq=False)
class SpikedEquivalent:
    """Everything that does not depend on n, λ and the noise."""

    gram: np.ndarray  # Ĝ (N, N)
    features: FeatureMoments  # (N, K)
    teacher: FeatureMoments  # (K,)
    cross: np.ndarray  # r (N, K)
    weights: np.ndarray  # ω (K,)

    @classmethod
    def of(cls, W: np.ndarray, beta: np.ndarray, v: np.ndarray, sigma: Scalar, teacher: Scalar) -> SpikedEquivalent:
        """Return the equivalent for weights W (N, d), the teacher's direction β and the spike's direction v, both of norm one."""
        s = W @ v
        strongest = float(np.abs(s).max())
        if strongest > STRONGEST:
            raise InputError(f"weights: |⟨v̂, w_j⟩| is {strongest:.3g} for a neuron; up to {STRONGEST:g} is resolved")
        k, weights = trapezoid(SPAN, count_of_nodes(strongest))
        across = W - np.outer(s, v)
        rho = np.linalg.norm(across, axis=1)
        unit = across / np.maximum(rho, np.finfo(float).tiny)[:, None]
        cosine = float(np.clip(beta @ v, -1.0, 1.0))
        beta_across = beta - cosine * v
        size = np.linalg.norm(beta_across)
        features, target = feature_moments(sigma, s, rho, k), teacher_moments(teacher, cosine, k)
        require_resolved(sigma.name, weights * features.second.mean(axis=0), k)
        seen = unit @ (beta_across / size) if size > 1e-12 else np.zeros(len(W))
        return cls(unit @ unit.T, features, target, target.slope * features.slope * seen[:, None], weights)

    def risks(self, ridges: np.ndarray, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the risk and the fixed point's residual for every λ > 0, from the largest to the smallest, each warm-started."""
        risk, residual = np.empty(len(ridges)), np.empty(len(ridges))
        factor = np.ones(len(self.weights))  # 1 + d
        for index in np.argsort(-ridges):
            image = partial(self._image, float(ridges[index]), n)
            name = f"leverages, ridge {ridges[index]:.3g}"
            factor, residual[index] = fixed_point(image, factor, tolerance=TOLERANCE, most=MOST, name=name)
            w = 1 / factor
            risk[index] = self._risk(self._resolvent(float(ridges[index]), w), w, n, noise)
        return risk, residual

    def _image(self, ridge: float, n: int, factor: np.ndarray) -> np.ndarray:
        return 1 + self._leverage(self._resolvent(ridge, 1 / np.maximum(factor, 1.0))) / n

    def _resolvent(self, ridge: float, w: np.ndarray) -> np.ndarray:
        """Return Q, shape (N, N)."""
        t, f = self.weights * w, self.features
        total = ((f.slope * t) @ f.slope.T) * self.gram + (f.mean * t) @ f.mean.T
        total[np.diag_indices_from(total)] += f.rest @ t + ridge
        lower = scipy.linalg.lapack.dpotrf(total, lower=1, clean=0)[0]
        inverse = scipy.linalg.lapack.dpotri(lower, lower=1)[0]
        return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)

    def _leverage(self, Q: np.ndarray) -> np.ndarray:
        """Return tr(Sₖ Q), shape (K,)."""
        f = self.features
        linear = (f.slope * ((self.gram * Q) @ f.slope)).sum(axis=0)
        return np.asarray(linear + np.diag(Q) @ f.rest + (f.mean * (Q @ f.mean)).sum(axis=0))

    def _risk(self, Q: np.ndarray, w: np.ndarray, n: int, noise: float) -> float:
        f, t = self.features, self.teacher
        a = Q @ ((f.mean * t.mean + self.cross) @ (self.weights * w))
        inside = f.slope * a[:, None]
        spread = (inside * (self.gram @ inside)).sum(axis=0) + (a**2) @ f.rest
        residue = t.mean - f.mean.T @ a
        alone = residue**2 + t.slope**2 + t.rest + noise**2 - 2 * self.cross.T @ a + spread
        coupling = self._coupling(Q) / n
        total = np.linalg.solve(np.eye(len(w)) - coupling * (self.weights * w**2), alone)
        return float(self.weights @ total - noise**2)

    def _coupling(self, Q: np.ndarray) -> np.ndarray:
        """Return tr(Sₖ Q Sₗ Q) = Σᵢⱼ (SₖQ)ᵢⱼ (SₗQ)ⱼᵢ, shape (K, K), from the K products SₖQ."""
        f, count = self.features, len(self.weights)
        products = np.empty((count, *Q.shape))
        for k in range(count):
            S = np.outer(f.slope[:, k], f.slope[:, k]) * self.gram + np.outer(f.mean[:, k], f.mean[:, k])
            S[np.diag_indices_from(S)] += f.rest[:, k]
            np.matmul(S, Q, out=products[k])
        total = np.zeros((count, count))
        for start in range(0, len(Q), ROWS):  # the transposes would need as much memory again
            rows = products[:, start : start + ROWS].reshape(count, -1)
            columns = products[:, :, start : start + ROWS].transpose(0, 2, 1).reshape(count, -1)
            total += rows @ columns.T
        return total
