"""β, the exponent of the residue's alignment with the spike scores."""

import math

import torch

from gradrank.gradient.split import SpikeSplit


def residue_alignment(scores: torch.Tensor, residue: torch.Tensor) -> float:
    """Return |zᵀr|/(√n ‖r‖) for spike scores z and residue r, both of shape (n,); NaN where r is zero."""
    z, r = scores.double(), residue.double()
    size = float(torch.linalg.vector_norm(r))
    return abs(float(z @ (r / size))) / math.sqrt(len(z)) if size > 0 else math.nan


def draw_beta(split: SpikeSplit, residue: torch.Tensor) -> tuple[float | None, str]:
    """Return one draw's β = −2 log(|zᵀr|/(√n ‖r‖)) / log d with "ok", or None with the reason.

    A single draw's logarithm scatters by about 1.1, so this is a value of the draw, not an estimate of the exponent:
    that takes a regression over sizes and many seeds.
    """
    if not split.has_spike:
        return None, "the inputs have no spike"
    alignment = residue_alignment(split.scores, residue)
    if math.isnan(alignment):
        return None, "the residue is zero"
    if alignment == 0.0:
        return None, "the residue is exactly orthogonal to the spike scores"
    return -2 * math.log(alignment) / math.log(len(split.direction)), "ok"
