import math

import pytest
import torch

from gradrank.gradient.residue_alignment import draw_beta, residue_alignment
from gradrank.gradient.split import Bulk, SpikeSplit


def split(scores: list[float], strength: float = 2.0, d: int = 100) -> SpikeSplit:
    direction = torch.zeros(d, dtype=torch.float64)
    return SpikeSplit(
        "oracle", Bulk(torch.zeros(len(scores), d)), torch.tensor(scores, dtype=torch.float64), direction, strength
    )


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_alignment_by_hand() -> None:
    # zᵀr = 2 − 2 + 4 = 4, ‖r‖ = 3, n = 4: 4/(2·3).
    z, r = vector(1.0, -1.0, 2.0, 5.0), vector(2.0, 2.0, 2.0, 0.0)
    assert residue_alignment(z, r) == pytest.approx(4 / (2 * math.sqrt(12)), rel=1e-15)
    assert residue_alignment(z, -1e-100 * r) == pytest.approx(4 / (2 * math.sqrt(12)), rel=1e-14)


@pytest.mark.parametrize("d", [10, 100, 1000])
def test_beta_by_hand(d: int) -> None:
    # |zᵀr|/(√n ‖r‖) = 0.1 = d^(−β/2): β = 2, 1, 2/3 for d = 10, 100, 1000.
    beta, status = draw_beta(split([0.2, 7.0, 0.0, 0.0], d=d), vector(3.0, 0.0, 0.0, 0.0))
    assert beta == pytest.approx(2 / math.log10(d), rel=1e-14)
    assert status == "ok"


def test_beta_of_a_residue_along_the_scores() -> None:
    # r = z with ‖z‖ = √n: alignment 1.
    beta, status = draw_beta(split([1.0, -1.0, 1.0]), vector(1.0, -1.0, 1.0))
    assert beta == pytest.approx(0.0, abs=1e-15)
    assert status == "ok"


@pytest.mark.parametrize(
    ("strength", "residue", "reason"),
    [
        (0.0, [1.0, 1.0], "the inputs have no spike"),
        (2.0, [0.0, 0.0], "the residue is zero"),
        (2.0, [0.0, 1.0], "the residue is exactly orthogonal to the spike scores"),
    ],
)
def test_beta_is_withheld_with_the_reason(strength: float, residue: list[float], reason: str) -> None:
    assert draw_beta(split([1.0, 0.0], strength), vector(*residue)) == (None, reason)
