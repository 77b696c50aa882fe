"""`LowRank`: a matrix of small rank kept as its factors; its norms are products of vector norms or tiny SVDs."""

import torch

from gradrank.linalg.operators import Operator
from gradrank.linalg.products import largest_entry
from gradrank.linalg.small import triangular_factor


class LowRank(Operator):
    """The matrix Σ_i values_i left_i right_iᵀ, shape (d, m), of rank at most k; no (d, m) array is formed."""

    def __init__(self, left: torch.Tensor, values: torch.Tensor, right: torch.Tensor) -> None:
        self.left = left  # (d, k)
        self.values = values  # (k,)
        self.right = right  # (m, k)
        self.shape = (left.shape[0], right.shape[0])
        self.dtype, self.device = left.dtype, left.device

    @classmethod
    def rank_one(cls, left: torch.Tensor, right: torch.Tensor) -> "LowRank":
        """Return left rightᵀ from vectors of shape (d,) and (m,), stored as a norm and two unit vectors."""
        a, b = _norm(left), _norm(right)
        unit_left = left / a if a > 0 else left
        unit_right = right / b if b > 0 else right
        return cls(unit_left[:, None], left.new_tensor([a * b]), unit_right[:, None])

    @property
    def rank(self) -> int:
        """The number of terms, an upper bound on the rank."""
        return int(self.values.numel())

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return Σ values_i left_i (right_iᵀ V)."""
        return self.left @ (self.values[:, None] * (self.right.T @ V))

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Σ values_i right_i (left_iᵀ U)."""
        return self.right @ (self.values[:, None] * (self.left.T @ U))

    def magnitude(self) -> float:
        """Return the largest |value|."""
        return float(self.values.abs().max()) if self.rank else 0.0

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Form some columns."""
        return (self.left * self.values) @ self.right[start:stop].T

    def norm(self) -> float:
        """Return the spectral norm: |value| ‖left‖ ‖right‖ for rank one, a k×k SVD otherwise."""
        if self.rank == 0:
            return 0.0
        if self.rank == 1:
            return abs(float(self.values[0])) * _norm(self.left[:, 0]) * _norm(self.right[:, 0])
        core = triangular_factor(self.left) @ torch.diag(self.values) @ triangular_factor(self.right).T
        return float(torch.linalg.svdvals(core)[0])

    def frobenius_squared(self) -> float:
        """Return Σ_ij values_i values_j ⟨left_i, left_j⟩ ⟨right_i, right_j⟩."""
        gram = (self.left.T @ self.left).double() * (self.right.T @ self.right).double()
        values = self.values.double()  # squares of float32 values at the scale of 1e-25 would vanish
        return float((values[:, None] * values * gram).sum())

    def inner(self, other: Operator) -> float:
        """Return the Frobenius inner product ⟨self, other⟩ = Σ_i values_i left_iᵀ other right_i."""
        scale = other.magnitude() or 1.0
        image = other.matmat(self.right / scale).double()
        return float((self.left.double() * image * self.values.double()).sum()) * scale


def _norm(vector: torch.Tensor) -> float:
    """Return the Euclidean norm in float64, of the vector over its largest entry: no square vanishes or overflows."""
    largest = largest_entry(vector)
    if not 0.0 < largest < float("inf"):
        return largest
    return float(torch.linalg.vector_norm(vector.double() / largest)) * largest
