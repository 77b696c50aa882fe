"""A matrix known by its products: the common face of every gradient and every part of one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from gradrank.linalg.krylov import TOLERANCE, block_krylov
from gradrank.linalg.products import largest_entry, skinny
from gradrank.linalg.small import singular_values
from gradrank.linalg.spectrum import Spectrum

COLUMN_BLOCK = 512  # columns formed at a time where a sum over all entries is asked for


class Operator(ABC):
    """A real matrix of shape (d, m) given by its products with blocks of vectors.

    Nothing here forms the matrix, except `dense` and `singular_values`, which are asked for by name.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device

    @abstractmethod
    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return G V, shape (d, b), for V of shape (m, b)."""

    @abstractmethod
    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Gᵀ U, shape (m, b), for U of shape (d, b)."""

    @abstractmethod
    def magnitude(self) -> float:
        """Return a number of the order of the largest entry: 0 for a zero matrix, not finite if an entry is not."""

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Return the columns start, …, stop − 1 as a dense (d, stop − start) matrix."""
        picked = torch.zeros(self.shape[1], stop - start, dtype=self.dtype, device=self.device)
        picked[start:stop] = torch.eye(stop - start, dtype=self.dtype, device=self.device)
        return self.matmat(picked)

    def dense(self) -> torch.Tensor:
        """Form the (d, m) matrix."""
        return self.columns(0, self.shape[1])

    def top(self, k: int, *, tolerance: float = TOLERANCE, vectors: bool = True) -> Spectrum:
        """Return the k largest singular values with vectors and residual norms, by block Krylov iteration.

        See `gradrank.linalg.krylov.block_krylov` for the method, the tolerance and the meaning of ``converged``.
        """
        return block_krylov(self, k, tolerance=tolerance, vectors=vectors)

    def norm(self) -> float:
        """Return the spectral norm (largest singular value) to a relative accuracy of about 1e-6."""
        return float(self.top(1, vectors=False).values[0])

    def frobenius_squared(self) -> float:
        """Return the sum of the squared entries, accumulated in float64."""
        return self.inner(self)

    def inner(self, other: Operator) -> float:
        """Return the Frobenius inner product ⟨self, other⟩, from blocks of columns, accumulated in float64."""
        mine, others = self.magnitude() or 1.0, other.magnitude() or 1.0
        total = 0.0
        for start in range(0, self.shape[1], COLUMN_BLOCK):
            stop = min(start + COLUMN_BLOCK, self.shape[1])
            left = self.columns(start, stop).double() / mine
            right = left * (mine / others) if other is self else other.columns(start, stop).double() / others
            total += float((left * right).sum())
        return total * mine * others

    def singular_values(self) -> torch.Tensor:
        """Return all min(d, m) singular values, shape (min(d, m),), descending."""
        return singular_values(self.dense())


class Dense(Operator):
    """A matrix stored entry by entry."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.dtype, self.device = matrix.dtype, matrix.device

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return M V."""
        return skinny(self.matrix, V)

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Mᵀ U."""
        return skinny(self.matrix.T, U)

    def magnitude(self) -> float:
        """Return the largest absolute entry."""
        return largest_entry(self.matrix)

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Return a view of the columns."""
        return self.matrix[:, start:stop]


class Sum(Operator):
    """The sum of operators of one shape."""

    def __init__(self, terms: Sequence[Operator]) -> None:
        self.terms = tuple(terms)
        self.shape = self.terms[0].shape
        self.dtype, self.device = self.terms[0].dtype, self.terms[0].device

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return Σ Gᵢ V."""
        return sum((term.matmat(V) for term in self.terms[1:]), start=self.terms[0].matmat(V))

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Σ Gᵢᵀ U."""
        return sum((term.rmatmat(U) for term in self.terms[1:]), start=self.terms[0].rmatmat(U))

    def magnitude(self) -> float:
        """Return the largest magnitude of the terms, NaN if one is."""
        magnitudes = [term.magnitude() for term in self.terms]
        return float("nan") if any(math.isnan(size) for size in magnitudes) else max(magnitudes)

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Return the sum of the terms' columns."""
        return sum((term.columns(start, stop) for term in self.terms[1:]), start=self.terms[0].columns(start, stop))


class Scaled(Operator):
    """A number times an operator."""

    def __init__(self, factor: float, operator: Operator) -> None:
        self.factor, self.operator = factor, operator
        self.shape, self.dtype, self.device = operator.shape, operator.dtype, operator.device

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return c G V."""
        return self.factor * self.operator.matmat(V)

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return c Gᵀ U."""
        return self.factor * self.operator.rmatmat(U)

    def magnitude(self) -> float:
        """Return |c| times the operator's magnitude."""
        return abs(self.factor) * self.operator.magnitude()

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Return c times the operator's columns."""
        return self.factor * self.operator.columns(start, stop)
