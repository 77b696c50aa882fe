"""Which population eigenvalues make outliers: closed forms for equal τ, and simulated sample covariance matrices."""

import math

import numpy as np
import pytest

from gradrank.linalg.outliers import separate
from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law

K, M = 300, 600
GAMMA = K / M
DECAY = np.arange(1, K + 1.0) ** (-5 / 9)


def identity(*spikes: float, size: int = K) -> np.ndarray:
    return np.append(np.sort(spikes)[::-1], np.ones(size - len(spikes)))


@pytest.mark.parametrize("spike", [6.0, 10.0, 1e3])
def test_closed_forms_of_a_spiked_identity(spike: float) -> None:
    """ψ(a) = a (1 + γ/(a − 1)) and (1 − γ/(a − 1)²)/(1 + γ/(a − 1)): Baik and Silverstein 2006, Paul 2007."""
    found = separate(identity(spike), M)
    gamma = (K - 1) / M
    assert (found.count, found.rank, found.above) == (1, K, 1)
    assert found.positions[0] == pytest.approx(spike * (1 + gamma / (spike - 1)), rel=1e-12)
    overlap = (1 - gamma / (spike - 1) ** 2) / (1 + gamma / (spike - 1))
    assert found.overlaps[0] == pytest.approx(overlap, rel=1e-12)
    assert found.edge_law.upper_edge == pytest.approx((1 + math.sqrt(gamma)) ** 2, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scale_free(scale: float) -> None:
    plain, scaled = separate(identity(8.0, 3.0), M), separate(scale * identity(8.0, 3.0), M)
    assert (scaled.count, scaled.rank) == (plain.count, plain.rank) == (2, K)
    np.testing.assert_allclose(scaled.positions, scale * plain.positions, rtol=1e-12)
    np.testing.assert_allclose(scaled.overlaps, plain.overlaps, rtol=1e-11)


def test_without_a_spike_there_is_none() -> None:
    for population in (np.ones(K), np.linspace(2, 1, K), np.arange(K, 0.0, -1.0)):
        found = separate(population, M)
        assert found.count == 0
        assert found.positions.shape == found.overlaps.shape == (0,)


def test_a_spike_below_the_threshold_is_none() -> None:
    """The threshold for τ = 1 is 1 + √γ = 1.707, and the finite-size margin asks for a little more."""
    threshold = 1 + math.sqrt((K - 1) / M)
    assert separate(identity(0.98 * threshold), M).count == 0
    assert separate(identity(1.02 * threshold), M).count == 0  # no further than the top of the bulk scatters
    assert separate(identity(1.6 * threshold), M).count == 1


def test_the_margin_is_the_tracy_widom_quantile() -> None:
    """Below the 99 % quantile of the largest bulk eigenvalue ψ(a) is no outlier, a little beyond it is one."""
    bulk = SilversteinLaw(np.ones(K - 1), M)
    centre, scale = largest_eigenvalue_law(bulk)
    grid = np.linspace(1.75, 2.6, 60)
    counts = [separate(identity(float(a)), M).count for a in grid]
    stands = (bulk.psi(grid) - centre) / scale
    assert not any(count for count, at in zip(counts, stands, strict=True) if at < 2.0234)
    assert all(count for count, at in zip(counts, stands, strict=True) if at > 3.0)
    assert stands[0] < 2 < 4 < stands[-1]


def test_a_pair_one_per_cent_apart_is_two_outliers_without_overlaps() -> None:
    found = separate(identity(20.0, 19.8), M)
    assert found.count == 2
    gamma = (K - 2) / M
    expected = [a * (1 + gamma / (a - 1)) for a in (20.0, 19.8)]
    np.testing.assert_allclose(found.positions, expected, rtol=1e-12)
    assert np.isnan(found.overlaps).all()  # the sample vectors mix: 1/(m δ²) = 17
    assert separate(identity(4.0), M).overlaps[0] == pytest.approx(math.nan, nan_ok=True)  # ψ′ = 0.94: near the edge
    far = separate(identity(20.0, 10.0), M)
    assert (far.overlaps > 0.9).all()


def test_equal_spikes_are_all_found() -> None:
    found = separate(identity(20.0, 20.0, 20.0), M)
    assert found.count == 3
    assert np.isnan(found.overlaps).all()


def test_the_overlaps_of_two_outliers_against_a_simulation() -> None:
    """20 and 16 in the population: their vectors mix by 1/(m δ²) beside what the bulk takes away."""
    population, draws = identity(20.0, 16.0), 40
    found, rng = separate(population, M), np.random.default_rng(0)
    overlaps = np.empty((draws, 2))
    for draw in range(draws):
        Y = np.sqrt(population)[:, None] * rng.standard_normal((K, M))
        left = np.linalg.eigh(Y @ Y.T)[1][:, ::-1]
        overlaps[draw] = [left[0, 0] ** 2, left[1, 1] ** 2]
    error = overlaps.std(axis=0, ddof=1) / math.sqrt(draws)
    # The formula is the first order in 1/(m δ²) = 0.04: its square is left out.
    assert (np.abs(overlaps.mean(axis=0) - found.overlaps) < 3 * error + 0.04**2).all()
    assert (overlaps.mean(axis=0) < separate(identity(20.0), M).overlaps[0] - 3 * error).all()


@pytest.mark.parametrize(
    ("population", "columns"), [(identity(12.0, 5.0), M), (np.append([8.0], DECAY), M), (identity(12.0, 5.0), 150)]
)
def test_positions_and_the_law_below_them_against_a_simulation(population: np.ndarray, columns: int) -> None:
    found, rng, draws = separate(population, columns), np.random.default_rng(1), 30
    values = np.empty((draws, found.rank))
    for draw in range(draws):
        Y = np.sqrt(population)[:, None] * rng.standard_normal((len(population), columns)) / math.sqrt(columns)
        values[draw] = np.linalg.svd(Y, compute_uv=False)[: found.rank] ** 2
    top = values[:, : found.count]
    error = top.std(axis=0, ddof=1) / math.sqrt(draws)
    # Other outliers push this one by a relative 1/m each.
    assert (np.abs(top.mean(axis=0) - found.positions) < 3.5 * error + 2 * found.positions / columns).all()
    # Mean number above a point: that of the whole population's law but for the real case's own mean term, at most ¼.
    for level in (0.3, 0.6, 0.9):
        x = float(np.quantile(values, level))
        number = (values > x).sum(axis=1)
        expected = found.law.size * (1 - float(found.law.cdf(x)))
        assert abs(number.mean() - expected) < 3.5 * number.std(ddof=1) / math.sqrt(draws) + 0.25


def test_a_second_level_of_the_population_is_no_outlier() -> None:
    """40 % of the eigenvalues at the top are a bulk of their own; the rest lies below it."""
    found = separate(np.repeat([30.0, 1.0], [int(0.4 * K), int(0.6 * K)]), M)
    assert (found.count, found.above) == (0, 0)
    assert len(found.edge_law.edges) == 2
    spiked = separate(np.append([300.0], np.repeat([30.0, 1.0], [120, 180])), M)
    assert spiked.count == 1


def test_a_few_equal_eigenvalues_are_outliers_and_many_a_bulk() -> None:
    for number in (1, 5, 16):
        assert separate(np.repeat([30.0, 1.0], [number, K - number]), M).count == number
    assert separate(np.repeat([30.0, 1.0], [20, K - 20]), M).count == 0  # at least √K of them


def test_zeros_are_no_part_of_the_rank() -> None:
    found = separate(np.concatenate([[50.0], np.ones(99), np.zeros(200)]), M)
    assert (found.count, found.rank) == (1, 100)
    assert found.law.atom_at_zero == pytest.approx(2 / 3)
    assert found.positions[0] == pytest.approx(50 * (1 + 99 / M / 49), rel=1e-12)


def test_fewer_columns_than_eigenvalues() -> None:
    found = separate(identity(200.0, 40.0), 100)
    assert (found.count, found.rank) == (2, 100)
    gamma = 298 / 100
    np.testing.assert_allclose(found.positions, [a * (1 + gamma / (a - 1)) for a in (200.0, 40.0)], rtol=1e-12)
    assert separate(np.ones(K), 100).count == 0


def test_decaying_spectra() -> None:
    """k^(−5/9) has no outlier but the first few, which its slow start sets apart; a spike of ten times the first is one."""
    plain, spiked = separate(DECAY, M), separate(np.append([10.0], DECAY), M)
    assert plain.count <= 3
    assert spiked.count == plain.count + 1
    assert spiked.positions[0] == pytest.approx(10 * (1 + (DECAY / (10 - DECAY)).sum() / M), rel=1e-3)


@pytest.mark.parametrize("population", [[5.0], [3.0, 1.0], [3.0, 0.0], [1.0, 1.0, 1.0]])
def test_tiny_populations_keep_a_bulk(population: list[float]) -> None:
    found = separate(np.array(population), 10)
    assert found.count < sum(value > 0 for value in population)
