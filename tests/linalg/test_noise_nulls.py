"""The i.i.d.-entries null against simulated noise matrices, by their exact bidiagonal form."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import eigvalsh_tridiagonal
from scipy.stats import binom, kstest

from gradrank.linalg.marchenko_pastur import MarchenkoPastur
from gradrank.linalg.noise_nulls import (
    LOWER_SHARE,
    distance_from_noise,
    largest_of_noise,
    lowest_mean,
    marchenko_pastur_quantile,
    rank_deficient,
    shape_of_noise,
)


def noise_eigenvalues(N: int, M: int, draws: int) -> np.ndarray:
    """Draw the ascending eigenvalues of GᵀG, G N×M standard normal, shape (draws, M) (Dumitriu and Edelman 2002)."""
    rng = np.random.default_rng(N + M)
    out = np.empty((draws, M))
    for i in range(draws):
        x, y = np.sqrt(rng.chisquare(N - np.arange(M))), np.sqrt(rng.chisquare(np.arange(M - 1, 0, -1)))
        out[i] = eigvalsh_tridiagonal(x**2 + np.append(0.0, y**2), x[:-1] * y, lapack_driver="sterf")
    return out


@pytest.mark.parametrize("aspect", [0.01, 0.5, 1.0])
def test_quantile_inverts_the_distribution(aspect: float) -> None:
    law = MarchenkoPastur(aspect)
    for p in (1e-4, 0.25, 0.5, 0.75, 1 - 1e-6):
        assert float(law.cdf(marchenko_pastur_quantile(law, p))) == pytest.approx(p, abs=1e-9)
    assert [marchenko_pastur_quantile(law, p) for p in (0.0, 1.0)] == list(law.edges[0])


def test_the_mean_of_all_eigenvalues_is_the_trace() -> None:
    """E tr = NM exactly; λ₁/tr and tr are independent, so that the second result is −2/(NM) = −Var(log tr)."""
    for N, M in ((60, 60), (90, 30)):
        mean, excess = lowest_mean(MarchenkoPastur(M / N), M, M)
        assert mean == pytest.approx(1.0, abs=1e-10)
        assert excess == pytest.approx(-2.0 / (N * M), rel=1e-6)


@pytest.mark.parametrize(("N", "M"), [(40, 40), (120, 40)])
def test_lowest_mean_against_simulation(N: int, M: int) -> None:
    draws, count = 4000, int(LOWER_SHARE * M)
    eigenvalues = noise_eigenvalues(N, M, draws)
    lowest = eigenvalues[:, :count].sum(axis=1) / (N * M)
    mean, excess = lowest_mean(MarchenkoPastur(M / N), count, M)
    # The mean is right to order 1/M, the term of that order included: without it, ten times further off.
    assert abs(lowest.mean() / mean - 1.0) < 4 * lowest.std() / mean / math.sqrt(draws) + 2.0 / M**2
    ratio, top = np.log(eigenvalues[:, -1] / lowest), np.log(eigenvalues[:, -1])
    # Var(log λ₁/L) − Var(log λ₁) = −Cov of the sum and the difference of the two logarithms.
    products = (ratio - ratio.mean()) ** 2 - (top - top.mean()) ** 2
    assert abs(products.mean() - excess) < 4 * products.std() / math.sqrt(draws) + excess / 4


@pytest.mark.slow
@pytest.mark.parametrize(("N", "M"), [(20, 20), (60, 30)])
def test_level_of_small_noise(N: int, M: int) -> None:
    draws = 800
    p = np.array([largest_of_noise(np.sqrt(e[::-1]), N).p_value for e in noise_eigenvalues(N, M, draws)])
    for level in (0.01, 0.05, 0.1, 0.5):
        lower, upper = binom.ppf([0.005, 0.995], draws, level)
        # A tenth of the level is granted to the smallest matrices.
        assert 0.9 * lower <= (p <= level).sum() <= 1.1 * upper


def test_scale_and_edge() -> None:
    values = torch.linalg.svdvals(3.0 * torch.randn(200, 300, generator=torch.Generator().manual_seed(0)).double())
    found = largest_of_noise(values.numpy(), 300)
    assert found.scale == pytest.approx(3.0, rel=4 * math.sqrt(2 / 60000))
    assert found.edge == pytest.approx((math.sqrt(200) + math.sqrt(300)) * found.scale, rel=1e-12)
    assert distance_from_noise(values.numpy(), 300, found.scale) < 5 / 200
    assert distance_from_noise(values.numpy(), 300, 0.9 * found.scale) > 0.05
    zero = largest_of_noise(np.zeros(30), 40)
    assert zero.scale == 0.0
    assert math.isnan(zero.p_value)


def test_rank_deficiency_knows_the_precision() -> None:
    rng = np.random.default_rng(5)
    G = rng.standard_normal((80, 60))
    for dtype in (np.float32, np.float64):
        eps = float(np.finfo(dtype).eps)
        full = np.linalg.svd(G.astype(dtype).astype(float), compute_uv=False)
        assert not rank_deficient(full, 80, 1.0, eps)
        low = (G @ (np.eye(60) - np.ones((60, 60)) / 60)).astype(dtype).astype(float)
        assert rank_deficient(np.linalg.svd(low, compute_uv=False), 80, 1.0, eps)
    square = np.linalg.svd(rng.standard_normal((400, 400)).astype(np.float16).astype(float), compute_uv=False)
    assert not rank_deficient(square, 400, 1.0, float(np.finfo(np.float16).eps))


@pytest.mark.parametrize(("N", "M"), [(200, 100), (1000, 100), (300, 300), (60, 50)])
def test_shape_is_uniform_in_noise(N: int, M: int) -> None:
    p = [shape_of_noise(np.sqrt(np.maximum(row[::-1], 0.0)), N) for row in noise_eigenvalues(N, M, 200)]
    assert kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("kind", ["signs", "uniform"])
def test_shape_accepts_other_light_tails(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        draw = rng.integers(0, 2, (200, 100)) * 2.0 - 1.0 if kind == "signs" else rng.uniform(-1.0, 1.0, (200, 100))
        assert shape_of_noise(np.linalg.svd(draw, compute_uv=False), 200) > 1e-4


@pytest.mark.parametrize(("N", "M", "rho"), [(200, 100, 0.3), (400, 200, 0.2), (1000, 100, 0.15), (1000, 500, 0.15)])
def test_shape_sees_correlated_columns(N: int, M: int, rho: float) -> None:
    """The distance of distributions does not: it is below 0.005 + 6/M."""
    rng = np.random.default_rng(1)
    factor = np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(M), np.arange(M))))
    for _ in range(5):
        values = np.linalg.svd(rng.standard_normal((N, M)) @ factor.T, compute_uv=False)
        assert shape_of_noise(values, N) < 1e-4


def test_shape_does_not_depend_on_the_scale_and_bears_zeros() -> None:
    values = np.linalg.svd(np.random.default_rng(2).standard_normal((90, 60)), compute_uv=False)
    assert shape_of_noise(1e-60 * values, 90) == pytest.approx(shape_of_noise(values, 90), rel=1e-9)
    assert shape_of_noise(np.zeros(60), 90) == 0.0
