"""The product of two factors in general position against closed forms, Silverstein's law and simulated rotations."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from gradrank.linalg.marchenko_pastur import MarchenkoPastur
from gradrank.linalg.noise_nulls import marchenko_pastur_quantile
from gradrank.linalg.product_null import gram_eigenvalues, product_edge, product_null
from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law
from gradrank.linalg.tracy_widom import MEAN, VARIANCE


def marchenko_pastur_points(aspect: float, n: int) -> np.ndarray:
    law = MarchenkoPastur(aspect)
    return np.array([marchenko_pastur_quantile(law, 1 - (i + 0.5) / n) for i in range(n)])


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_two_square_noises_have_the_fuss_catalan_edge() -> None:
    """x = (1 + y)³/y, so that E = 27/4 at y₀ = ½ (Penson and Zyczkowski 2011); aspects ¼ and ½: the root of a quadratic."""
    n = 400  # quantiles stand for the law: errors of order 1/n
    square = marchenko_pastur_points(1.0, n)
    assert product_edge(square, square, n).edge == pytest.approx(6.75, rel=2 / n)
    a, b = marchenko_pastur_points(0.25, n), marchenko_pastur_points(0.5, n)
    y = np.linspace(0.3, 5.0, 200001)
    assert product_edge(a, b, n).edge == pytest.approx(((1 + y) * (1 + y / 4) * (1 + y / 2) / y).min(), rel=2 / n)


def test_white_inputs_give_silversteins_law() -> None:
    """With XXᵀ Marchenko-Pastur, XᵀOΔ has independent rows of covariance ΔᵀΔ: edge, threshold and scale of that law.

    Quantiles stand for the Marchenko-Pastur law, near whose edge α lies: the differences fall as a power of n.
    """
    errors = []
    for n in (150, 1200):
        d, b = 3 * n // 2, np.linspace(1.0, 3.0, n)[::-1].copy()
        found, law = product_edge(marchenko_pastur_points(n / d, n), b, n), SilversteinLaw(b, d)
        pairs = [(found.edge, law.upper_edge), (found.beta, law.spike_threshold)]
        pairs.append((found.width, largest_eigenvalue_law(law)[1]))
        errors.append([abs(one / two - 1.0) for one, two in pairs])
    small, large = np.array(errors)
    assert (large < [0.001, 0.01, 0.1]).all()
    assert (large < 0.5 * small).all()


def test_zeros_of_a_factor_count() -> None:
    """More samples than inputs and signals: the free product of the transposed problem, of the same values."""
    rng = np.random.default_rng(0)
    a, b = np.sort(rng.uniform(1, 2, 50))[::-1], np.sort(rng.uniform(1, 2, 80))[::-1]
    n = 200
    y = np.geomspace(0.05, 2.0, 300)
    x = [
        scipy.optimize.brentq(lambda t, v=v, y=at: (v / (t - v)).sum() / n - y, v[0] * (1 + 1e-9), 1e6)
        for v, at in ((v, at) for at in y for v in (a, b))
    ]
    alpha, beta = np.array(x).reshape(-1, 2).T
    assert product_edge(a, b, n).edge == pytest.approx((alpha * beta * y / (1 + y)).min(), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "ranks"), [(60, (60, 60)), (90, (50, 70))])
def test_simulated_rotations(n: int, ranks: tuple[int, int]) -> None:
    """Centre, with its term of order 1/n, and scale over uniform rotations of fixed spectra."""
    rng = np.random.default_rng(n)
    a, b = np.linspace(2.0, 0.5, ranks[0]), np.linspace(1.0, 0.2, ranks[1]) ** 2
    law = product_edge(a, b, n)
    draws = 1500
    tops = np.empty(draws)
    for i in range(draws):
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        core = np.sqrt(a)[:, None] * Q[: len(a), : len(b)] * np.sqrt(b)
        S = core @ core.T
        tops[i] = scipy.linalg.eigvalsh(S, subset_by_index=[len(S) - 1, len(S) - 1])[0]
    x = (tops - law.centre) / law.width
    error = math.sqrt(VARIANCE / draws)
    assert abs(x.mean() - MEAN) < 4 * error + n ** (-2 / 3)
    assert abs(x.var() / VARIANCE - 1) < 4 * math.sqrt(2.4 / draws) + 4 * n ** (-2 / 3)
    assert abs(((tops - law.edge) / law.width).mean() - MEAN) > 4 * error + n ** (-2 / 3)


@pytest.mark.slow
def test_random_signs_of_unequal_rows() -> None:
    """Long inputs that go with strong signals: the law of XᵀDΔ over random signs D, which know nothing of rotations."""
    n, d, m, draws = 120, 160, 200, 300
    lengths = torch.linspace(0.3, 3.0, n, dtype=torch.float64)[:, None]
    X, signal = lengths * normal(0, n, d), lengths * normal(1, n, m)
    law = product_null(X, signal)
    signs = torch.sign(normal(2, draws, n))
    tops = np.array([float(torch.linalg.matrix_norm(X.T @ (s[:, None] * signal), ord=2)) for s in signs])
    x = ((tops / law.unit) ** 2 - law.centre) / law.width
    assert abs(x.mean() - MEAN) < 4 * math.sqrt(VARIANCE / draws) + n ** (-2 / 3)
    # Blind to the pairs, the edge would be too low by many widths.
    a, b = gram_eigenvalues(X), gram_eigenvalues(signal)
    blind = product_edge(a, b, n)
    assert (tops.mean() ** 2 - blind.centre) / blind.width > 10


def test_strong_outliers_cast_no_shadow() -> None:
    n, d, m = 150, 200, 250
    X, signal = normal(3, n, d), normal(4, n, m)
    clean = product_null(X, signal)
    assert clean.outliers == (0, 0)
    for strength in (300.0, 3e4):
        dirty = product_null(
            X + strength * torch.outer(normal(5, n), normal(6, d)) / 50,
            signal + torch.outer(normal(7, n), normal(8, m)),
        )
        assert dirty.outliers == (1, 1)
        assert dirty.upper_edge == pytest.approx(clean.upper_edge, rel=0.02)
    twice = X + 3.0 * torch.outer(normal(5, n), normal(6, d)) + 3.03 * torch.outer(normal(9, n), normal(10, d))
    assert product_null(twice, signal).outliers == (2, 0)


def test_scales_and_empty_rows_do_not_matter() -> None:
    X, signal = normal(11, 80, 60), normal(12, 80, 50)
    law = product_null(X, signal)
    tiny = product_null(1e-150 * X, 1e-150 * signal)
    assert tiny.upper_edge == pytest.approx(law.upper_edge * 1e-300, rel=1e-10)
    assert law.p_value(1.1 * law.upper_edge) == pytest.approx(tiny.p_value(1.1 * tiny.upper_edge), rel=1e-8)
    blank = torch.zeros(30, 60, dtype=torch.float64)
    padded = product_null(torch.cat([X, blank]), torch.cat([signal, normal(13, 30, 50)]))
    assert padded.upper_edge == pytest.approx(law.upper_edge, rel=1e-6)
    assert product_null(X, torch.outer(normal(14, 80), normal(15, 50))).rank <= 1
    assert product_null(X, torch.zeros(80, 50)).rank == 0
