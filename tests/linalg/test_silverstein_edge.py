"""Centre and scale of the largest eigenvalue against the closed form of white noise and simulated covariances."""

import math

import numpy as np
import pytest
import scipy.linalg

from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law
from gradrank.linalg.tracy_widom import MEAN, VARIANCE


@pytest.mark.parametrize(("K", "m"), [(300, 1000), (400, 400), (900, 300)])
def test_white_noise_is_johnstones_law(K: int, m: int) -> None:
    """(√K + √m)² − ½ (√K + √m)(1/√K + 1/√m), and (√K + √m)(1/√K + 1/√m)^(1/3) (Johnstone 2001), over m."""
    centre, scale = largest_eigenvalue_law(SilversteinLaw(np.full(K, 3.0), m))
    total, inverse = math.sqrt(K) + math.sqrt(m), 1 / math.sqrt(K) + 1 / math.sqrt(m)
    assert scale == pytest.approx(3.0 * total * inverse ** (1 / 3) / m, rel=1e-9)
    assert centre == pytest.approx(3.0 * (total**2 - total * inverse / 2) / m, rel=1e-12)
    ma = 3.0 * (math.sqrt(K - 0.5) + math.sqrt(m - 0.5)) ** 2 / m
    assert abs(centre - ma) < 0.01 * scale


def test_the_scale_of_the_population_factors_out() -> None:
    population = np.linspace(1.0, 2.0, 50)
    one = largest_eigenvalue_law(SilversteinLaw(population, 80))
    tiny = largest_eigenvalue_law(SilversteinLaw(1e-40 * population, 80))
    np.testing.assert_allclose(np.array(tiny) * 1e40, one, rtol=1e-12)


POPULATIONS = {
    "two points": np.repeat([1.0, 2.0], 30),
    "power law": np.arange(8, 68.0) ** -0.3,
    "uniform": np.linspace(0.1, 1.0, 60),
}


@pytest.mark.slow
@pytest.mark.parametrize("m", [40, 90])
@pytest.mark.parametrize("name", POPULATIONS)
def test_simulated_largest_eigenvalue(name: str, m: int) -> None:
    """Mean and variance within four standard errors and the order of what is left out.

    The fluctuation of the edge moves w by δ = √(2s/ψ″), and ψ is expanded over δ/(w₀ − τ₁): what is left out is its square, of
    order m^(−2/3).
    """
    population, draws = POPULATIONS[name], 2000
    law = SilversteinLaw(population, m)
    centre, scale = largest_eigenvalue_law(law)
    rng = np.random.default_rng(m)
    tops = np.empty(draws)
    for i in range(draws):
        Y = np.sqrt(population)[:, None] * rng.standard_normal((60, m))
        S = Y @ Y.T / m if m >= 60 else Y.T @ Y / m
        tops[i] = scipy.linalg.eigvalsh(S, subset_by_index=[len(S) - 1, len(S) - 1])[0]
    x = (tops - centre) / scale
    error, w = math.sqrt(VARIANCE / draws), law.spike_threshold
    curvature = float(2.0 * (population**2 / (w - population) ** 3).sum() / m)
    left_out = 2.0 * scale / curvature / (w - population.max()) ** 2
    assert left_out < 0.6  # of a steeper population the largest τ stands almost alone
    assert abs(x.mean() - MEAN) < 4 * error + left_out
    assert abs(x.var() - VARIANCE) < 4 * VARIANCE * math.sqrt(2.4 / draws) + 2 * VARIANCE * left_out
    # Centred at the edge itself, which is right to m^(−1/3) only, the mean is further off.
    assert abs(((tops - law.upper_edge) / scale).mean() - MEAN) > 2 * abs(x.mean() - MEAN)
