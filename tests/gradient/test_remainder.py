import pytest
import torch

from gradrank.gradient.remainder import Remainder
from gradrank.gradient.split import Bulk

GENERATOR = torch.Generator().manual_seed(0)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=GENERATOR)


def operator(split: bool, centred: bool) -> tuple[Remainder, torch.Tensor]:
    X, q, signal, c, a = randn(8, 11), randn(11), randn(8, 6), randn(8), randn(6)
    q /= torch.linalg.vector_norm(q)
    bulk = Bulk(X, X @ q, q) if split else Bulk(X)
    B = X - torch.outer(X @ q, q) if split else X
    dense = B.T @ (signal - torch.outer(c, a)) if centred else B.T @ signal
    return Remainder(bulk, signal, (c, a) if centred else None), dense


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_products_are_those_of_the_dense_matrix(split: bool, centred: bool) -> None:
    remainder, dense = operator(split, centred)
    V, U = randn(6, 3), randn(11, 3)
    # Products of ten terms of size one.
    torch.testing.assert_close(remainder.dense(), dense, rtol=0, atol=1e-13)
    torch.testing.assert_close(remainder.columns(2, 5), dense[:, 2:5], rtol=0, atol=1e-13)
    torch.testing.assert_close(remainder.matmat(V), dense @ V, rtol=0, atol=1e-13)
    torch.testing.assert_close(remainder.rmatmat(U), dense.T @ U, rtol=0, atol=1e-13)
    assert remainder.norm() == pytest.approx(float(torch.linalg.matrix_norm(dense, 2)), rel=1e-12)
    assert remainder.frobenius_squared() == pytest.approx(float(dense.square().sum()), rel=1e-13)


def test_signal_of_zeros_leaves_the_centre() -> None:
    X, c, a = randn(8, 11), randn(8), randn(6)
    remainder = Remainder(Bulk(X), torch.zeros(8, 6, dtype=torch.float64), (c, a))
    exact = torch.linalg.vector_norm(X.T @ c) * torch.linalg.vector_norm(a)
    assert remainder.norm() == pytest.approx(float(exact), rel=1e-12)
    assert Remainder(Bulk(X), torch.zeros(8, 6, dtype=torch.float64)).norm() == 0.0
