"""The named directions of the input space that singular vectors are compared with."""

import torch

from gradrank.gradient.split import SpikeSplit
from gradrank.problem.draw import Draw


def left_directions(draw: Draw, split: SpikeSplit) -> dict[str, torch.Tensor]:
    """Return ``q``, ``bulk_residue`` X_Bᵀr·γ/n, ``bulk_labels`` X_Bᵀy and the targets' directions, each of shape (d,)."""
    c = draw.residue * (draw.network.gamma / len(draw.residue))
    along_bulk = split.bulk.transpose_times(torch.stack([c, draw.y], dim=1))
    directions = {"bulk_residue": along_bulk[:, 0], "bulk_labels": along_bulk[:, 1], **draw.target_directions}
    return {"q": split.direction, **directions} if split.has_spike else directions
