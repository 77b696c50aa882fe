"""Exact laws of the covariance SDE: published digits, and what is refused."""

import math

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from gradrank.foundation.errors import InputError
from gradrank.initialization import (
    arc_cosine_kernel,
    blow_up_time,
    collapse,
    collapse_moments,
    correlation_flow,
    correlation_moments,
    explosion_probability,
    inverse_mean,
    mean_field_flow,
    sample_collapse,
    sample_correlation,
    sample_one_input,
    stationary_law,
)
from gradrank.initialization.correlation import drift_of_artanh

TABLE = [  # c, ρ₀, T; mean, variance, E artanh, P(ρ ≤ −.5, 0, .5, .9), flow
    ((0, 0), 0.3, 1, 0.240711, 0.434939, 0.440912, (0.207189, 0.352449, 0.524938, 0.803544), 0.3),
    ((0, -1), 0.3, 0.5, 0.308402, 0.250280, 0.450199, (0.088587, 0.277791, 0.555121, 0.915568), 0.343486),
    ((0, -1), 0.3, 1, 0.341551, 0.349522, 0.628059, (0.138223, 0.294605, 0.482113, 0.785379), 0.382947),
    ((0, -1), -0.5, 1, -0.151682, 0.338637, -0.176213, (0.379037, 0.626268, 0.805372, 0.957291), -0.239063),
    ((1, -1), 0.3, 1, 0.538845, 0.205879, 0.937627, (0.032603, 0.157483, 0.360101, 0.726838), 0.558241),
    ((1, -1), -0.5, 1, 0.274302, 0.242767, 0.426451, (0.076995, 0.317427, 0.601732, 0.904815), 0.226203),
]


@pytest.mark.parametrize("row", TABLE)
def test_the_law_of_the_correlation(row: tuple) -> None:
    c, rho, time, mean, variance, artanh, probabilities, flow = row
    found = correlation_moments(rho, time, *c)
    np.testing.assert_allclose([found.mean, found.variance, found.mean_artanh], [mean, variance, artanh], atol=8e-7)
    np.testing.assert_allclose(found.cdf([-0.5, 0, 0.5, 0.9]), probabilities, atol=4e-6)
    np.testing.assert_allclose(correlation_flow(rho, [time], *c), [flow], atol=6e-7)
    assert found.cumulative[-1] == pytest.approx(1, abs=1e-9)


def test_long_times_are_on_a_coarser_grid() -> None:
    """At T = 4 against samples of the same law."""
    found, samples = correlation_moments(0.3, 4.0, 0, -1), sample_correlation(0.3, 4.0, 0, -1, 20_000, seed=8).numpy()
    assert abs(found.mean - samples.mean()) < 3.5 * samples.std() / 20_000**0.5 + 0.002
    assert kstest(samples, found.cdf).statistic < 1.63 / 20_000**0.5 + 0.003


@pytest.mark.parametrize(
    "arguments", [(0.0, 1e-3, 50, -50), (0.3, 1e-3, 50, -50), (-0.999999, 1e-12, 0, -1), (0.3, 1e-6, 0, 0)]
)
def test_laws_of_short_times_and_steep_slopes(arguments: tuple) -> None:
    """A distribution function that rises, a variance that is one: c₊ − c₋ = 100 moves ρ from 0 to 0.68 in T = 1e-3."""
    found, rho = correlation_moments(*arguments), arguments[0]
    assert float(np.diff(found.cumulative).min()) > -1e-12
    short = arguments[1] * (1 - rho**2) ** 2  # of the noise alone, at the start
    assert short * 0.1 < found.variance < 2 * short
    flow = correlation_flow(rho, [arguments[1]], *arguments[2:])[0]
    assert found.mean == pytest.approx(flow, abs=1e-3)


def test_the_drift_of_artanh() -> None:
    np.testing.assert_allclose(
        drift_of_artanh(np.array([-2, 0, 0.5, 3.0]), 1.0), [6.354982, 0.159155, 0.308551, 0.502818], atol=6e-7
    )


def test_the_flow_in_any_order_and_its_limit() -> None:
    found = correlation_flow(-0.9, [2.0, 0.0, 50.0], 1, -1)
    assert found[1] == pytest.approx(-0.9)
    assert -0.9 < found[0] < found[2] < 1


def test_explosion_probabilities() -> None:
    table = {
        (0.5, 1): 0.198748,
        (0.75, 1): 0.237374,
        (1, 1): 0.264241,
        (2, 1): 0.323324,
        (1, 2): 0.593994,
        (1, 0.5): 0.0902040,
    }
    for (b, v0), expected in table.items():
        assert explosion_probability(b, v0) == pytest.approx(expected, rel=3e-6)
    assert explosion_probability(-0.5, 3.0) == explosion_probability(0, 1.0) == 0.0
    found = sample_one_input(1.0, 1.0, [25.0], 8000, seed=0, step=5e-3)
    share = np.isfinite(found.explosion_times).mean()
    assert abs(share - 0.264241) < 3.5 * math.sqrt(0.264 * 0.736 / 8000) + 0.004
    assert bool((np.isinf(found.values[:, 0]) == np.isfinite(found.explosion_times)).all())


def test_one_input_without_noise_and_in_the_mean() -> None:
    assert mean_field_flow(2, 1, [0.5])[0] == pytest.approx(5.693485, rel=1e-6)
    assert mean_field_flow(0.5, 1, [1.0])[0] == pytest.approx(0.268941, rel=2e-6)
    assert mean_field_flow(2, -1, [1.0])[0] == pytest.approx(1.225400, rel=1e-6)
    assert blow_up_time(2, 1) == pytest.approx(math.log(2))
    assert math.isinf(mean_field_flow(2, 1, [0.7])[0])
    assert math.isinf(blow_up_time(0.5, 1))
    for b, expected in ((-2, 3), (-1.25, 3.978667), (-0.5, 5.642252), (0, 7.389056)):
        assert inverse_mean(1.0, b, 1.0) == pytest.approx(expected, rel=1e-6)


LOGARITHMS = [(-2, -0.674789, 0.720184), (-1.25, -0.806901, 0.983777), (-0.5, -0.943214, 1.417268)]


@pytest.mark.parametrize(("b", "mean", "variance"), LOGARITHMS)
def test_moments_of_the_logarithm(b: float, mean: float, variance: float) -> None:
    found = np.log(sample_one_input(1.0, b, [1.0], 60_000, seed=4, step=5e-3).values[:, 0])
    assert abs(found.mean() - mean) < 3.5 * found.std() / 60_000**0.5 + 1e-3
    assert abs(found.var() - variance) < 4 * variance * (2 / 60_000) ** 0.5 + 0.01


def test_the_stationary_law() -> None:
    shape, rate = stationary_law(-3.0)
    assert (shape, rate) == (2.0, 3.0)
    found = sample_one_input(1.0, -3.0, [12.0], 4000, seed=2, step=0.01).values[:, 0]
    assert kstest(found, gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3


def test_unshaped_networks_collapse() -> None:
    for rho, expected in ((-1, 0), (-0.5, 0.108998), (0, 0.318310), (0.3, 0.482744), (0.9, 0.909538)):
        assert arc_cosine_kernel(rho) == pytest.approx(expected, abs=6e-7)
    for depth, expected in ((1, 0.517256), (10, 0.115570), (100, 0.00351767), (1000, 4.305145e-5)):
        assert collapse(0.3, depth) == pytest.approx(expected, rel=6e-6)  # six digits given
    table = {0.25: (0.194685, 0.0460981), 0.5: (0.257833, 0.104554), 1.0: (0.479348, 0.719121)}
    for time, expected in table.items():
        np.testing.assert_allclose(collapse_moments(time), expected, rtol=5e-6)
    found = sample_collapse(0.5, 20_000, seed=1, steps=400) ** -0.5
    assert abs(found.mean() - 0.257833) < 3.5 * found.std() / 20_000**0.5 + 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: correlation_moments(1.0, 1.0, 0, -1), r"rho0: 1\.0 is not allowed"),
        (lambda: correlation_moments(0.3, -1.0, 0, -1), r"time: -1\.0 is not allowed"),
        (lambda: correlation_flow(0.3, [-1.0], 0, -1), "times: "),
        (lambda: explosion_probability(math.nan, 1.0), "b: nan is not allowed"),
        (lambda: explosion_probability(1.0, 0.0), r"v0: 0\.0 is not allowed"),
        (lambda: inverse_mean(1.0, 1.0, 1.0), r"b: 1\.0 is not allowed"),
        (lambda: stationary_law(-1.0), r"b: -1\.0 is not allowed"),
        (lambda: sample_one_input(1.0, 1.0, [2.0, 1.0], 5), "times: "),
        (lambda: inverse_mean(1.0, -1.0, 1e4), r"time: 10000\.0 is not allowed; give at most 500: the mean grows"),
        (lambda: collapse_moments(1e3), r"time: 1000\.0 is not allowed; give at most 100: the moments grow"),
        (lambda: correlation_moments(0.3, 0.1, 0, -1).cdf("x"), "rho: 'x' is not allowed"),
        (lambda: arc_cosine_kernel(1.5), r"rho: 1\.5 is not allowed"),
        (lambda: collapse(0.3, -1), "depth: -1 is not allowed"),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.slow
def test_laws_for_extreme_times() -> None:
    for arguments in ((0.3, 100, 1, -1), (0.3, 30, 3, -3), (0.3, 700, 0, 0)):
        law = correlation_moments(*arguments)
        assert -1 <= law.mean <= 1
        assert math.isfinite(law.mean_artanh)
    short = correlation_moments(0.3, 1e-5, 1, -1)
    y = math.atanh(0.3)
    assert float(short.cdf(math.tanh(y + 1e-5**0.5))) == pytest.approx(0.8413, abs=2e-3)
    weak = np.arctanh(
        sample_correlation(0.3, 9.0, 0, -1e-3, 20_000, seed=1, step=0.05).numpy()
    )  # far below −7 it counts
    assert (
        abs(weak.mean() - correlation_moments(0.3, 9.0, 0, -1e-3).mean_artanh) < 3.5 * weak.std() / 20_000**0.5 + 0.01
    )
    assert bool(np.isfinite(sample_one_input(1.0, -10, [50, 90.0], 4, step=0.01).values).all())
    collapsed = [correlation_moments(0.3, time, 1, -1).variance for time in (30, 100, 300)]  # of 1 − ρ, with its digits
    assert collapsed[0] > 1e3 * collapsed[1] > 1e6 * collapsed[2] > 0
    assert mean_field_flow(1.0, 1.0, [1, 700, 800]).tolist() == [1.0, 1.0, 1.0]
    assert correlation_flow(0.3, [1, 1], 0, -1).tolist() == [correlation_flow(0.3, [1], 0, -1)[0]] * 2
