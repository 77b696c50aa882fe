"""Splits of the inputs into spike and bulk, X = X_B + ζ z qᵀ."""

from dataclasses import dataclass

import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names
from gradrank.linalg.operators import Dense
from gradrank.linalg.products import largest_entry, skinny
from gradrank.problem.draw import Draw

# The direction of the empirical spike is found to this residual, relative to the singular value.
DIRECTION_TOLERANCE = 1e-7
SPLITS = ("oracle", "empirical")


@dataclass(frozen=True, eq=False)
class Bulk:
    """The bulk X_B, stored, or as X − (Xq)qᵀ without a copy of X."""

    X: torch.Tensor  # (n, d)
    scores: torch.Tensor | None = None  # (n,) Xq to be removed
    direction: torch.Tensor | None = None  # (d,) q

    def times(self, U: torch.Tensor) -> torch.Tensor:
        """Return X_B U, shape (n, b)."""
        product = skinny(self.X, U)
        if self.scores is not None and self.direction is not None:
            product -= torch.outer(self.scores, self.direction @ U)
        return product

    def transpose_times(self, Y: torch.Tensor) -> torch.Tensor:
        """Return X_Bᵀ Y, shape (d, b)."""
        product = skinny(self.X.T, Y)
        if self.scores is not None and self.direction is not None:
            product -= torch.outer(self.direction, self.scores @ Y)
        return product

    def magnitude(self) -> float:
        """Return the largest |entry| of X, an upper bound up to a factor of two."""
        return largest_entry(self.X)


@dataclass(frozen=True, eq=False)
class SpikeSplit:
    """A split X = X_B + ζ z qᵀ; ``strength`` is 0 and the vectors are zero where the inputs have no spike."""

    kind: str  # "oracle" or "empirical"
    bulk: Bulk
    scores: torch.Tensor  # (n,) z; of norm √n for the empirical split
    direction: torch.Tensor  # (d,) q
    strength: float  # ζ

    @property
    def has_spike(self) -> bool:
        """Whether there is a spike at all."""
        return self.strength > 0.0


def spike_split(draw: Draw, kind: str = "auto") -> SpikeSplit:
    """Split the inputs of a draw.

    "oracle" takes bulk and spike as they were drawn. "empirical" takes q = first right singular vector of X (not
    centred), ζ z = Xq with ‖z‖ = √n and X_B = X − (Xq)qᵀ. "auto" is the oracle where the draw knows its spike.

    Raises
    ------
    InputError
        If the oracle split is asked of data whose spike is not known.
    """
    inputs = draw.inputs
    if kind == "auto":
        kind = "oracle" if inputs.knows_spike else "empirical"
    if kind == "oracle":
        if inputs.bulk is None:
            raise InputError("split: 'oracle' is not allowed; the spike of these data is not known, give 'empirical'")
        n, d = inputs.shape
        if inputs.scores is None or inputs.direction is None:
            zeros = inputs.bulk.new_zeros
            return SpikeSplit("oracle", Bulk(inputs.bulk), zeros(n), zeros(d), 0.0)
        return SpikeSplit("oracle", Bulk(inputs.bulk), inputs.scores, inputs.direction, inputs.strength)
    if kind != "empirical":
        raise InputError(f"split: '{kind}' is not allowed; {allowed_names(kind, ('auto', *SPLITS))}")
    X = draw.X
    tolerance = DIRECTION_TOLERANCE if X.dtype == torch.float64 else 1e-4
    right = Dense(X).top(1, tolerance=tolerance).right
    assert right is not None
    q = right[:, 0]
    if bool(q.sum() < 0):  # the sign is free: fix it, so that two runs agree
        q = -q
    projected = X @ q
    strength = float(torch.linalg.vector_norm(projected, dtype=torch.float64)) / len(X) ** 0.5
    z = projected / strength if strength > 0 else projected
    return SpikeSplit("empirical", Bulk(X, projected, q), z, q, strength)
