import numpy as np
import pytest
import torch

from gradrank.linalg.factored import Factored

SHAPES = {
    "n smallest": (7, 30, 20),
    "n between": (25, 30, 20),
    "n largest": (90, 30, 20),
    "wide, n between": (25, 20, 30),
}


def factors(n: int, d: int, m: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(n, d, dtype=torch.float64, generator=rng)
    return X.to(dtype), torch.randn(n, m, dtype=torch.float64, generator=rng).to(dtype)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products_columns_and_norms_against_the_dense_product(shape: tuple[int, int, int]) -> None:
    X, signal = factors(*shape)
    product, G = Factored(X, signal), X.numpy().T @ signal.numpy()
    V, U = torch.eye(shape[2]).double()[:, :3] + 0.5, torch.eye(shape[1]).double()[:, :2] - 0.5
    assert product.samples == shape[0]
    np.testing.assert_allclose(product.matmat(V).numpy(), G @ V.numpy(), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(product.rmatmat(U).numpy(), G.T @ U.numpy(), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(product.columns(3, 9).numpy(), G[:, 3:9], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(product.dense().numpy(), G, rtol=1e-11, atol=1e-11)
    assert product.frobenius_squared() == pytest.approx(np.linalg.norm(G) ** 2, rel=1e-12)
    assert product.norm() == pytest.approx(np.linalg.norm(G, 2), rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_all_singular_values_to_rounding_of_the_largest(shape: tuple[int, int, int]) -> None:
    X, signal = factors(*shape)
    # Small values under large ones: what a Gram matrix would lose below 1e-8 σ₁.
    X = X * torch.logspace(0, -6, shape[1], dtype=torch.float64)
    exact = np.linalg.svd(X.numpy().T @ signal.numpy(), compute_uv=False)
    values = Factored(X, signal).singular_values().numpy()
    assert values.shape == exact.shape
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12 * exact[0])
    assert not values[shape[0] :].any()


def test_small_values_are_not_squared_away() -> None:
    rng = torch.Generator().manual_seed(3)
    left, right = (torch.linalg.qr(torch.randn(size, 6, dtype=torch.float64, generator=rng)).Q for size in (40, 30))
    known = torch.tensor([1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-14], dtype=torch.float64)
    values = Factored(left.T, known[:, None] * right.T).singular_values()[:6]
    # Backward stability: each to a few roundings of the largest.
    np.testing.assert_allclose(values.numpy(), known.numpy(), rtol=0, atol=5e-15)
    np.testing.assert_allclose(values[:4].numpy(), known[:4].numpy(), rtol=1e-5)


@pytest.mark.parametrize("scales", [(1.0, 1e-25), (1e-25, 1.0), (1e-12, 1e-13), (1.0, 1e25), (1e25, 1e-25)])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_float32_at_any_scale(shape: tuple[int, int, int], scales: tuple[float, float]) -> None:
    X, signal = factors(*shape, torch.float32)
    product, scale = Factored(X * scales[0], signal * scales[1]), scales[0] * scales[1]
    exact = np.linalg.svd(X.double().numpy().T @ signal.double().numpy(), compute_uv=False)
    # float32 rounding of n products per entry, against σ₁.
    atol = 3e-6 * exact[0]
    np.testing.assert_allclose(product.singular_values().double().numpy() / scale, exact, rtol=0, atol=atol)
    np.testing.assert_allclose(product.top(3).values.double().numpy() / scale, exact[:3], rtol=0, atol=atol)
    assert product.frobenius_squared() / scale**2 == pytest.approx((exact**2).sum(), rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_zero_signal(shape: tuple[int, int, int]) -> None:
    X, signal = factors(*shape)
    product = Factored(X, torch.zeros_like(signal))
    assert product.frobenius_squared() == 0.0
    assert not product.singular_values().any()
    assert product.singular_values().shape == (min(shape[1:]),)


def test_not_finite_shows_in_the_magnitude() -> None:
    X, signal = factors(5, 4, 3)
    signal[0, 0] = np.nan
    assert np.isnan(Factored(X, signal).magnitude())
    assert np.isnan(Factored(signal, torch.zeros_like(X)).magnitude())
