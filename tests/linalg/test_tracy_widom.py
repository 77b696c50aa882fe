"""The Tracy-Widom law against its moments, Painlevé II, the tail's expansion and published quantiles."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import airy

from gradrank.foundation.errors import InputError
from gradrank.linalg.tracy_widom import MEAN, VARIANCE, cdf, quantile, survival


def test_moments() -> None:
    """E x = ∫ (1 − F) − ∫ F and E x² = 2 ∫ x (1 − F) − 2 ∫ x F over both half lines, by Gauss-Legendre."""
    points, weights = np.polynomial.legendre.leggauss(80)
    right, left = 7.5 * (points + 1), -6.5 * (points + 1)
    above, below = survival(right), cdf(left)
    mean = 7.5 * (weights @ above) - 6.5 * (weights @ below)
    second = 2 * (7.5 * (weights @ (right * above)) - 6.5 * (weights @ (left * below)))
    assert mean == pytest.approx(MEAN, abs=1e-11)
    assert second - mean**2 == pytest.approx(VARIANCE, abs=1e-10)


def test_painleve() -> None:
    """F₁(s) = exp(−½ ∫ₛ (q + (x − s) q²) dx), q″ = s q + 2q³, q → Ai (Tracy and Widom 1996)."""
    start = 8.0
    q, slope = airy(start)[:2]

    def field(s: float, u: np.ndarray) -> list[float]:  # (q, q′, ∫q, ∫q², ∫(x − s)q²) from s to infinity
        return [u[1], s * u[0] + 2 * u[0] ** 3, -u[0], -(u[0] ** 2), -u[3]]

    tail = [quad(f, start, start + 12, epsabs=0)[0] for f in (lambda x: airy(x)[0], lambda x: airy(x)[0] ** 2)]
    tail.append(quad(lambda x: (x - start) * airy(x)[0] ** 2, start, start + 12, epsabs=0)[0])
    at = np.array([4.0, 2.0, 0.0, -1.0, -2.0, -3.0])
    found = solve_ivp(field, (start, -3.0), [q, slope, *tail], method="DOP853", t_eval=at, rtol=1e-13, atol=1e-16)
    exponent = -(found.y[2] + found.y[4]) / 2
    np.testing.assert_allclose(cdf(at), np.exp(exponent), rtol=1e-7)
    np.testing.assert_allclose(survival(at), -np.expm1(exponent), rtol=1e-7)


@pytest.mark.parametrize("s", [6.0, 8.0, 12.0, 20.0, 50.0])
def test_tail(s: float) -> None:
    """1 − F₁ = tr B − ½ ((tr B)² − tr B²) + …, tr B = ½ ∫ₛ Ai; the rest is of order (tr B)²."""
    trace = quad(lambda t: float(airy(t)[0]), s, s + 12, epsabs=0, epsrel=1e-12)[0] / 2
    assert float(survival(s)) == pytest.approx(trace, rel=max(trace, 1e-10))


def test_published_quantiles() -> None:
    """Values of Bejan 2005, table 1, and of Prähofer's tables."""
    assert quantile(0.95) == pytest.approx(0.9793, abs=5e-5)
    assert quantile(0.99) == pytest.approx(2.0234, abs=5e-5)
    assert quantile(0.01) == pytest.approx(-3.8954, abs=5e-5)
    for p in (1e-6, 0.3, 0.5, 0.9999, 1 - 1e-12):
        assert float(cdf(quantile(p))) == pytest.approx(p, abs=1e-12)


def test_extremes() -> None:
    assert cdf([-math.inf, -40.0, 40.0, math.inf]).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert survival([-math.inf, 1e4, math.inf]).tolist() == [1.0, 0.0, 0.0]
    assert math.isnan(float(cdf(math.nan)))
    assert survival(np.zeros((2, 3))).shape == (2, 3)
    for p in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match="p: "):
            quantile(p)
