import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.linalg.factored import Factored
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import COLUMN_BLOCK, Dense, Operator, Scaled, Sum

D, M = 17, COLUMN_BLOCK + 30  # more columns than one block of a sum over entries


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class ByProducts(Operator):
    """An operator that defines what it must and nothing else."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self.matrix, self.shape = matrix, tuple(matrix.shape)
        self.dtype, self.device = matrix.dtype, matrix.device

    def matmat(self, V: torch.Tensor) -> torch.Tensor:
        return self.matrix @ V

    def rmatmat(self, U: torch.Tensor) -> torch.Tensor:
        return self.matrix.T @ U

    def magnitude(self) -> float:
        return float(self.matrix.abs().max())


def operators() -> dict[str, tuple[Operator, np.ndarray]]:
    A, B, left, right = random(D, M), random(D, M, seed=1), random(D, 2, seed=2), random(M, 2, seed=3)
    X, signal = random(5, D, seed=4), random(5, M, seed=5)
    low = LowRank(left, torch.tensor([2.0, -1.0]).double(), right)
    spikes = (left * low.values @ right.T).numpy()
    return {
        "dense": (Dense(A), A.numpy()),
        "by products": (ByProducts(A), A.numpy()),
        "sum": (Sum([Dense(A), low, Factored(X, signal)]), A.numpy() + spikes + (X.T @ signal).numpy()),
        "sum of one": (Sum([Dense(A)]), A.numpy()),
        "scaled": (Scaled(-0.3, Sum([Dense(A), Dense(B)])), -0.3 * (A + B).numpy()),
        "scaled by zero": (Scaled(0.0, Dense(A)), np.zeros((D, M))),
    }


@pytest.mark.parametrize("name", operators())
def test_every_face_of_an_operator_against_numpy(name: str) -> None:
    operator, G = operators()[name]
    V, U, other = random(M, 3, seed=6), random(D, 2, seed=7), random(D, M, seed=8)
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(operator.matmat(V).numpy(), G @ V.numpy(), **close)
    np.testing.assert_allclose(operator.rmatmat(U).numpy(), G.T @ U.numpy(), **close)
    np.testing.assert_allclose(operator.dense().numpy(), G, **close)
    np.testing.assert_allclose(operator.columns(4, 11).numpy(), G[:, 4:11], **close)
    np.testing.assert_allclose(operator.singular_values().numpy(), np.linalg.svd(G, compute_uv=False), **close)
    assert operator.norm() == pytest.approx(np.linalg.norm(G, 2), rel=1e-6)
    assert operator.frobenius_squared() == pytest.approx(np.linalg.norm(G) ** 2, rel=1e-12)
    assert operator.inner(Dense(other)) == pytest.approx((G * other.numpy()).sum(), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_float32_frobenius_at_a_scale_whose_squares_leave_the_range(scale: float) -> None:
    A = random(D, M).float()
    exact = float(A.double().square().sum())
    assert Dense(A * scale).frobenius_squared() / scale**2 == pytest.approx(exact, rel=1e-6)
    assert Dense(A * scale).inner(Dense(A)) / scale == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("first", [True, False])
def test_a_term_that_is_not_finite_is_not_hidden_by_the_others(bad: float, first: bool) -> None:
    good, wrong = Dense(random(4, 3)), Dense(torch.full((4, 3), bad, dtype=torch.float64))
    total = Sum([wrong, good] if first else [good, wrong])
    assert not math.isfinite(total.magnitude())
    with pytest.raises(InputError, match="NaN or infinite"):
        total.top(1)


def test_empty_matrix_has_no_magnitude() -> None:
    assert Dense(torch.zeros(0, 3)).magnitude() == 0.0
