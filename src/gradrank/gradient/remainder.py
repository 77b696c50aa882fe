"""`Remainder`: what the spikes leave, X_Bᵀ(Δ − r̃ ãᵀ), as an operator of its own."""

import torch

from gradrank.gradient.split import Bulk
from gradrank.linalg.operators import Operator
from gradrank.linalg.products import largest_entry, skinny


class Remainder(Operator):
    """The matrix X_Bᵀ(Δ − c ãᵀ), shape (d, m), never multiplied out; c and ã are left out for a signal without centring."""

    def __init__(
        self, bulk: Bulk, signal: torch.Tensor, centre: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> None:
        self.bulk = bulk
        self.signal = signal  # (n, m)
        self.centre = centre  # c (n,) and ã (m,)
        self.shape = (bulk.X.shape[1], signal.shape[1])
        self.dtype, self.device = signal.dtype, signal.device

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        """Return X_Bᵀ(Δ V − c (ãᵀV))."""
        image = skinny(self.signal, V)
        if self.centre is not None:
            image -= torch.outer(self.centre[0], self.centre[1] @ V)
        return self.bulk.transpose_times(image)

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        """Return Δᵀ(X_B U) − ã (cᵀ X_B U)."""
        image = self.bulk.times(U)
        product = skinny(self.signal.T, image)
        if self.centre is not None:
            product -= torch.outer(self.centre[1], self.centre[0] @ image)
        return product

    def columns(self, start: int, stop: int) -> torch.Tensor:
        """Multiply out some columns."""
        signal = self.signal[:, start:stop]
        if self.centre is not None:
            signal = signal - torch.outer(self.centre[0], self.centre[1][start:stop])
        return self.bulk.transpose_times(signal)

    def magnitude(self) -> float:
        """Return max|X| · max(|Δ|, |c ãᵀ|): Δ alone may vanish, as it does where every neuron of a ReLU network is off."""
        largest = largest_entry(self.signal)
        if self.centre is not None:
            c, a = (largest_entry(vector) for vector in self.centre)
            largest = max(largest, c * a)
        return self.bulk.magnitude() * largest
