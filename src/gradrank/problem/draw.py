"""`Draw`: one realisation of a problem, with outputs and residue on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.inputs import Inputs
from gradrank.problem.losses import Loss
from gradrank.problem.network import Network
from gradrank.problem.regularisers import Regularisers

CHUNK_ENTRIES = 1 << 17  # of an (n, m) array worked on at a time: bounds the temporaries, and stays in cache


@dataclass(frozen=True, eq=False)
class Draw:
    """Inputs, labels and network of one seed. Large arrays are formed when first asked for, and kept."""

    seed: int
    inputs: Inputs
    y: torch.Tensor  # (n,)
    target_directions: dict[str, torch.Tensor]  # name -> (d,)
    network: Network
    loss: Loss
    regularisers: Regularisers

    @property
    def X(self) -> torch.Tensor:
        """Inputs with their noise, shape (n, d)."""
        return self.inputs.X

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, d, m)."""
        return (*self.inputs.shape, self.network.m)

    @cached_property
    def preactivations(self) -> torch.Tensor:
        """XWᵀ, shape (n, m): the only product of that size in a measurement."""
        return self.X @ self.network.W.T

    @cached_property
    def outputs(self) -> torch.Tensor:
        """f(x_i) = γ aᵀσ(Wx_i), shape (n,).

        Raises
        ------
        InputError
            If an output is not finite, as an activation that overflows gives.
        """
        sigma, a = self.network.activation.value, self.network.a
        H = self.preactivations
        f = torch.empty_like(self.y)
        # Into slices of one array: small results kept between large temporaries would tear holes into the heap.
        for rows, part in zip(self.row_chunks(H), torch.split(f, self.chunk_rows(H)), strict=True):
            part.copy_(sigma(rows) @ a)
        f *= self.network.gamma
        if not bool(torch.isfinite(f).all()):
            raise InputError(
                f"network.activation: {self.network.activation.name} gives outputs that are not finite on these inputs; "
                "give smaller inputs or another activation"
            )
        return f

    @cached_property
    def residue(self) -> torch.Tensor:
        """r_i = ∂ℓ/∂f(f(x_i), y_i), shape (n,)."""
        return self.loss.residue(self.outputs, self.y)

    def take(self, rows: slice | torch.Tensor) -> Draw:
        """Return the draw with some of its samples; network, directions and the spike's strength stay as they are."""
        return replace(self, inputs=self.inputs.take(rows), y=self.y[rows])

    def row_chunks(self, matrix: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Split an (n, m) matrix into views of a few rows, small enough for elementwise work."""
        return torch.split(matrix, self.chunk_rows(matrix))

    @staticmethod
    def chunk_rows(matrix: torch.Tensor) -> int:
        """Return the number of rows of a chunk."""
        return max(1, CHUNK_ENTRIES // max(1, matrix.shape[1]))
