"""Silverstein's law against closed forms, a cubic, quadrature and simulated sample covariance matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.linalg.marchenko_pastur import MarchenkoPastur
from gradrank.linalg.silverstein import SilversteinLaw

ASPECTS = {"below": (300, 1000), "square": (400, 400), "above": (2500, 1000)}
POWER_LAW = np.arange(1, 301.0) ** -1.2
POPULATIONS = {
    "power law": (POWER_LAW, 450),
    "power law, few columns": (POWER_LAW, 120),
    "square": (POWER_LAW, 300),
    "zeros": (np.append(POWER_LAW, np.zeros(100)), 450),
    "two points": (np.repeat([1.0, 10.0], [150, 50]), 1000),
    "lognormal": (np.exp(2 * np.random.default_rng(3).standard_normal(300)), 450),
}


@pytest.fixture(params=POPULATIONS, name="law")
def _law(request: pytest.FixtureRequest) -> SilversteinLaw:
    return SilversteinLaw(*POPULATIONS[request.param])


def integral(law: SilversteinLaw, tolerance: float = 1e-9) -> float:
    """Integrate the density, x = a + (b − a) sin²θ on every band, halving panels in θ until both rules agree.

    The substitution takes the square roots off the edges; near-gaps inside a band need the halving.
    """
    points, weights = np.polynomial.legendre.leggauss(16)
    edges = np.array(law.edges)

    def rule(band: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        theta = (lo + hi)[:, None] / 2 + (hi - lo)[:, None] / 2 * points
        a, width = edges[band, 0][:, None], np.diff(edges[band], axis=1)
        values = law.density(a + width * np.sin(theta) ** 2) * width * np.sin(2 * theta)
        return (hi - lo) / 2 * (values @ weights)

    band = np.arange(len(edges))
    lo, hi = np.zeros(len(edges)), np.full(len(edges), np.pi / 2)
    whole, total = rule(band, lo, hi), 0.0
    for _ in range(40):
        middle = (lo + hi) / 2
        halves = rule(np.tile(band, 2), np.concatenate([lo, middle]), np.concatenate([middle, hi]))
        left, right = np.split(halves, 2)
        done = np.abs(left + right - whole) < tolerance
        total += float((left + right)[done].sum())
        band = np.tile(band[~done], 2)
        lo, hi = np.concatenate([lo[~done], middle[~done]]), np.concatenate([middle[~done], hi[~done]])
        whole = np.concatenate([left[~done], right[~done]])
    assert not band.size
    return total


@pytest.mark.parametrize(("rows", "columns"), ASPECTS.values(), ids=ASPECTS)
def test_identity_population_is_marchenko_pastur(rows: int, columns: int) -> None:
    law, exact = SilversteinLaw(np.full(rows, 2.0), columns), MarchenkoPastur(rows / columns, 2.0)
    np.testing.assert_allclose(law.edges, exact.edges, rtol=1e-12, atol=1e-12)
    (a, b) = exact.edges[0]
    assert law.upper_edge == pytest.approx(exact.upper_edge, rel=1e-12)
    assert law.atom_at_zero == pytest.approx(exact.atom_at_zero, abs=1e-15)
    x = np.linspace(a - 0.1, b + 0.5, 301)
    np.testing.assert_allclose(law.density(x), exact.density(x), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(law.cdf(x), exact.cdf(x), rtol=0, atol=1e-10)
    z = x + 1j * np.logspace(-6, 2, 301)
    np.testing.assert_allclose(law.companion_stieltjes(z), exact.companion_stieltjes(z), rtol=1e-10)


@pytest.mark.parametrize(("rows", "columns"), ASPECTS.values(), ids=ASPECTS)
def test_marchenko_pastur_closed_forms_agree_with_quadrature(rows: int, columns: int) -> None:
    law = MarchenkoPastur(rows / columns)
    (a, b) = law.edges[0]
    points, weights = np.polynomial.legendre.leggauss(200)
    theta = np.pi / 4 * (points + 1)
    for x in (a + 0.3 * (b - a), b):
        # From x down by the square-root rule at both of its ends: the lower edge may be a pole of 1/√x.
        t = a + (x - a) * np.sin(theta) ** 2
        mass = np.pi / 4 * (weights @ (law.density(t) * (x - a) * np.sin(2 * theta)))
        assert law.atom_at_zero + mass == pytest.approx(float(law.cdf(x)), abs=1e-10)
    assert (float(law.cdf(-1e-9)), float(law.cdf(b))) == (0.0, 1.0)


def test_two_point_population_solves_the_cubic() -> None:
    (t1, t2), (n1, n2), m = (1.0, 7.0), (120, 80), 500
    law = SilversteinLaw(np.repeat([t1, t2], [n1, n2]), m)
    z = np.concatenate([np.linspace(0.2, 12, 60) + 0j, np.linspace(-3, 12, 20) + 0.3j])
    found = law.companion_stieltjes(z)
    for at, value in zip(z, found, strict=True):
        one, two = np.poly1d([t1, 1.0]), np.poly1d([t2, 1.0])
        unknown = np.poly1d([1.0, 0.0])
        cubic = (
            unknown * one * two * complex(at)
            + one * two
            - (n1 * t1 / m) * unknown * two
            - (n2 * t2 / m) * unknown * one
        )
        roots = np.roots(cubic.coeffs)
        upper = roots[roots.imag > 1e-7]
        assert len(upper) <= 1 or at.imag > 0
        if len(upper) == 1:
            assert abs(value - upper[0]) < 1e-9 * abs(value)
        else:  # a real point off the support
            assert abs(value.imag) < 1e-12
            assert np.abs(roots - value).min() < 1e-9 * abs(value)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(-9, 2), st.sampled_from(sorted(POPULATIONS)))
def test_the_transform_stays_in_the_upper_half_plane(seed: int, log_x: float, log_y: float, name: str) -> None:
    law = SilversteinLaw(*POPULATIONS[name])
    sign = np.random.default_rng(seed).choice([-1.0, 1.0])
    z = law.upper_edge * complex(sign * 10**log_x, 10**log_y)
    value = complex(law.companion_stieltjes(z))
    assert value.imag > 0
    tau, m = POPULATIONS[name]
    residual = -1 / value + (tau / (1 + tau * value)).sum() / m - z
    assert abs(residual) < 1e-11 * max(abs(z), 1 / abs(value))


def test_the_same_root_from_ten_starts(law: SilversteinLaw) -> None:
    rng = np.random.default_rng(0)
    x = law.upper_edge * np.logspace(-5, 0.3, 40)
    z = x * (1 + 1e-3j)
    expected = law.companion_stieltjes(z)
    for _ in range(10):
        start = (rng.standard_normal(40) + 1j * 10 ** rng.uniform(-2, 2, 40)) / law.upper_edge
        np.testing.assert_allclose(law.companion_stieltjes(z, start=start), expected, rtol=1e-8)


def test_failure_to_converge_names_the_point() -> None:
    law = SilversteinLaw(POWER_LAW, 450)
    z = np.array([0.02 + 1e-4j, 0.5 + 1e-6j])
    with pytest.raises(ConvergenceError, match=r"not solved at z = 0\.02\+0\.0001j \(2 of 2 points"):
        law.companion_stieltjes(z, start=np.array([1j, 1j]), max_iterations=1)


def test_mass_is_one(law: SilversteinLaw) -> None:
    assert law.atom_at_zero + integral(law) == pytest.approx(1.0, abs=1e-6)
    assert float(law.cdf(law.upper_edge)) == pytest.approx(1.0, abs=1e-12)


def test_cdf_is_the_integral_of_the_density(law: SilversteinLaw) -> None:
    x = law.quantile(np.linspace(law.atom_at_zero + 0.05, 0.95, 7))
    h = 1e-5 * x
    difference = (law.cdf(x + h) - law.cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(difference, law.density(x), rtol=1e-4)


def test_atom_at_zero() -> None:
    law = SilversteinLaw(np.append(POWER_LAW, np.zeros(100)), 120)
    assert law.atom_at_zero == pytest.approx(1 - 120 / 400)
    assert float(law.cdf(0.0)) == float(law.cdf(law.edges[0][0])) == law.atom_at_zero
    assert float(law.quantile(0.5)) == 0.0
    assert SilversteinLaw(np.append(POWER_LAW, np.zeros(100)), 450).atom_at_zero == pytest.approx(0.25)
    assert SilversteinLaw(POWER_LAW, 450).atom_at_zero == 0.0


def test_support_splits_and_counts_exactly() -> None:
    law = SilversteinLaw(*POPULATIONS["two points"])
    (_, first), (second, _) = law.edges
    assert first < second
    x = np.linspace(first, second, 5)
    np.testing.assert_array_equal(law.density(x), 0.0)
    np.testing.assert_allclose(law.cdf(x), 0.75, atol=1e-14)
    assert len(SilversteinLaw(np.repeat([1.0, 1.5], [150, 50]), 1000).edges) == 1


def test_edges_are_critical_points(law: SilversteinLaw) -> None:
    ends = np.array(law.edges)
    assert (ends[:, 0] < ends[:, 1]).all()
    assert (ends[1:, 0] > ends[:-1, 1]).all()
    assert float(law.psi(law.spike_threshold)) == pytest.approx(law.upper_edge, rel=1e-12)
    assert float(law.psi_derivative(law.spike_threshold)) == pytest.approx(0.0, abs=1e-10)
    width = ends[:, 1] - ends[:, 0]
    assert (law.density(ends[:, 1] - 1e-6 * width) > 0).all()
    np.testing.assert_array_equal(law.density(ends[:, 1] * (1 + 1e-12)), 0.0)


def test_quantile_inverts_cdf(law: SilversteinLaw) -> None:
    p = np.linspace(0, 1, 101)
    x = law.quantile(p)
    assert (np.diff(x) >= 0).all()
    np.testing.assert_allclose(law.cdf(x), np.maximum(p, law.atom_at_zero), atol=1e-10)
    with pytest.raises(InputError, match="between 0 and 1"):
        law.quantile([0.5, 1.5])


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_scale_free(scale: float) -> None:
    law, scaled = SilversteinLaw(POWER_LAW, 450), SilversteinLaw(scale * POWER_LAW, 450)
    x = np.linspace(0, 1.2 * law.upper_edge, 50)[1:]
    np.testing.assert_allclose(scaled.edges, scale * np.array(law.edges), rtol=1e-11)
    np.testing.assert_allclose(scaled.density(scale * x) * scale, law.density(x), rtol=1e-9)
    np.testing.assert_allclose(scaled.cdf(scale * x), law.cdf(x), atol=1e-12)
    np.testing.assert_allclose(scaled.quantile([0.1, 0.9]), scale * law.quantile([0.1, 0.9]), rtol=1e-10)
    np.testing.assert_allclose(scaled.overlap(3 * scale), law.overlap(3.0), rtol=1e-12)


@pytest.mark.parametrize("columns", [450, 120])
def test_simulated_sample_covariance(columns: int) -> None:
    """Counts of eigenvalues scatter by √(log K)/π < 1 about the law: 4/K is a wide bound for their largest deviation."""
    K = len(POWER_LAW)
    law = SilversteinLaw(POWER_LAW, columns)
    Z = np.random.default_rng(1).standard_normal((K, columns))
    values = np.linalg.svd(np.sqrt(POWER_LAW)[:, None] * Z, compute_uv=False) ** 2 / columns
    positive = np.sort(values)
    F = law.cdf(positive)
    rank = K - len(positive) + np.arange(1, len(positive) + 1)
    assert max(np.abs(F - rank / K).max(), np.abs(F - (rank - 1) / K).max()) < 4 / K


def test_simulated_outlier() -> None:
    bulk, a, m, draws = np.linspace(1.0, 2.0, 250), 8.0, 400, 40
    law = SilversteinLaw(bulk, m)
    assert a > law.spike_threshold
    rng = np.random.default_rng(2)
    roots = np.sqrt(np.append(bulk, a))[:, None]
    positions, overlaps = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        left, values, _ = np.linalg.svd(roots * rng.standard_normal((251, m)) / math.sqrt(m), full_matrices=False)
        positions[draw], overlaps[draw] = values[0] ** 2, left[-1, 0] ** 2
    for measured, predicted in ((positions, law.psi(a)), (overlaps, law.overlap(a))):
        assert abs(measured.mean() - float(predicted)) < 3 * measured.std(ddof=1) / math.sqrt(draws)


def test_bad_input_is_named() -> None:
    for population in ([1.0, -0.1], [0.0, 0.0], [], [1.0, math.nan]):
        with pytest.raises(InputError, match="population"):
            SilversteinLaw(population, 10)
    with pytest.raises(InputError, match="columns"):
        SilversteinLaw([1.0], 0)
    with pytest.raises(InputError, match="z: "):
        SilversteinLaw([1.0], 10).companion_stieltjes([1 - 1j])
    with pytest.raises(InputError, match="z: "):
        SilversteinLaw([1.0], 10).companion_stieltjes(0.0)
    with pytest.raises(InputError, match="aspect"):
        MarchenkoPastur(0.0)


@pytest.mark.parametrize(
    ("population", "columns", "message"),
    [
        ([1.0, 2.0], np.inf, "columns: inf"),
        ([1.0, 2.0], 2.5, "columns: 2.5"),
        ([1.0, 2.0], True, "columns: True"),
        ([1.0 + 1.0j], 2, "population"),
        ("abc", 2, "population"),
        ([[1.0], [2.0, 3.0]], 2, "population"),
    ],
)
def test_arguments_of_another_kind_are_named(population: object, columns: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SilversteinLaw(population, columns)  # type: ignore[arg-type]


def test_points_that_are_not_numbers() -> None:
    law = SilversteinLaw(POWER_LAW, 450)
    assert np.isnan(law.cdf([0.1, math.nan])).tolist() == [False, True]
    assert np.isnan(law.density([0.1, math.nan])).tolist() == [False, True]
