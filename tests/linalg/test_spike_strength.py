"""Spike strengths against a secular equation solved by eigenvalues, and simulation."""

import numpy as np
import pytest

from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.spike_strength import (
    find_outlier,
    stands_off,
    strength_along_random,
    strength_without_model,
)

BULK = np.arange(1, 91.0) ** -0.5
ROWS = 120


def test_outlier_inverts_psi() -> None:
    law = SilversteinLaw(BULK, ROWS)
    for a in (3.0, 50.0):
        found = find_outlier(float(law.psi(a)), BULK, ROWS)
        assert found is not None
        assert found.position == pytest.approx(a, rel=1e-12)
        assert found.slope == pytest.approx(float(law.psi_derivative(a)), rel=1e-12)
        assert found.error == pytest.approx(a * np.sqrt(2 / ROWS / found.slope), rel=1e-12)


def test_no_outlier_at_the_edge() -> None:
    law = SilversteinLaw(BULK, ROWS)
    assert find_outlier(law.upper_edge * (1 - 1e-6), BULK, ROWS) is None
    assert find_outlier(float(BULK[0]) / 2, BULK, ROWS) is None
    # Just above the edge an outlier exists, but with ψ′ near 0 it does not stand off.
    just = law.upper_edge * 1.001
    assert find_outlier(just, BULK, ROWS) is not None
    assert not stands_off(find_outlier(just, BULK, ROWS), just, BULK, ROWS)
    assert stands_off(find_outlier(20.0, BULK, ROWS), 20.0, BULK, ROWS)


def test_strength_solves_the_secular_equation() -> None:
    """With q_k² = 1/d exactly, a is an eigenvalue of diag(τ) + s q qᵀ."""
    d, s = len(BULK), 9.0
    a = float(np.linalg.eigvalsh(np.diag(BULK) + s / d * np.ones((d, d)))[-1])
    found = find_outlier(float(SilversteinLaw(BULK, ROWS).psi(a)), BULK, ROWS)
    assert found is not None
    assert strength_along_random(found, BULK)[0] == pytest.approx(s, rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(120, 90), (90, 120)])
@pytest.mark.parametrize("model", ["power law", "none"])
def test_strengths_of_simulated_spikes(n: int, d: int, model: str) -> None:
    rng, bulk, s, draws = np.random.default_rng(6), np.arange(1, d + 1.0) ** -0.5, 12.0, 100
    found = np.empty((draws, 2))
    for draw in range(draws):
        q = rng.standard_normal(d)
        X = rng.standard_normal((n, d)) * np.sqrt(bulk)
        X += np.sqrt(s) * np.outer(rng.standard_normal(n), q / np.linalg.norm(q))
        values = np.linalg.svd(X, compute_uv=False) ** 2 / n
        if model == "none":
            result = strength_without_model(values, n, d)
        else:
            outlier = find_outlier(float(values[0]), bulk, n)
            result = None if outlier is None else strength_along_random(outlier, bulk)
        assert result is not None
        found[draw] = result
    scatter = found[:, 0].std(ddof=1)
    assert abs(found[:, 0].mean() - s) < 3 * scatter / np.sqrt(draws) + 2 * s / n
    # A standard deviation has the relative standard error 1/√(2 draws) = 0.05.
    assert found[:, 1].mean() == pytest.approx(scatter, rel=3 / np.sqrt(2 * draws))


def test_without_model_by_hand() -> None:
    # One eigenvalue alone is its own population value, to 1/n; a flat spectrum has no outlier.
    strength, error = strength_without_model(np.array([8.0, 0.0]), 50, 40) or (0.0, 0.0)
    assert strength == pytest.approx(8.0, rel=1e-14)
    assert error == pytest.approx(8.0 * np.sqrt(2 / 50), rel=1e-12)
    assert strength_without_model(np.ones(40), 50, 40) is None
    assert strength_without_model(np.linspace(2.0, 1.0, 40), 50, 40) is None
