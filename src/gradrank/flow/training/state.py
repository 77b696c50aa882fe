"""`State`: the network at one step as the trackers see it; what several of them need is computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from gradrank.flow.training.leading import TOLERANCE, LeadingTriplets
from gradrank.gradient.loss_gradient import loss_gradient
from gradrank.gradient.split import SpikeSplit, spike_split
from gradrank.linalg.krylov import block_krylov
from gradrank.linalg.operators import Dense
from gradrank.linalg.spectrum import Spectrum
from gradrank.problem.draw import Draw


@dataclass(frozen=True, eq=False)
class Start:
    """What stays the same during a run."""

    draw: Draw  # with the weights before the first step
    test: Draw | None  # samples kept apart

    @cached_property
    def split(self) -> SpikeSplit:
        """The split of the inputs into spike and bulk: the oracle where it is known."""
        return spike_split(self.draw)

    @cached_property
    def leading_direction(self) -> torch.Tensor:
        """u₁ of G_0, shape (d,); zeros where G_0 is zero. Found from nothing, so that a resumed run finds the same."""
        spectrum = block_krylov(Dense(loss_gradient(replace(self.draw))), 1, tolerance=TOLERANCE)
        u = spectrum.vectors()[0][:, 0]
        return torch.zeros_like(u) if spectrum.status == "zero" else u


class State:
    """The network after ``step`` steps. Tensors are not to be changed: descent goes on with them."""

    def __init__(self, step: int, draw: Draw, start: Start, triplets: LeadingTriplets, most: int = 1) -> None:
        self.step = step
        self.draw = draw  # with the present weights; XWᵀ, outputs and residue stay with it
        self.start = start
        self._triplets = triplets
        self._most = most  # triplets that some tracker of this step will ask for: one iteration then serves all
        self._leading: Spectrum | None = None

    @property
    def W(self) -> torch.Tensor:
        """The present inner weights, shape (m, d)."""
        return self.draw.network.W

    @property
    def split(self) -> SpikeSplit:
        """The split of the inputs into spike and bulk."""
        return self.start.split

    @cached_property
    def gradient(self) -> torch.Tensor:
        """G_t = ∂L/∂W over all samples, before the projection of weight normalisation, shape (d, m)."""
        return loss_gradient(self.draw)

    @cached_property
    def test(self) -> Draw | None:
        """The samples kept apart, with the present network."""
        test = self.start.test
        return None if test is None else replace(test, network=self.draw.network)

    def leading(self, k: int) -> Spectrum:
        """Return the k largest singular triplets of G_t, from the vectors of the last step that asked for them.

        Raises
        ------
        InputError
            If k is below 1 or above min(d, m).
        """
        if self._leading is None or not 1 <= k <= len(self._leading):
            self._leading = self._triplets.of(self.gradient, max(k, self._most) if k > 0 else k)
        return self._leading.first(k)
