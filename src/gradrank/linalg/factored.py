"""`Factored`: a product XᵀΔ that is never multiplied out."""

import math

import torch

from gradrank.linalg.operators import Operator
from gradrank.linalg.products import largest_entry, skinny
from gradrank.linalg.small import singular_values, triangular_factor

FROBENIUS_BLOCKS = 8


class Factored(Operator):
    """The matrix XᵀΔ, shape (d, m), kept as its factors X (n, d) and Δ (n, m)."""

    def __init__(self, X: torch.Tensor, signal: torch.Tensor) -> None:
        self.X = X
        self.signal = signal
        self.shape = (X.shape[1], signal.shape[1])
        self.dtype, self.device = X.dtype, X.device

    @property
    def samples(self) -> int:
        """The number n of rows of the two factors."""
        return int(self.X.shape[0])

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return Xᵀ(Δ V)."""
        return skinny(self.X.T, skinny(self.signal, V))

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Δᵀ(X U)."""
        return skinny(self.signal.T, skinny(self.X, U))

    def magnitude(self) -> float:
        """Return max|X| · max|Δ|."""
        return largest_entry(self.X) * largest_entry(self.signal)

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Multiply out some columns."""
        return self.X.T @ self.signal[:, start:stop]

    def frobenius_squared(self) -> float:
        """Return ‖XᵀΔ‖_F² = ⟨XXᵀ, ΔΔᵀ⟩, from blocks of the two Gram matrices; only one of each symmetric pair is formed.

        Costs about n²(d + m) multiplications and memory for two blocks; where n is the largest dimension, columns of
        the product are formed a block at a time instead.
        """
        scale = self.magnitude()
        if scale == 0.0:
            return 0.0
        x_scale = largest_entry(self.X)
        n, (d, m) = self.samples, self.shape
        if n * (d + m) >= 2 * d * m:
            return super().frobenius_squared()
        total, height = 0.0, math.ceil(n / FROBENIUS_BLOCKS)
        rows = [slice(i, i + height) for i in range(0, n, height)]
        for i, left in enumerate(rows):
            for right in rows[: i + 1]:
                inputs = (self.X[left] / x_scale) @ (self.X[right] / x_scale).T
                signals = (self.signal[left] * (x_scale / scale)) @ (self.signal[right] * (x_scale / scale)).T
                total += (1 if left == right else 2) * float((inputs.double() * signals.double()).sum())
        return total * scale * scale

    def singular_values(self) -> torch.Tensor:
        """Return all min(d, m) singular values, descending.

        For n < min(d, m): with Xᵀ = Q_X R_X and Δᵀ = Q_Δ R_Δ (QR), XᵀΔ = Q_X (R_X R_Δᵀ) Q_Δᵀ, so the values are those of
        an n×n matrix and min(d, m) − n exact zeros. Orthogonal transformations only: nothing is squared, and the small
        values are as accurate as those of the dense product.
        """
        n, (d, m) = self.samples, self.shape
        scale = self.magnitude()
        if scale == 0.0:
            return torch.zeros(min(d, m), dtype=self.dtype, device=self.device)
        x_scale = largest_entry(self.X)
        if n >= min(d, m):
            return singular_values(self.X.T @ (self.signal / scale)) * scale
        core = triangular_factor(self.X.T / x_scale) @ triangular_factor(self.signal.T * (x_scale / scale)).T
        values = torch.linalg.svdvals(core) * scale
        return torch.cat([values, values.new_zeros(min(d, m) - n)])
