"""The leading singular triplets of a matrix that changes a little from step to step."""

from __future__ import annotations

import torch

from gradrank.foundation.errors import unusable
from gradrank.linalg.bidiagonal import Bidiagonalisation
from gradrank.linalg.krylov import block_krylov, finite_magnitude
from gradrank.linalg.operators import Dense
from gradrank.linalg.spectrum import Spectrum

TOLERANCE = 5e-4  # residual over the singular value; its error is of the order of the square
GUARDS = 2  # vectors kept beyond the k asked for: the next ones to cross
RANDOM = 1  # fresh directions in every start: a new singular vector may be orthogonal to all old ones
FEWEST = 2  # products in pairs: after them the random direction shows a new outlier as a Ritz value
LONGEST = 24  # beyond it the start was no help, and a start from nothing is the safer way


class LeadingTriplets:
    """Block subspace iteration that starts from the last matrix's vectors, with Rayleigh-Ritz over all blocks so far.

    One pair of products with G and Gᵀ and its Rayleigh-Ritz is one step of subspace iteration on GᵀG; keeping the blocks
    of earlier steps (a Krylov space) is what makes a crowded edge converge. It stops by the residual
    ‖Gᵀu − σ v‖ ≤ tolerance · σ; ‖G v − σ u‖ is zero by construction.
    """

    def __init__(self, block: torch.Tensor | None = None) -> None:
        self.block = block  # (m, at most k + 2) right vectors of the last matrix: all that is remembered

    def of(self, G: torch.Tensor, k: int) -> Spectrum:
        """Return the k largest singular triplets of G (d, m).

        Raises
        ------
        InputError
            If k is below 1 or above min(d, m), or an entry of G is not finite.
        """
        if not 1 <= k <= min(G.shape):
            raise unusable("k", k, f"give a number from 1 to min(d, m) = {min(G.shape)}")
        operator = Dense(G)
        scale = finite_magnitude(operator)
        width = k + GUARDS + RANDOM
        spectrum = None
        if self.block is not None and scale > 0.0 and min(G.shape) > 4 * width:
            spectrum = self._warm(operator, scale, k, width)
        if spectrum is None:
            spectrum = block_krylov(operator, k, tolerance=TOLERANCE)
            if spectrum.status != "zero":
                self.block = spectrum.vectors()[1].clone()
        return spectrum

    def _warm(self, operator: Dense, scale: float, k: int, width: int) -> Spectrum | None:
        """Iterate from the last block, or return None where that leads nowhere."""
        assert self.block is not None
        iteration = Bidiagonalisation(operator, scale, width)
        remembered = self.block[:, : width - RANDOM]
        random = iteration.next_V[:, remembered.shape[1] :]
        iteration.next_V = torch.linalg.qr(torch.cat([remembered, random], dim=1)).Q
        steps, check = 0, FEWEST
        while steps < LONGEST and iteration.size + width <= iteration.capacity:
            iteration.step()
            steps += 1
            if steps < check:
                continue
            check = steps + max(1, steps // 4)
            size = iteration.size
            P, sigma, Qt = torch.linalg.svd(iteration.B[:size, :size])
            residuals = torch.linalg.vector_norm(iteration.coupling @ P[-width:, :k], dim=0)
            rounding = 8 * torch.finfo(sigma.dtype).eps * sigma[0]
            if bool((residuals <= torch.maximum(TOLERANCE * sigma[:k], rounding)).all()):
                right = iteration.V[:size].T @ Qt[: k + GUARDS].T
                self.block = right.contiguous()
                left = iteration.U[:size].T @ P[:, :k]
                values, rest = sigma[:k] * scale, residuals * scale
                return Spectrum(values, left, right[:, :k], rest, True, "warm block Krylov", steps)
        return None
