import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Dense


def random_low_rank(k: int, d: int = 30, m: int = 20, seed: int = 0) -> LowRank:
    rng = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=rng)  # noqa: E731
    return LowRank(draw(d, k), draw(k), draw(m, k))


def multiplied_out(part: LowRank) -> np.ndarray:
    return (part.left.double() * part.values.double() @ part.right.double().T).numpy()


@pytest.mark.parametrize("k", [1, 2, 3, 25])
def test_norms_and_products_against_the_dense_matrix(k: int) -> None:
    part = random_low_rank(k)
    G = multiplied_out(part)
    V, U = np.eye(20)[:, :3] + 0.5, np.eye(30)[:, 4:6] - 0.25
    np.testing.assert_allclose(part.dense().numpy(), G, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(part.columns(5, 9).numpy(), G[:, 5:9], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(part.matmat(torch.from_numpy(V)).numpy(), G @ V, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(part.rmatmat(torch.from_numpy(U)).numpy(), G.T @ U, rtol=1e-11, atol=1e-12)
    assert part.norm() == pytest.approx(np.linalg.norm(G, 2), rel=1e-12)
    assert part.frobenius_squared() == pytest.approx(np.linalg.norm(G) ** 2, rel=1e-12)


def test_inner_product_with_dense_and_low_rank() -> None:
    part, other = random_low_rank(2), random_low_rank(3, seed=1)
    dense = random_low_rank(20, seed=2).dense()
    assert part.inner(Dense(dense)) == pytest.approx(float((part.dense() * dense).sum()), rel=1e-11)
    assert part.inner(other) == pytest.approx(float((part.dense() * other.dense()).sum()), rel=1e-11)
    assert other.inner(part) == pytest.approx(part.inner(other), rel=1e-11)
    assert part.inner(Dense(torch.zeros(30, 20, dtype=torch.float64))) == 0.0


@given(
    a=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6), b=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6)
)
@settings(deadline=None, max_examples=40)
def test_rank_one_from_two_vectors(a: list[float], b: list[float]) -> None:
    left, right = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    part = LowRank.rank_one(left, right)
    # Norms of numbers near the smallest float lose digits, but nothing of visible size.
    np.testing.assert_allclose(part.dense().numpy(), np.outer(a, b), rtol=1e-12, atol=1e-150)
    assert part.norm() == pytest.approx(math.hypot(*a) * math.hypot(*b), rel=1e-12, abs=1e-150)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_float32_norms_at_a_scale_whose_squares_leave_the_range(scale: float) -> None:
    left, right = torch.randn(30, generator=torch.Generator().manual_seed(0)), torch.ones(20)
    part = LowRank.rank_one(left * scale, right)
    exact = float(left.double().norm()) * math.sqrt(20)
    assert part.norm() / scale == pytest.approx(exact, rel=1e-6)
    assert part.frobenius_squared() / scale**2 == pytest.approx(exact**2, rel=1e-6)
    assert part.inner(part) / scale**2 == pytest.approx(exact**2, rel=1e-6)
    two = LowRank(torch.cat([part.left] * 2, 1), torch.cat([part.values] * 2), torch.cat([part.right] * 2, 1))
    assert two.norm() / scale == pytest.approx(2 * exact, rel=1e-5)
    assert two.frobenius_squared() / scale**2 == pytest.approx(4 * exact**2, rel=1e-5)


def test_zero_vector_gives_the_zero_matrix() -> None:
    part = LowRank.rank_one(torch.zeros(4), torch.ones(3))
    assert part.norm() == 0.0
    assert part.magnitude() == 0.0
    assert part.frobenius_squared() == 0.0
    assert part.top(2).status == "zero"


def test_no_terms_make_the_zero_matrix() -> None:
    empty = LowRank(torch.zeros(4, 0), torch.zeros(0), torch.zeros(3, 0))
    assert empty.rank == 0
    assert empty.norm() == 0.0
    assert not empty.dense().any()
