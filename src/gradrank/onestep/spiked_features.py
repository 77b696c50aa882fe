"""Random features with a large spike in the limit n, d, m → ∞: the equations of `spiked_equivalent` without a draw.

Unknown are q(s), on nodes of the law of s = ⟨v̂, w⟩, and dₖ, on nodes k of the spike's coordinate with weights ωₖ.
With tₖ = ωₖ/(1 + dₖ),

    μ(s) = 1/(λ + Σ tₖ c₂(s, k) + q(s)),     Ψₖₗ = ψ₂ E_s[μ c₁(s, k) c₁(s, l)],     Y = (I + ΨT)⁻¹Ψ,
    q(s) = c₁(s, ·)ᵀ(T − TYT) c₁(s, ·),      dₖ = (Yₖₖ + ψ₂ E_s[μ c₂(s, k)])/ψ₁,

T = diag(t). Y is the limit of (1/d) tr(Ŵᵀ D_k Q D_l Ŵ), D_k = diag(c₁(·, k)), Ŵ the unit w⊥. The conditional means
leave the residue M = (I + mHT)⁻¹t₀ with Hₖₗ = E_s[μ c₀(s, k) c₀(s, l)], which vanishes as m → ∞ on the span of the
functions c₀(s, ·). Then, ∂ₖ being the derivative by tₖ at fixed λ,

    T̄ₖ = M² + t₁² + t₂ + noise² − 2 t₁ₖ (Y a)ₖ − aᵀ(∂ₖY)a − m E_s[∂ₖμ (Σ c₀(s, l) tₗ Mₗ)²],     a = T t₁,
    Kₖₗ = −∂ₗdₖ,     risk = Σ ωₖ [(I − K diag(ωw²))⁻¹ T̄]ₖ − noise².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

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

SPAN = 5.5  # standard deviations of k and of s that the rules cover
MOST = 2000
TOLERANCE = 1e-11


@dataclass(frozen=True, eq=False)
class SpikedFeatures:
    """Moments on the nodes, which depend on neither ψ, λ nor the noise."""

    features: FeatureMoments  # (S, K)
    teacher: FeatureMoments  # (K,)
    law: np.ndarray  # weights of the nodes of s (S,)
    weights: np.ndarray  # ω (K,)

    @classmethod
    def of(
        cls, sigma: Scalar, teacher: Scalar, r: float, c: float, tau: float, outer: str = "gaussian"
    ) -> SpikedFeatures:
        """Return the moments for s = r ã, ã Gaussian or ±1, the cosine c of v̂ and β, and ‖w⊥‖² = 1 + τã²."""
        count = count_of_nodes(abs(r))
        k, weights = trapezoid(SPAN, 2 * count - 1)
        a, law = trapezoid(SPAN, count) if outer == "gaussian" else (np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
        features = feature_moments(sigma, r * a, np.sqrt(1 + tau * a**2), k)
        require_resolved(sigma.name, law[:, None] * weights * features.second, a, k)
        return cls(features, teacher_moments(teacher, c, k), law, weights)

    def risks(
        self, ridges: np.ndarray, psi1: float, psi2: float, noise: float, width: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the risk and the fixed point's residual for every λ > 0, from the largest to the smallest, each warm-started."""
        risk, residual = np.empty(len(ridges)), np.empty(len(ridges))
        state = np.ones(len(self.law) + len(self.weights))
        with threadpool_limits(limits=1, user_api="blas"):  # threads cost more than they gain on matrices this small
            for index in np.argsort(-ridges):
                ridge = float(ridges[index])
                image = partial(self._image, ridge, psi1, psi2)
                name = f"large step, ridge {ridge:.3g}"
                state, residual[index] = fixed_point(image, state, tolerance=TOLERANCE, most=MOST, name=name)
                risk[index] = self._risk(ridge, psi1, psi2, noise, width, state)
        return risk, residual

    def _image(self, ridge: float, psi1: float, psi2: float, state: np.ndarray) -> np.ndarray:
        f = self.features
        t, mu, psi = self._given(ridge, psi2, state)
        root = np.sqrt(t)
        # T − TYT = √T (I + √TΨ√T)⁻¹ √T, by a Cholesky factor: q stays positive where the difference would cancel.
        lower = np.linalg.cholesky(np.eye(len(t)) + root[:, None] * psi * root)
        q = np.square(scipy.linalg.solve_triangular(lower, root[:, None] * f.slope.T, lower=True)).sum(axis=0)
        Y = np.diag(scipy.linalg.cho_solve((lower, True), root[:, None] * psi)) / root
        d = (Y + psi2 * (self.law * mu) @ f.rest) / psi1
        return np.concatenate([ridge + q, 1 + np.maximum(d, 0.0)])

    def _given(self, ridge: float, psi2: float, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, μ(s) and Ψ from λ + q and 1 + d."""
        f, (penalty, factor) = self.features, np.split(state, [len(self.law)])
        t = self.weights / np.maximum(factor, 1.0)
        mu = 1 / (np.maximum(penalty, ridge) + f.rest @ t)
        return t, mu, psi2 * (f.slope.T * (self.law * mu)) @ f.slope

    def _risk(self, ridge: float, psi1: float, psi2: float, noise: float, width: float, state: np.ndarray) -> float:
        f, teacher = self.features, self.teacher
        t, mu, psi = self._given(ridge, psi2, state)
        Z = np.linalg.inv(np.eye(len(t)) + psi * t)
        Y = Z @ psi
        A = f.slope @ Z.T  # c₁(s, ·)ᵀ(I − TY)
        L = (A * t) @ f.slope.T
        # ∂ₖq and ∂ₖμ for every k, from the derivative of the fixed point at t held apart from d.
        couple = psi2 * L**2 * (self.law * mu**2)
        dq = np.linalg.solve(np.eye(len(mu)) - couple, A**2 + couple @ f.rest)
        dmu = -(mu**2)[:, None] * (f.rest + dq)  # (S, K)
        linear = t * teacher.slope
        along = psi2 * (self.law * (A @ linear) ** 2) @ dmu - (Y @ linear) ** 2  # aᵀ(∂ₖY)a
        alone = teacher.slope**2 + teacher.rest + noise**2 - 2 * teacher.slope * (Y @ linear) - along
        if math.isfinite(width):
            H = (f.mean.T * (self.law * mu)) @ f.mean
            M = np.linalg.solve(np.eye(len(t)) + width * H * t, teacher.mean)
            alone = alone + M**2 - width * (self.law * (f.mean @ (t * M)) ** 2) @ dmu
        else:
            alone = alone + self._unlearned(mu, t) ** 2
        slope_d = (psi2 * (A**2 + f.rest).T @ (self.law[:, None] * dmu) - Y**2) / psi1  # ∂ₗdₖ
        w = t / self.weights
        total = np.linalg.solve(np.eye(len(t)) + slope_d * (self.weights * w**2), alone)
        return float(self.weights @ total - noise**2)

    def _unlearned(self, mu: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return M for m → ∞: what of the conditional mean t₀ is outside the span of the c₀(s, ·), in the metric of T."""
        f = self.features
        basis = (f.mean * np.sqrt(self.law * mu)[:, None] * np.sqrt(t)).T  # (K, S)
        left, values, _ = np.linalg.svd(basis, full_matrices=False)
        left = left[:, values > 1e-10 * values[0]] if values[0] > 0 else left[:, :0]
        target = self.teacher.mean * np.sqrt(t)
        return np.asarray((target - left @ (left.T @ target)) / np.sqrt(t))
