"""The bulk on the scale of singular values: Marchenko-Pastur in closed form, and simulated spectra against themselves."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gradrank.linalg.bulk import SampledBulk, SilversteinBulk
from gradrank.linalg.gaussian_columns import gaussian_samples, sampled_spectrum
from gradrank.linalg.marchenko_pastur import MarchenkoPastur
from gradrank.linalg.outliers import separate
from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law
from gradrank.linalg.tracy_widom import survival

K, M = 200, 500


def spiked(*spikes: float, size: int = K) -> np.ndarray:
    return np.append(spikes, np.ones(size - len(spikes)))


def mass(bulk: SilversteinBulk | SampledBulk, points: int = 1000) -> float:
    """Integrate the number density over every interval, x = a + (b − a) sin²θ for the square roots at its ends."""
    theta = np.pi / 2 * (np.arange(points) + 0.5) / points
    total = 0.0
    for a, b in bulk.edges:
        x = a + (b - a) * np.sin(theta) ** 2
        total += np.pi / 2 * float((bulk.number_density(x) * (b - a) * np.sin(2 * theta)).mean())
    return total


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])
@pytest.mark.parametrize(("rows", "columns"), [(200, 500), (400, 400), (500, 200)])
def test_marchenko_pastur_with_a_scale(rows: int, columns: int, scale: float) -> None:
    """σ = scale √λ: number above K(1 − F(σ²/scale²)), density 2Kσ f/scale², edges scale (1 ± √γ)."""
    bulk, exact = SilversteinBulk(separate(np.ones(rows), columns), scale), MarchenkoPastur(rows / columns)
    root = math.sqrt(rows / columns)
    assert bulk.upper_edge == pytest.approx(scale * (1 + root), rel=1e-12)
    np.testing.assert_allclose(bulk.edges, [(scale * abs(1 - root), scale * (1 + root))], rtol=1e-11, atol=1e-7 * scale)
    y = np.linspace(0.01, 1.2 * (1 + root), 60)
    np.testing.assert_allclose(bulk.above(scale * y), rows * (1 - exact.cdf(y**2)), rtol=0, atol=1e-7)
    np.testing.assert_allclose(scale * bulk.number_density(scale * y), 2 * y * rows * exact.density(y**2), rtol=1e-8)
    assert mass(bulk) == pytest.approx(min(rows, columns), rel=1e-6)
    assert float(bulk.above(0.0)) == float(bulk.above(-scale)) == pytest.approx(min(rows, columns), rel=1e-12)


def test_p_value_is_tracy_widom_at_the_edge() -> None:
    """By the centring of Ma 2012, right to O(m^(−2/3)) of the width; decreasing, and free of the unit."""
    bulk = SilversteinBulk(separate(np.ones(K), M), 3.0)
    a, b = math.sqrt(K - 0.5), math.sqrt(M - 0.5)
    centre, width = (a + b) ** 2 / M, (a + b) * (1 / a + 1 / b) ** (1 / 3) / M
    for s in (-3.0, -1.0, 0.0, 1.0, 2.0234, 4.0):
        assert bulk.p_value(3 * math.sqrt(centre + s * width)) == pytest.approx(float(survival(s)), rel=0.03)
    x = np.linspace(0.9, 1.2, 40) * bulk.upper_edge
    p = [bulk.p_value(float(at)) for at in x]
    assert (np.diff(p) <= 0).all()
    assert p[0] > 0.99
    assert p[-1] < 1e-6
    large = SilversteinBulk(separate(np.ones(K), M), 3e25)
    assert large.p_value(1e25 * x[20]) == pytest.approx(p[20], rel=1e-9)


@pytest.mark.parametrize(
    ("population", "columns"),
    [
        (spiked(30.0, 9.0), M),
        (np.append([20.0, 15.0], np.arange(1, 199.0) ** -0.6), M),
        (spiked(60.0, 30.0), 120),  # fewer columns than eigenvalues
        (np.concatenate([[30.0], np.ones(99), np.zeros(100)]), M),
        (np.append([300.0], np.repeat([30.0, 1.0], [80, 119])), M),  # two bands
        (spiked(20.0, 19.8), M),
    ],
)
def test_bulk_and_outliers_are_all_the_singular_values(population: np.ndarray, columns: int) -> None:
    separation = separate(population, columns)
    bulk = SilversteinBulk(separation, 2.0)
    assert separation.count > 0
    number = separation.rank - separation.count
    assert float(bulk.above(0.0)) == pytest.approx(number, rel=1e-9)
    # The edges are those of the bulk's own law, moved by 1/m beside the whole's.
    assert mass(bulk) == pytest.approx(number, abs=0.5)
    outside = 2 * np.sqrt(separation.positions)
    np.testing.assert_array_equal(bulk.above(outside), 0.0)
    np.testing.assert_array_equal(bulk.number_density(outside), 0.0)
    x = np.linspace(0.02, 1.0, 40) * bulk.upper_edge
    h = 1e-6 * x
    slope = (bulk.above(x - h) - bulk.above(x + h)) / (2 * h)
    np.testing.assert_allclose(slope, bulk.number_density(x), rtol=1e-3, atol=1e-3 * number / bulk.upper_edge)


@pytest.fixture(scope="module", name="sampled")
def _sampled() -> SampledBulk:
    C = torch.diag(torch.from_numpy(spiked(40.0, 20.0)))
    sample = sampled_spectrum(*gaussian_samples(lambda _: C, [1.0], M, 8, seed=1), K)
    return SampledBulk(sample, 2, 5.0)


def test_a_sampled_bulk_is_near_its_law(sampled: SampledBulk) -> None:
    """The mean over 8 spectra of the number above a point: within one eigenvalue of Silverstein's law."""
    law = SilversteinBulk(separate(spiked(40.0, 20.0), M), 5.0)
    x = np.linspace(*law.edges[0], 80)
    assert np.abs(sampled.above(x) - law.above(x)).max() < 1.0
    inner = x[8:-8]
    density = law.number_density(inner)
    # Ordered values scatter by half a spacing, their means over 8 by a sixth, over steps of two spacings.
    assert np.abs(sampled.number_density(inner) / density - 1).mean() < 0.15
    # Eight tops of deviation 1.27 widths: their mean has a standard error of 0.45 widths, and so has the centre.
    centre, width = largest_eigenvalue_law(SilversteinLaw(np.ones(K - 2), M))
    assert abs(sampled.centre - centre) < 3 * 0.45 * width
    assert sampled.upper_edge == pytest.approx(law.upper_edge, rel=0.02)


def test_a_sampled_bulk_agrees_with_itself(sampled: SampledBulk) -> None:
    (a, b) = sampled.edges[0]
    assert a < b == sampled.upper_edge
    lowest, highest = 0.5 * a, 1.1 * b
    assert float(sampled.above(lowest)) == K - 2
    assert float(sampled.above(highest)) == 0.0
    x = np.linspace(lowest, highest, 20_001)
    density = sampled.number_density(x)
    assert (density >= 0).all()
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
    assert cumulative[-1] == pytest.approx(K - 2, rel=1e-3)
    assert np.abs((K - 2 - cumulative) - sampled.above(x)).max() < 2.5  # curve through a hundred of 198 values
    assert sampled.number_density(np.array([[a, b]])).shape == (1, 2)
    assert float(sampled.number_density(highest)) == float(sampled.number_density(lowest)) == 0.0


def test_p_values_of_a_sampled_bulk(sampled: SampledBulk) -> None:
    x = np.linspace(0.9, 1.2, 40) * sampled.upper_edge
    p = np.array([sampled.p_value(float(at)) for at in x])
    assert (np.diff(p) <= 0).all()
    assert sampled.p_value(sampled.upper_edge) == pytest.approx(float(survival(0.0)), rel=0.2)
    assert sampled.p_value(sampled.upper_edge) > float(survival(0.0))  # the edge itself is uncertain
    assert (p[0], p[-1]) == (pytest.approx(1.0, abs=1e-3), pytest.approx(0.0, abs=1e-3))


@pytest.mark.slow
def test_the_level_of_an_edge_known_from_few_draws() -> None:
    """Tops of normal law, eight of them known: a ninth exceeds the 1 % point with 1 %, not the 2.3 % of a plugged-in law."""
    rng, found = np.random.default_rng(0), []
    C = torch.diag(torch.from_numpy(spiked(40.0, 20.0)))
    sample = sampled_spectrum(*gaussian_samples(lambda _: C, [1.0], M, 2, seed=1), K)
    for _ in range(1500):
        tops = np.sqrt(100.0 + rng.standard_normal(9))
        found.append(SampledBulk(replace(sample, bulk_tops=tops[:8]), 2, 1.0).p_value(float(tops[8])))
    # A normal law has a lighter tail than Tracy and Widom's, 0.7 % beyond the latter's 99 % point.
    assert 0.002 < np.mean(np.array(found) <= 0.01) < 0.013


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_sampled_bulk_of_any_scale(sampled: SampledBulk, scale: float) -> None:
    C = torch.diag(torch.from_numpy(spiked(40.0, 20.0)))
    sample = sampled_spectrum(*gaussian_samples(lambda _: C, [1.0], M, 8, seed=1), K)
    other = SampledBulk(sample, 2, 5.0 * scale)
    x = 1.02 * sampled.upper_edge
    assert other.upper_edge == pytest.approx(scale * sampled.upper_edge, rel=1e-12)
    assert other.p_value(scale * x) == pytest.approx(sampled.p_value(x), rel=1e-9)
    y = np.linspace(*sampled.edges[0], 7)[1:-1]
    np.testing.assert_allclose(scale * other.number_density(scale * y), sampled.number_density(y), rtol=1e-9)


def test_a_single_value_has_no_density() -> None:
    C = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    bulk = SampledBulk(sampled_spectrum(*gaussian_samples(lambda _: C, [1.0], 60, 4, seed=0), 1), 0, 1.0)
    assert bool(np.isnan(bulk.number_density([0.5, 1.0])).all())
    np.testing.assert_array_equal(bulk.above([0.0, 9.0]), [1.0, 0.0])
