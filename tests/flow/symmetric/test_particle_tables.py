"""Distances of finite networks from their limit that another program measured, against ours.

Its errors are not stated, but √m times a distance has a limit: the scatter of that product over m is the error of one value.
"""

import numpy as np
import pytest

from gradrank.flow.symmetric.low_dimensional import low_dimensional_flow
from gradrank.flow.symmetric.norm_target import norm_target_flow
from gradrank.flow.symmetric.particles import particle_flow
from gradrank.flow.symmetric.symmetry import symmetry_error
from gradrank.flow.symmetric.targets import NetworkTarget, NormTarget, ProjectedTarget

pytestmark = pytest.mark.slow
SHIFT = np.roll(np.eye(5), 1, axis=0)

# ‖f_m − f_∞‖ in L² for f* = ‖x_H‖ at m = 200, 400, 800, 1600; keys are d, p, t.
DISTANCES = {
    (5, 2, 2.0): [0.0744, 0.0510, 0.0385, 0.0237],
    (10, 2, 2.0): [0.0825, 0.0549, 0.0385, 0.0267],
    (5, 1, 5.0): [0.0326, 0.0217, 0.0146, 0.0108],
}


def scaled(distances: list[float], m: int) -> tuple[float, float]:
    """Return √m times the root mean square over seeds, and its standard error."""
    squares = m * np.square(distances)
    root = squares.mean() ** 0.5
    return root, float(squares.std(ddof=1) / len(squares) ** 0.5 / (2 * root))


@pytest.mark.parametrize(("d", "p", "time"), DISTANCES)
def test_networks_against_the_flow_of_the_angle(d: int, p: int, time: float) -> None:
    limit = norm_target_flow(d, p, [time])
    X = np.random.default_rng(0).standard_normal((4000, d))
    f = limit.output(X)
    theirs = np.array(DISTANCES[d, p, time]) * np.sqrt([200, 400, 800, 1600])
    for m in (200, 400):
        runs = [particle_flow(NormTarget(p), m, [time], d=d, seed=seed, tolerance=1e-6) for seed in range(10)]
        found, error = scaled([np.sqrt(((run.states[0].output(X) - f) ** 2).mean()) for run in runs], m)
        assert abs(found - theirs.mean()) < 3 * np.hypot(error, theirs.std(ddof=1))


def test_alignments_against_the_flow_of_the_angle() -> None:
    """The mass-weighted cos² of the positive neurons for d = 5, p = 2, t = 2."""
    limit = norm_target_flow(5, 2, [2.0]).alignment_positive[0]
    theirs = np.array([0.0256, 0.0139, 0.0065, 0.0082]) * np.sqrt([200, 400, 800, 1600])
    for m in (200, 400):
        gaps = []
        for seed in range(10):
            state = particle_flow(NormTarget(2), m, [2.0], d=5, seed=seed, tolerance=1e-6).states[0]
            B = state.B[state.a > 0]
            gaps.append(float((B[:, :2] ** 2).sum() / (B**2).sum() - limit))
        found, error = scaled(gaps, m)
        assert abs(found - theirs.mean()) < 3 * np.hypot(error, theirs.std(ddof=1))


def test_how_free_neurons_lose_a_symmetry() -> None:
    """√m‖f − f∘T‖ for f* = Σ relu(x_i), d = 5 and a cyclic shift, at t = 1, 2, 4."""
    target = NetworkTarget(np.ones(5), np.eye(5))
    for m in (60, 240):
        runs = [
            symmetry_error(particle_flow(target, m, [1.0, 2.0, 4.0], d=5, seed=seed), SHIFT).root_mean_square
            for seed in range(12)
        ]
        for gaps, value, stated in zip(np.transpose(runs), (2.0, 1.85, 1.4), (0.2, 0.1, 0.1), strict=True):
            found, error = scaled(list(gaps), m)
            assert abs(found - value) < 3 * np.hypot(error, stated)


def test_a_network_of_two_coordinates() -> None:
    """f* = relu(x₁) + ½relu(x₂ − x₁) − 0.3relu(x₂) in six dimensions at t = 3: the reduced flow, and networks against it."""
    directions = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 1.0]])
    outer = np.array([1.0, 0.5, -0.3])
    target = ProjectedTarget(lambda x: np.maximum(x @ directions.T, 0.0) @ outer, 2)
    reduced = low_dimensional_flow(target, 6, 600, [0.0, 3.0], seed=1)
    assert reduced.loss[1] == pytest.approx(0.0513, abs=0.003)
    assert reduced.inside == pytest.approx([0.333, 0.502], abs=0.02)
    X = np.random.default_rng(0).standard_normal((2000, 6))
    f = reduced.output(X)
    theirs = np.array([0.61, 0.70, 0.59, 0.74])
    runs = [
        particle_flow(
            NetworkTarget(outer, np.pad(directions, ((0, 0), (0, 4)))), 150, [3.0], d=6, seed=seed, tolerance=1e-6
        )
        for seed in range(8)
    ]
    found, error = scaled([np.sqrt(((run.states[0].output(X) - f) ** 2).mean()) for run in runs], 150)
    assert abs(found - theirs.mean()) < 3 * np.hypot(error, theirs.std(ddof=1))
