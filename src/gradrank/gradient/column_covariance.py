"""Second moments of a column of the gradient over the neuron's weights, at fixed inputs and residue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.expectations import gaussian_expectation
from gradrank.foundation.gaussian_kernels import gaussian_kernel
from gradrank.foundation.shifted_moments import ShiftedMoments
from gradrank.foundation.smoothing import Function
from gradrank.gradient.conditioning import Conditioning
from gradrank.gradient.kernel import breaks_of, derivative_kernel, scales_and_correlations
from gradrank.gradient.setting import Setting
from gradrank.linalg.gaussian_columns import resolution

NEGLIGIBLE = 1e-8  # a signed cross term below this share of the rest is zero by parity


class ColumnCovariances:
    """The classes of columns √m G eⱼ with their second moments C_b, in a basis of the space that G lives in.

    Given inputs X and residue r the columns over independent w ~ N(0, I/d) and a = ±1 are independent,

        g = a Xᵀ(ρ ∘ σ′(Xw)) + Xᵀ(π ∘ (σ′σ″)(Xw)) + √m λ w,   ρ = √m γ r/n,  π = √m λ_J γ² ‖x‖²/n,

    of second moment Xᵀ(RΦ₁₁R + PΦ₂₂P ± (RΦ₁₂P + PΦ₂₁R))X + mλ² I/d ± λ√m (J + Jᵀ) + λ√m (K + Kᵀ), the sign being that
    of a, R = diag ρ, P = diag π, Φ_pq = E f_p(wᵀxᵢ) f_q(wᵀxₖ) with f₁ = σ′ and f₂ = σ′σ″, and by Stein's lemma
    J = E Xᵀ(ρ ∘ σ′(Xw)) wᵀ = Xᵀ diag(ρᵢ E σ″(wᵀxᵢ)) X/d, K likewise of P and f₂. Where the signed terms vanish, by
    parity, there is one class; else two. With `Conditioning` there is one (or two) for each value of κ = wᵀq.

    Parameters
    ----------
    setting
        Inputs, residue and network.
    conditioning
        Values of κ with their weights, or None.

    Raises
    ------
    InputError
        If weight decay is to be conditioned on κ, which is not derived.
    ConvergenceError
        If a kernel does not reach its accuracy.
    """

    def __init__(self, setting: Setting, conditioning: Conditioning | None) -> None:
        if conditioning is not None and setting.weight_decay > 0:
            always = setting.inner in ("aligned", "orthogonal")
            way_out = "give weights that do not depend on q" if always else "give conditioning = 'none'"
            raise InputError(
                "regularisers.weight_decay: not allowed together with conditioning on κ = wᵀq, for which its cross term "
                f"is not derived; {way_out}"
            )
        self.setting, self.conditioning = setting, conditioning
        weights = [setting.signal_weights] + ([setting.penalty_weights] if setting.jacobian > 0 else [])
        decay = setting.weight_decay * math.sqrt(setting.m)
        unit = max(float(w.abs().max()) for w in weights)
        largest = float(setting.X.abs().max())
        self.scale = unit * largest or decay  # of the columns: no square of theirs leaves the number range
        if not math.isfinite(self.scale) or self.scale == 0.0:
            raise InputError("residue: all zero or not finite, so that the gradient has no spectrum to predict")
        self._weights = [w / unit if unit > 0 else w for w in weights]
        self._decay = decay / self.scale
        X = setting.X / largest if largest > 0 else setting.X
        n, d = X.shape
        self.basis: torch.Tensor | None = None  # (d, K) orthonormal columns, or None for the unit vectors of R^d
        self._left = X.T  # (K, n): C = left Ψ leftᵀ for second moments Ψ of the signals
        if n < d and not decay:
            self.basis, self._left = torch.linalg.qr(X.T)
        self._X = X
        self.error = 0.0

    @cached_property
    def signs(self) -> tuple[float, ...]:
        """The signs of a that make a difference: (1,) where the cross terms vanish, (1, −1) else."""
        return (1.0,) if self._signed_part_vanishes() else (1.0, -1.0)

    @property
    def weights(self) -> list[float]:
        """Shares of the columns, one for each class."""
        shares = [1.0] if self.conditioning is None else self.conditioning.weights.tolist()
        return [share / len(self.signs) for share in shares for _ in self.signs]

    def covariance(self, index: int) -> torch.Tensor:
        """Return C_b, shape (K, K), in units of ``scale`` squared."""
        node, sign = divmod(index, len(self.signs))
        signed = self._weights if len(self.signs) == 1 else [self.signs[sign] * self._weights[0], *self._weights[1:]]
        moments = self._moments(signed) if self.conditioning is None else self._conditioned.matrix(node, signed)
        C = self._left @ moments @ self._left.T
        if self._decay:
            C += self._decay_terms(signed)
        return (C + C.T) / 2

    @cached_property
    def rank(self) -> int:
        """The rank of the gradient for weights in general position: of X beside what multiplies it, at most m."""
        if self._decay:
            return min(len(self._left), self.setting.m)
        active = torch.stack(self._weights).abs().amax(dim=0)
        values = torch.linalg.svdvals(self._left * active)
        return min(int((values > resolution(len(self._left)) * values[0]).sum()), self.setting.m)

    def combine(self, H: torch.Tensor, signs: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        """Return columns √m G eⱼ, shape (K, m), of neurons with preactivations H (n, m), signs a (m,) and weights W (m, d)."""
        signal = torch.zeros_like(H)
        for weight, (f, _), sign in zip(self._weights, self._functions, (signs, torch.ones_like(signs)), strict=False):
            signal += weight[:, None] * f(H) * sign
        columns = self._left @ signal
        return columns + self._decay * W.T if self._decay else columns

    @cached_property
    def _functions(self) -> list[tuple[Function, tuple[float, ...]]]:
        sigma = self.setting.activation
        largest = float(torch.linalg.vector_norm(self.setting.X, dim=1).max()) / math.sqrt(self.setting.X.shape[1])
        breaks = breaks_of(sigma, largest)
        functions: list[tuple[Function, tuple[float, ...]]] = [(sigma.derivative, breaks)]
        if self.setting.jacobian > 0:
            functions.append((self.setting.slope_product, breaks))
        return functions

    @cached_property
    def _conditioned(self) -> ShiftedMoments:
        """Coefficients of the conditioned moments; the kernel's arguments are in the data's own units."""
        assert self.conditioning is not None
        t, s, rho = self.conditioning.split(self.setting.X)
        moments = ShiftedMoments(self._functions, t, s, rho, self.conditioning.kappa)
        self.error = moments.error
        return moments

    @cached_property
    def _kernels(self) -> dict[tuple[int, int], torch.Tensor]:
        """Φ_pq of the functions."""
        first = derivative_kernel(self.setting.X, self.setting.activation)
        kernels, self.error = {(0, 0): first.value}, first.error
        if len(self._functions) > 1:
            s, rho = scales_and_correlations(self.setting.X)
            for p, q in ((1, 1), (0, 1)):
                (f, breaks_f), (g, breaks_g) = self._functions[p], self._functions[q]
                kernel = gaussian_kernel(f, g, breaks_f, breaks_g, s, rho)
                kernels[p, q] = kernel.value
                self.error = max(self.error, kernel.error)
        return kernels

    def _moments(self, weights: list[torch.Tensor]) -> torch.Tensor:
        """Return Ψ = Σ_pq A_p Φ_pq A_q for diagonal A, shape (n, n)."""
        total = torch.zeros(len(self._X), len(self._X), dtype=torch.float64)
        for (p, q), kernel in self._kernels.items():
            term = weights[p][:, None] * kernel * weights[q]
            total += term if p == q else term + term.T
        return total

    def _decay_terms(self, weights: list[torch.Tensor]) -> torch.Tensor:
        """Return mλ² I/d + λ√m (J + Jᵀ + K + Kᵀ) in units of the scale; the signs are in the weights."""
        d = self._X.shape[1]
        C = torch.eye(d, dtype=torch.float64) * (self._decay**2 / d)
        for weight, slope in zip(weights, self._mean_slopes, strict=True):
            C += (2 * self._decay / d) * (self._X.T @ ((weight * slope)[:, None] * self._X))
        return C

    @cached_property
    def _mean_slopes(self) -> list[torch.Tensor]:
        """E f_p′(wᵀxᵢ) = E[t f_p(t)]/sᵢ² over t = wᵀxᵢ ~ N(0, sᵢ²), in units that go with the scaled X; shape (n,) each.

        By Stein's lemma, so that a jump of f_p needs no derivative. X enters J twice and the scale once: one factor of
        the largest entry stays.
        """
        s = torch.linalg.vector_norm(self.setting.X, dim=1) / math.sqrt(self.setting.X.shape[1])
        largest = float(self.setting.X.abs().max())
        slopes = []
        for f, breaks in self._functions:
            moment = gaussian_expectation(lambda t, f=f: t * f(t), s, breaks=breaks).value  # type: ignore[misc]
            slopes.append(torch.where(s > 0, moment / s.square().clamp(min=1e-300), 0.0) * largest)
        return slopes

    def _signed_part_vanishes(self) -> bool:
        """Return whether the terms that change sign with a are zero."""
        parts = list(self._signed_parts())
        return all(float(signed.abs().max()) <= NEGLIGIBLE * float(whole.abs().max()) for signed, whole in parts)

    def _signed_parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield each signed term with an unsigned one to compare it with."""
        if self.setting.jacobian > 0:
            if self.conditioning is not None:
                # At κ ≠ 0 the argument is not symmetric: parity says nothing.
                yield torch.ones(1), torch.ones(1)
            else:
                scale = torch.sqrt(self._kernels[0, 0].diagonal() * self._kernels[1, 1].diagonal())
                yield self._kernels[0, 1], scale
        if self._decay:
            first = self._kernels[0, 0].diagonal().sqrt()
            yield self._mean_slopes[0], first
