"""Which samples each step of stochastic descent uses."""

import torch

from gradrank.foundation.random import stream


class Batches:
    """A new shuffle of the n samples for each epoch, cut into batches; the last one of an epoch may be smaller.

    The shuffle is a function of the seed and the epoch alone, so that a resumed run sees the same batches.
    """

    def __init__(self, n: int, size: int, seed: int) -> None:
        self.n, self.size, self.seed = n, size, seed
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def rows(self, step: int) -> torch.Tensor:
        """Return the samples of the step after ``step`` steps, shape (at most size,)."""
        epoch, index = divmod(step, -(-self.n // self.size))
        if epoch != self._epoch:
            order = stream(self.seed, f"flow.batches.{epoch}").permutation(self.n)
            self._epoch, self._order = epoch, torch.from_numpy(order)
        return self._order[index * self.size : (index + 1) * self.size]
