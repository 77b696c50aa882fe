"""Block Golub-Kahan bidiagonalisation: the one iteration behind `block_krylov` and `shared_krylov`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from gradrank.linalg.products import skinny
from gradrank.linalg.spectrum import Spectrum

if TYPE_CHECKING:
    from gradrank.linalg.low_rank import LowRank
    from gradrank.linalg.operators import Operator

MAX_DIMENSION = 480  # of the Krylov space
FIRST_CHECK = 4  # steps before the first Rayleigh-Ritz for one value; one more for every two further values
LONGEST_WAIT = 4  # steps between two of them
SEED = 20251  # of the starting block: the result is a function of the operator alone


class Bidiagonalisation:
    """Growing orthonormal bases U, V with E V = U B exactly, and Eᵀ U inside the span of V and its next block.

    E is the operator divided by ``scale``. With a low-rank matrix L = P diag(s) Rᵀ given, U starts with the span of P
    and V with the span of R and EᵀP. Then (E + L) V stays in the span of U, and (E + L)ᵀ U leaves the span of V by the
    same next block as EᵀU: one space serves E and E + L, each with residuals known at no cost.
    """

    def __init__(self, operator: Operator, scale: float, block: int, low_rank: LowRank | None = None) -> None:
        self.operator, self.scale, self.block = operator, scale, block
        d, m = operator.shape
        self.offset = low_rank.rank if low_rank is not None else 0  # columns of U ahead of those of V
        self.capacity = min(MAX_DIMENSION, (min(d, m) - self.offset)) // block * block
        like = torch.zeros((), dtype=operator.dtype, device=operator.device)
        self.U = like.new_zeros(self.offset + self.capacity, d)  # rows: contiguous for the first k of them
        self.V = like.new_zeros(self.capacity, m)
        self.B = like.new_zeros(self.offset + self.capacity, self.capacity)
        self.coupling = like.new_zeros(block, block)
        self.size = 0  # columns of V in use
        columns = []
        if low_rank is not None:
            self.U[: self.offset] = torch.linalg.qr(low_rank.left).Q.T
            columns = [low_rank.right, operator.rmatmat(self.U[: self.offset].T / scale)]
        self.generator = torch.Generator().manual_seed(SEED)
        random = torch.randn(m, block - 2 * self.offset, dtype=torch.float64, generator=self.generator)
        start = torch.cat([*(_unit_columns(c) for c in columns), _unit_columns(random.to(like))], dim=1)
        self.next_V = torch.linalg.qr(start).Q

    def step(self) -> None:
        """Append one block to V and U and a block column to B; leave the next block of V and its coupling ready."""
        old, new = self.size, self.size + self.block
        self.V[old:new] = self.next_V.T
        top, bottom = self.offset + old, self.offset + new
        image = self.operator.matmat(self.next_V / self.scale)
        Q, coefficients, R = _orthonormalise(image, self.U[:top], self.generator)
        self.U[top:bottom] = Q.T
        self.B[:top, old:new], self.B[top:bottom, old:new] = coefficients, R
        self.size = new
        image = self.operator.rmatmat(Q / self.scale)
        self.next_V, _, self.coupling = _orthonormalise(image, self.V[:new], self.generator)

    def run(self, wanted: list[tuple[int, LowRank | None]], tolerance: float, vectors: bool) -> list[Spectrum] | None:
        """Iterate until the first k residuals of every wanted (k, low-rank part or None) are small.

        Returns None where the space would have to fill the whole matrix: then a dense factorisation is the better way.
        """
        steps, next_check, before = 0, FIRST_CHECK + max(k for k, _ in wanted) // 2, (0, math.nan)
        fits: list[_Fit] = []
        excess = math.inf
        while self.size + self.block <= self.capacity and excess > 1.0:
            self.step()
            steps += 1
            if steps >= next_check or self.size + self.block > self.capacity:
                fits, excess = self._fits(wanted, tolerance, last=self.size + self.block > self.capacity)
                next_check = steps + _steps_to_wait(before, (steps, excess))
                before = (steps, excess)
        if excess > 1.0 and min(self.operator.shape) <= 2 * self.capacity:
            return None
        return [self._spectrum(fit, steps, vectors) for fit in fits]

    def _fits(
        self, wanted: list[tuple[int, LowRank | None]], tolerance: float, *, last: bool
    ) -> tuple[list[_Fit], float]:
        """Return the fits and their largest excess, stopping at the first that has not converged unless it is the last try."""
        fits: list[_Fit] = []
        for k, low_rank in wanted:
            fits.append(self._ritz(k, low_rank, tolerance))
            if fits[-1].excess > 1.0 and not last:
                break
        return fits, max(fit.excess for fit in fits)

    def _ritz(self, k: int, low_rank: LowRank | None, tolerance: float) -> _Fit:
        """Return the leading triplets of B, with the low-rank part added where there is one."""
        rows = self.offset + self.size
        B = self.B[:rows, : self.size]
        if low_rank is not None:
            left = self.U[: self.offset] @ (low_rank.left * (low_rank.values / self.scale))
            B = B.clone()
            B[: self.offset, : self.block] += left @ (self.V[: self.block] @ low_rank.right).T
        P, sigma, Qt = torch.linalg.svd(B, full_matrices=False)
        residuals = torch.linalg.vector_norm(self.coupling @ P[-self.block :, :k], dim=0)
        rounding = 8 * torch.finfo(sigma.dtype).eps * sigma[0]
        bound = torch.maximum(tolerance * sigma[:k], rounding)
        excess = float((residuals / bound).max()) if len(sigma) >= k else math.inf
        return _Fit(P[:, :k], sigma[:k], Qt[:k].T, residuals, excess)

    def _spectrum(self, fit: _Fit, steps: int, vectors: bool) -> Spectrum:
        converged = fit.excess <= 1.0
        return Spectrum(
            values=fit.sigma * self.scale,
            left=self.U[: self.offset + self.size].T @ fit.P if vectors else None,
            right=self.V[: self.size].T @ fit.Q if vectors else None,
            residuals=fit.residuals * self.scale,
            converged=converged,
            method="block Krylov",
            steps=steps,
            status="ok" if converged else f"residual above the tolerance after {steps} steps",
        )


class _Fit:
    """Triplets of the projected matrix; ``excess`` is the largest residual over its allowed size."""

    def __init__(
        self, P: torch.Tensor, sigma: torch.Tensor, Q: torch.Tensor, residuals: torch.Tensor, excess: float
    ) -> None:
        self.P, self.sigma, self.Q, self.residuals, self.excess = P, sigma, Q, residuals, excess


def _steps_to_wait(before: tuple[int, float], now: tuple[int, float]) -> int:
    """Return how many steps to take before the next check, from the geometric decay between the last two."""
    if now[1] <= 1.0:
        return 0
    decay = (math.log(before[1]) - math.log(now[1])) / (now[0] - before[0]) if before[1] > 0 else math.nan
    if not decay > 0:
        return LONGEST_WAIT // 2
    return max(1, min(LONGEST_WAIT, math.ceil(math.log(now[1]) / decay)))


def _unit_columns(block: torch.Tensor) -> torch.Tensor:
    """Scale the columns to unit norm, leaving zero columns."""
    norms = torch.linalg.vector_norm(block, dim=0)
    return block / torch.where(norms > 0, norms, torch.ones_like(norms))


def _orthonormalise(
    block: torch.Tensor, basis: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Split ``block`` = basisᵀ · coefficients + Q R with Q orthonormal and orthogonal to the rows of ``basis``.

    Twice is enough (once is not: the loss grows from step to step), unless part of the block lies in the span of the
    basis, as for a matrix of low rank or with zero rows: what QR puts in its place need not be orthogonal to the basis,
    so random directions with zero rows of R take it.
    """
    coefficients = skinny(basis, block)
    first, R = torch.linalg.qr(block - skinny(basis.T, coefficients))
    Q, again = torch.linalg.qr(first - skinny(basis.T, skinny(basis, first)))
    if float(torch.diagonal(again).abs().min()) > 0.5:
        return Q, coefficients, again @ R
    P, sizes, Wt = torch.linalg.svd(R)
    kept = sizes > 16 * torch.finfo(sizes.dtype).eps * torch.linalg.matrix_norm(block)
    random = torch.randn(block.shape, dtype=torch.float64, generator=generator).to(block)
    Q = torch.where(kept, first @ P, _unit_columns(random))
    total = torch.eye(len(kept)).to(block)
    for _ in range(2):
        Q, again = torch.linalg.qr(Q - basis.T @ (basis @ Q))
        total = again @ total
    return Q, coefficients, total[:, kept] @ (sizes[kept, None] * Wt[kept])
