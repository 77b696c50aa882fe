"""The traces' mean and covariance against simulation, Silverstein's law, and the formula they were rewritten from."""

import numpy as np
import pytest

from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.trace_statistics import TraceStatistics, traces

T = np.geomspace(0.02, 2.0, 6)


def law(n: int, d: int, alpha: float, s: float) -> TraceStatistics:
    return TraceStatistics(np.arange(1, d + 1.0) ** -alpha, s, n, T)


def simulated(n: int, d: int, alpha: float, s: float, draws: int) -> np.ndarray:
    rng = np.random.default_rng([n, d])
    rows = []
    for _ in range(draws):
        X = rng.standard_normal((n, d)) * np.arange(1, d + 1.0) ** (-alpha / 2)
        q = rng.standard_normal(d)
        X += np.sqrt(s) * np.outer(rng.standard_normal(n), q / np.linalg.norm(q))
        rows.append(traces(np.linalg.svd(X, compute_uv=False) ** 2 / n, T))
    return np.array(rows)


def test_traces_by_hand() -> None:
    # 3/(3 + 1) + 1/(1 + 1) + 0 and 3/5 + 1/3.
    np.testing.assert_allclose(traces(np.array([3.0, 1.0, 0.0]), np.array([1.0, 2.0])), [1.25, 14 / 15], rtol=1e-15)


@pytest.mark.parametrize(
    ("n", "d", "alpha", "s"), [(60, 90, 0.6, 30.0), (90, 60, 0.0, 5.0), (75, 75, 0.3, 1.0), (60, 90, 0.6, 0.0)]
)
def test_mean_and_covariance_of_simulated_traces(n: int, d: int, alpha: float, s: float) -> None:
    draws = 200
    sample, exact = simulated(n, d, alpha, s, draws), law(n, d, alpha, s)
    variance = np.diag(exact.covariance)
    # Besides the standard error: neglected terms of order 1/n of a standard deviation.
    error = np.sqrt(variance / draws)
    assert (np.abs(sample.mean(axis=0) - exact.mean) < 4 * error + np.sqrt(variance) / n).all()
    # In the principal components, where each variance has the relative standard error √(2/draws) = 0.08.
    values, vectors = np.linalg.eigh(exact.covariance)
    ratio = (((sample - sample.mean(axis=0)) @ vectors) ** 2).sum(axis=0) / (draws - 1) / values
    np.testing.assert_allclose(ratio[-4:], 1.0, atol=4 * np.sqrt(2 / draws) + 6 / min(n, d))


def test_kappa_solves_silversteins_equation() -> None:
    for n, d in ((60, 90), (90, 60)):
        tau = np.arange(1, d + 1.0) ** -0.6
        exact = SilversteinLaw(tau, n).companion_stieltjes(-T)
        np.testing.assert_allclose(1 / law(n, d, 0.6, 0.0).kappa, exact.real, rtol=1e-11)


def test_rank_one_term_is_that_of_the_eigenvalues() -> None:
    """With q_k² = 1/d exactly, Σ has the eigenvalues of a matrix, and κ that of its law."""
    n, d, s = 50, 70, 7.0
    tau = np.arange(1, d + 1.0) ** -0.6
    values = np.linalg.eigvalsh(np.diag(tau) + s / d * np.ones((d, d)))
    exact = SilversteinLaw(values, n).companion_stieltjes(-T)
    np.testing.assert_allclose(1 / law(n, d, 0.6, s).kappa, exact.real, rtol=1e-10)


def test_covariance_is_that_of_bai_and_silverstein() -> None:
    n, d, h = 60, 90, 1e-5
    tau = np.arange(1, d + 1.0) ** -0.6
    m = 1 / law(n, d, 0.6, 0.0).kappa
    up, down = (1 / TraceStatistics(tau, 0.0, n, T * f).kappa for f in (1 + h, 1 - h))
    slope = -(up - down) / (2 * h * T)  # dm̃/dz at z = −t
    i, j = np.triu_indices(len(T), 1)
    cov = 2 * T[i] * T[j] * (slope[i] * slope[j] / (m[i] - m[j]) ** 2 - 1 / (T[i] - T[j]) ** 2)
    np.testing.assert_allclose(law(n, d, 0.6, 0.0).covariance[i, j], cov, rtol=1e-5)
