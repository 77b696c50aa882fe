import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.linalg.krylov import TOLERANCE
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Dense
from gradrank.linalg.shared import shared_krylov
from gradrank.linalg.spectrum import Spectrum

D, M = 300, 260
BULK = torch.randn(D, M, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / D**0.5


def low_rank(values: list[float], *, parallel_left: bool = False, parallel_right: bool = False) -> LowRank:
    rng, k = torch.Generator().manual_seed(1), len(values)
    left = torch.randn(D, k, dtype=torch.float64, generator=rng)
    right = torch.randn(M, k, dtype=torch.float64, generator=rng)
    if parallel_left:
        left = left[:, :1].repeat(1, k)
    if parallel_right:
        right = right[:, :1].repeat(1, k)
    return LowRank(left / left.norm(dim=0), torch.tensor(values, dtype=torch.float64), right / right.norm(dim=0))


CASES = {
    "rank one": low_rank([5.0]),
    "rank two": low_rank([5.0, -3.0]),
    "below the edge": low_rank([0.5]),
    "at the edge": low_rank([1.9, 1.8]),
    "parallel left vectors": low_rank([4.0, 3.0], parallel_left=True),
    "parallel right vectors": low_rank([4.0, 3.0], parallel_right=True),
    "both parallel and cancelling": low_rank([4.0, -4.0], parallel_left=True, parallel_right=True),
    "huge": low_rank([1e8, 3e7]),
    "tiny": low_rank([1e-9, 1e-10]),
    "one of two zero": low_rank([3.0, 0.0]),
    "rank five": low_rank([9.0, 7.0, 5.0, 3.0, 2.0]),
}


def assert_triplets(found: Spectrum, dense: torch.Tensor, k: int) -> None:
    exact = np.linalg.svd(dense.numpy(), compute_uv=False)
    rounding = 1e-13 * exact[0]
    assert found.converged
    assert len(found) == k
    U, V = found.left, found.right
    assert float((U.T @ U - torch.eye(k)).abs().max()) < 1e-12
    assert float((V.T @ V - torch.eye(k)).abs().max()) < 1e-12
    true = torch.hypot((dense @ V - found.values * U).norm(dim=0), (dense.T @ U - found.values * V).norm(dim=0)).numpy()
    np.testing.assert_allclose(true, found.residuals.numpy(), rtol=1e-6, atol=rounding)
    assert (true <= TOLERANCE * found.values.numpy() + rounding).all()
    # Second order in the residual at the edge of the bulk, first order in rounding.
    np.testing.assert_allclose(found.values.numpy(), exact[:k], rtol=1e-6, atol=rounding)


@pytest.mark.parametrize("name", CASES)
def test_whole_and_remainder_against_two_svds(name: str) -> None:
    part = CASES[name]
    whole, remainder = shared_krylov(Dense(BULK), part, 4)
    if name != "huge":
        assert whole.method == remainder.method == "block Krylov"
    assert_triplets(whole, BULK + part.dense(), 4)
    assert_triplets(remainder, BULK, 1)


def test_zero_remainder_leaves_the_low_rank_part() -> None:
    whole, remainder = shared_krylov(Dense(torch.zeros_like(BULK)), CASES["rank two"], 4)
    assert_triplets(whole, CASES["rank two"].dense(), 4)
    assert remainder.status == "zero"


def test_zero_low_rank_part_leaves_the_remainder() -> None:
    whole, remainder = shared_krylov(Dense(BULK), low_rank([0.0]), 3)
    assert_triplets(whole, BULK, 3)
    assert_triplets(remainder, BULK, 1)


def test_small_matrices() -> None:
    bulk, part = BULK[:6, :5], LowRank(torch.ones(6, 1).double(), torch.ones(1).double(), torch.ones(5, 1).double())
    whole, remainder = shared_krylov(Dense(bulk), part, 3)
    assert_triplets(whole, bulk + 1.0, 3)
    assert_triplets(remainder, bulk, 1)


def test_float32_at_a_scale_whose_squares_vanish() -> None:
    part = CASES["rank two"]
    small = LowRank(part.left.float(), part.values.float() * 1e-25, part.right.float())
    whole, remainder = shared_krylov(Dense(BULK.float() * 1e-25), small, 3)
    exact = np.linalg.svd((BULK + part.dense()).numpy(), compute_uv=False)
    np.testing.assert_allclose(whole.values.double() * 1e25, exact[:3], rtol=1e-5)
    np.testing.assert_allclose(float(remainder.values[0]) * 1e25, np.linalg.norm(BULK.numpy(), 2), rtol=1e-5)


@pytest.mark.parametrize("where", ["operator", "low-rank"])
def test_not_finite_is_refused(where: str) -> None:
    bulk = BULK.clone()
    part = low_rank([np.nan if where == "low-rank" else 1.0])
    bulk[0, 0] = np.inf if where == "operator" else 0.0
    with pytest.raises(InputError, match="NaN or infinite"):
        shared_krylov(Dense(bulk), part, 2)
