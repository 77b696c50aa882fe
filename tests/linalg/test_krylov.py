import math

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import svds

from gradrank.foundation.errors import InputError
from gradrank.linalg.bidiagonal import MAX_DIMENSION
from gradrank.linalg.krylov import BLOCK, TOLERANCE, block_krylov
from gradrank.linalg.operators import Dense
from gradrank.linalg.spectrum import Spectrum

EPS = {torch.float64: 2.3e-16, torch.float32: 1.2e-7}
ROUNDINGS = 100  # of σ₁: a few operations for each of up to 30 steps


def gaussian(d: int, m: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(d, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def with_values(values: torch.Tensor, d: int, m: int) -> torch.Tensor:
    k = len(values)
    return torch.linalg.qr(gaussian(d, k, 1)).Q * values @ torch.linalg.qr(gaussian(m, k, 2)).Q.T


def blocks_of_zeros(d: int, m: int) -> torch.Tensor:
    """Rank 40, and all other rows and columns zero, as dead neurons and blank pixels give."""
    M = torch.zeros(d, m, dtype=torch.float64)
    M[:40, :60] = gaussian(40, 60)
    return M


def assert_triplets(found: Spectrum, M: torch.Tensor, k: int) -> None:
    """Orthonormal vectors, true residuals equal to the stated ones, values within them of NumPy's."""
    eps, exact = EPS[M.dtype], torch.from_numpy(np.linalg.svd(M.double().numpy(), compute_uv=False)[:k])
    rounding = ROUNDINGS * eps * float(exact[0])
    U, V, sigma = found.left.double(), found.right.double(), found.values.double()
    assert len(found) == k
    assert bool((found.values[:-1] >= found.values[1:]).all())
    for vectors in (U, V):
        assert float((vectors.T @ vectors - torch.eye(k)).abs().max()) < ROUNDINGS * eps
    A = M.double()
    true = torch.hypot((A @ V - sigma * U).norm(dim=0), (A.T @ U - sigma * V).norm(dim=0))
    assert float((true - found.residuals.double()).abs().max()) < rounding
    assert bool(((sigma - exact).abs() <= found.residuals.double() + rounding).all())  # Weyl
    if found.converged:
        assert bool((true <= TOLERANCE * sigma + rounding).all())


MATRICES = {
    "tall": lambda: gaussian(500, 120),
    "wide": lambda: gaussian(120, 500),
    "square": lambda: gaussian(200, 200),
    "tiny": lambda: gaussian(3, 5),
    "row": lambda: gaussian(1, 9),
    "geometric": lambda: with_values(0.7 ** torch.arange(90).double(), 300, 200),
    "repeated beyond the block": lambda: with_values(
        torch.cat([torch.full((BLOCK + 14,), 5.0), torch.linspace(1, 0, 170)]).double(), 300, 200
    ),
    "orthogonal": lambda: with_values(torch.ones(200).double(), 200, 200),
    "identity": lambda: torch.eye(200, dtype=torch.float64),
    "rank 10": lambda: gaussian(300, 10) @ gaussian(10, 250, 1),
    "rank 3 on the axes": lambda: torch.diag(torch.tensor([5.0, 4, 3] + [0] * 197).double()),
    "zero rows and columns": lambda: blocks_of_zeros(300, 250),
    "Marchenko-Pastur edge": lambda: gaussian(400, 300) / math.sqrt(400),
    "spike at the edge": lambda: gaussian(400, 300) / 20 + with_values(torch.tensor([1.9]).double(), 400, 300),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", MATRICES)
def test_leading_triplets(name: str, dtype: torch.dtype) -> None:
    M = MATRICES[name]().to(dtype)
    for k in (1, 20):
        found = block_krylov(Dense(M), k)
        assert found.converged
        assert found.status == "ok"
        assert_triplets(found, M, min(k, *M.shape))


def test_both_ways_are_used() -> None:
    assert block_krylov(Dense(gaussian(500, 300)), 5).method == "block Krylov"
    assert block_krylov(Dense(gaussian(500, 30)), 5).method == "dense SVD"


@pytest.mark.parametrize("rank", [10, 40, 70])
def test_as_many_triplets_as_asked_for_although_the_rest_is_zero(rank: int) -> None:
    M = gaussian(600, rank) @ gaussian(rank, 500, 1)
    found = block_krylov(Dense(M), 100)
    assert found.method == "block Krylov"
    assert_triplets(found, M, 100)


def test_more_triplets_than_a_krylov_space_holds() -> None:
    M = with_values(0.95 ** torch.arange(60).double(), 1050, 1000)
    assert_triplets(block_krylov(Dense(M), 245), M, 245)


def test_values_at_the_edge_of_a_bulk_against_arpack() -> None:
    M = MATRICES["Marchenko-Pastur edge"]()
    arpack = np.sort(svds(M.numpy(), k=5, return_singular_vectors=False, rng=np.random.default_rng(0)))[::-1]
    # The documented accuracy at a crowded edge: errors of second order in the residual.
    np.testing.assert_allclose(block_krylov(Dense(M), 5).values.numpy(), arpack, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_scale_of_a_float32_matrix_does_not_matter(scale: float) -> None:
    M = gaussian(300, 250).float()
    M[:, 0] += 2.0
    plain, scaled = block_krylov(Dense(M), 8), block_krylov(Dense(M * scale), 8)
    assert scaled.converged
    # Rounding of the scaled entries alone moves a value by up to eps·σ₁.
    tolerance = ROUNDINGS * EPS[torch.float32] * float(plain.values[0])
    np.testing.assert_allclose(scaled.values.double() / scale, plain.values.double(), rtol=0, atol=tolerance)
    assert float((scaled.left.T @ scaled.left - torch.eye(8)).abs().max()) < ROUNDINGS * EPS[torch.float32]


def test_exhausted_space_is_not_reported_as_converged() -> None:
    M = gaussian(980, 970)
    found = block_krylov(Dense(M), 30, tolerance=1e-14)
    assert not found.converged
    assert f"above the tolerance after {MAX_DIMENSION // BLOCK} steps" in found.status
    assert_triplets(found, M, 30)  # the residuals still say how far it came
    assert float((found.residuals / found.values).max()) > 1e-14


def test_small_matrix_goes_dense_where_the_space_would_fill_it() -> None:
    found = block_krylov(Dense(gaussian(260, 250)), 40, tolerance=1e-15)
    assert found.method == "dense SVD"
    assert found.converged


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("shape", [(4, 5), (300, 250)])
def test_entries_that_are_not_finite_are_refused(bad: float, shape: tuple[int, int]) -> None:
    M = gaussian(*shape)
    M[-1, -1] = bad
    with pytest.raises(InputError, match="NaN or infinite"):
        block_krylov(Dense(M), 2)


@pytest.mark.parametrize("k", [0, -3])
def test_number_of_triplets_below_one_is_refused(k: int) -> None:
    with pytest.raises(InputError, match=rf"^k: {k} is not allowed"):
        block_krylov(Dense(gaussian(4, 4)), k)


@pytest.mark.parametrize("shape", [(3, 4), (300, 250)])
def test_zero_matrix(shape: tuple[int, int]) -> None:
    found = block_krylov(Dense(torch.zeros(shape)), 2)
    assert found.status == "zero"
    assert found.converged
    assert not found.values.any()
    assert found.left.T.matmul(found.left).equal(torch.eye(2))
    assert found.right.shape == (shape[1], 2)


def test_result_is_a_function_of_the_operator_alone() -> None:
    M = gaussian(300, 250)
    torch.manual_seed(0)
    first = block_krylov(Dense(M), 6)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    second = block_krylov(Dense(M), 6)
    assert first.values.equal(second.values)
    assert first.left.equal(second.left)
    assert torch.get_rng_state().equal(state)


def test_vectors_can_be_left_out() -> None:
    for shape in ((300, 250), (5, 4)):
        M = gaussian(*shape)
        bare = block_krylov(Dense(M), 3, vectors=False)
        assert bare.left is None
        assert bare.right is None
        assert bare.values.equal(block_krylov(Dense(M), 3).values)
