import numpy as np
import pytest
from scipy import stats

from gradrank.foundation.random import stream, unit_rows, unit_vector
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian

NAMES = [
    "inputs.basis", "inputs.bulk", "inputs.scores", "inputs.direction", "inputs.noise", "inputs.rows",
    "targets.noise", "targets.direction.0", "targets.direction.1", "network.inner", "network.outer", "network.samples",
]  # fmt: skip


def test_stream_is_a_function_of_seed_and_name() -> None:
    first = [stream(3, name).standard_normal(4) for name in NAMES]
    again = [stream(3, name).standard_normal(4) for name in NAMES]
    np.testing.assert_array_equal(first, again)


def test_names_and_seeds_give_different_numbers() -> None:
    drawn = [stream(seed, name).standard_normal() for seed in range(20) for name in NAMES]
    assert len(set(drawn)) == len(drawn)


def test_streams_of_different_names_are_uncorrelated() -> None:
    drawn = np.array([stream(0, name).standard_normal(4000) for name in NAMES])
    correlation = np.corrcoef(drawn)[np.triu_indices(len(NAMES), 1)]
    # Standard error 1/√4000; 66 pairs, so five of them leave a chance of 4e-5 to a right generator.
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_first_rows_are_the_same_for_every_larger_number() -> None:
    few, many = unit_rows(stream(1, "network.inner"), 3, 7), unit_rows(stream(1, "network.inner"), 8, 7)
    np.testing.assert_array_equal(few, many[:3])


@pytest.mark.parametrize("d", [2, 3, 50])
def test_unit_vectors_have_norm_one_and_the_moments_of_the_sphere(d: int) -> None:
    rows = unit_rows(stream(5, "rows"), 4000, d)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-14)
    # E v_1² = 1/d and Var v_1² = 2(d − 1)/(d²(d + 2)).
    error = np.sqrt(2 * (d - 1) / (d**2 * (d + 2)) / 4000)
    assert abs((rows[:, 0] ** 2).mean() - 1 / d) < 4 * error
    assert np.linalg.norm(unit_vector(stream(5, "one"), d)) == pytest.approx(1.0, rel=1e-14)


def test_unit_rows_are_uniform_on_the_circle() -> None:
    rows = unit_rows(stream(2, "rows"), 4000, 2)
    angles = np.arctan2(rows[:, 1], rows[:, 0]) / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > 1e-3


def _draw(n: int = 12, m: int = 5, **network: object):
    return Problem(inputs=SpikedGaussian(n=n, d=9, nu=0.2), network=TwoLayer(m=m, **network)).draw(seed=4)


def test_width_leaves_inputs_labels_and_first_neurons() -> None:
    narrow, wide = _draw(m=5), _draw(m=40)
    assert narrow.X.equal(wide.X)
    assert narrow.y.equal(wide.y)
    assert narrow.network.W.equal(wide.network.W[:5])
    assert narrow.network.a.equal(wide.network.a[:5])


def test_more_samples_leave_the_first_rows_and_the_network() -> None:
    few, many = _draw(n=12), _draw(n=30)
    assert few.inputs.bulk.equal(many.inputs.bulk[:12])
    assert few.inputs.scores.equal(many.inputs.scores[:12])
    assert few.inputs.direction.equal(many.inputs.direction)
    assert few.network.W.equal(many.network.W)


def test_activation_and_scaling_leave_everything_drawn() -> None:
    one, other = _draw(activation="tanh", scaling="mf"), _draw(activation="relu")
    assert one.X.equal(other.X)
    assert one.network.W.equal(other.network.W)
    assert one.network.a.equal(other.network.a)
