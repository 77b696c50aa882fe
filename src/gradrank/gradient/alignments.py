"""Cosines between singular vectors and named directions, beside the level that chance gives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from gradrank.linalg.products import largest_entry


@dataclass(frozen=True, eq=False)
class Alignments:
    """|cosine| of each leading singular vector with each named direction; NaN where a direction is zero."""

    left: dict[str, torch.Tensor]  # direction in input space -> (k,)
    right: dict[str, torch.Tensor]  # direction in neuron space -> (k,)
    chance_left: float  # expected |cosine| of two random directions of R^d
    chance_right: float  # of R^m


def chance_level(dimension: int) -> float:
    """Return √(2/(π·dimension)), the expected |cosine| of two independent uniform directions, for large dimensions."""
    return math.sqrt(2 / (math.pi * dimension))


def cosines(vectors: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Return |⟨v_i, b⟩|/‖b‖ for orthonormal columns v_i (p, k) and a direction b (p,), shape (k,); NaN for b = 0."""
    largest = largest_entry(direction)
    if not largest > 0:
        return vectors.new_full((vectors.shape[1],), math.nan)
    unit = direction / largest
    unit = unit / torch.linalg.vector_norm(unit)
    return torch.clamp((vectors.T @ unit).abs(), max=1.0)


def alignments(
    left_vectors: torch.Tensor,
    right_vectors: torch.Tensor,
    left: Mapping[str, torch.Tensor],
    right: Mapping[str, torch.Tensor],
) -> Alignments:
    """Return the cosines of left vectors (d, k) and right vectors (m, k) with named directions of R^d and R^m."""
    return Alignments(
        {name: cosines(left_vectors, direction) for name, direction in left.items()},
        {name: cosines(right_vectors, direction) for name, direction in right.items()},
        chance_level(len(left_vectors)),
        chance_level(len(right_vectors)),
    )
