"""`Spectrum`: singular values and vectors that say how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from gradrank.linalg.operators import Operator


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a (d, m) matrix in descending order, with vectors and residual norms where they are known."""

    values: torch.Tensor  # (k,) descending
    left: torch.Tensor | None  # (d, k), orthonormal columns u_i
    right: torch.Tensor | None  # (m, k), orthonormal columns v_i
    residuals: torch.Tensor | None  # (k,) sqrt(‖G v_i − σ_i u_i‖² + ‖Gᵀ u_i − σ_i v_i‖²)
    converged: bool
    method: str
    steps: int = 0  # products with G and Gᵀ, counted in pairs
    status: str = "ok"  # "ok", "zero" or the reason why it did not converge

    @property
    def dtype(self) -> torch.dtype:
        """The precision that the values were computed in."""
        return self.values.dtype

    def __len__(self) -> int:
        return int(self.values.numel())

    def vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (left, right), shapes (d, k) and (m, k); they must have been computed."""
        if self.left is None or self.right is None:
            raise ValueError("this spectrum was computed without its vectors")
        return self.left, self.right

    def first(self, k: int) -> Spectrum:
        """Return the first k triplets."""
        return replace(
            self,
            values=self.values[:k],
            left=None if self.left is None else self.left[:, :k],
            right=None if self.right is None else self.right[:, :k],
            residuals=None if self.residuals is None else self.residuals[:k],
        )


def certified(spectrum: Spectrum, operator: Operator) -> Spectrum:
    """Return the spectrum with residuals measured against ``operator`` by one product with it and one with its transpose."""
    if spectrum.left is None or spectrum.right is None or spectrum.status == "zero":
        return spectrum
    U, V, scale = spectrum.left, spectrum.right, operator.magnitude()
    sigma = spectrum.values / scale
    forward = torch.linalg.vector_norm(operator.matmat(V / scale) - sigma * U, dim=0)
    backward = torch.linalg.vector_norm(operator.rmatmat(U / scale) - sigma * V, dim=0)
    return replace(spectrum, residuals=torch.hypot(forward, backward) * scale)
