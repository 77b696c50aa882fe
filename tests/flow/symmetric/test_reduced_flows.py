"""The reduced flows of low-dimensional targets: published digits, particles, and what is refused."""

import numpy as np
import pytest

from gradrank.flow import NormTarget, ProjectedTarget, low_dimensional_flow, norm_target_flow, particle_flow
from gradrank.flow.symmetric.low_dimensional import reduced_field
from gradrank.flow.symmetric.norm_target import Harmonics
from gradrank.foundation.errors import InputError

TABLE = {  # (d, p): loss, masses and alignments at t = 1, 2, 5, 10
    (2, 1): (
        (0.233796, 0.987747, 0.263887, 0.623376, 0.377539),
        (0.084244, 1.524856, 0.187202, 0.713780, 0.289252),
        (0.006200, 2.184473, 0.164611, 0.829500, 0.180059),
        (0.001389, 2.225338, 0.193023, 0.881870, 0.135557),
    ),
    (5, 2): (
        (0.490075, 1.269638, 0.202379, 0.509711, 0.299609),
        (0.164989, 2.252403, 0.121942, 0.605230, 0.225412),
        (0.018623, 3.304938, 0.102838, 0.761641, 0.125825),
        (0.005279, 3.335999, 0.129195, 0.856612, 0.076509),
    ),
    (10, 5): (
        (1.000456, 2.178123, 0.116349, 0.578654, 0.421712),
        (0.153504, 4.394882, 0.059631, 0.644682, 0.356633),
        (0.026261, 5.446347, 0.054569, 0.764002, 0.240972),
        (0.009331, 5.450965, 0.065916, 0.855024, 0.154078),
    ),
    (5, 1): (
        (0.292680, 0.916050, 0.281243, 0.304929, 0.123718),
        (0.151872, 1.403183, 0.198531, 0.419441, 0.077534),
        (0.021918, 2.226193, 0.166046, 0.654695, 0.030170),
        (0.004812, 2.301731, 0.211714, 0.788230, 0.016341),
    ),
    (10, 2): (
        (0.538669, 1.220922, 0.208731, 0.285066, 0.135075),
        (0.228218, 2.158362, 0.124344, 0.379588, 0.091685),
        (0.041248, 3.329150, 0.099949, 0.603071, 0.038727),
        (0.011448, 3.381985, 0.131116, 0.773112, 0.018373),
    ),
}


@pytest.mark.parametrize(
    "key",
    [(2, 1), *(pytest.param(k, marks=pytest.mark.slow) for k in ((5, 2), (10, 5), (5, 1), (10, 2)))],
)
def test_digits_of_the_norm_flow(key: tuple[int, int]) -> None:
    found = norm_target_flow(*key, [0.0, 1, 2, 5, 10])
    rows = np.stack(
        [found.loss, found.mass_positive, found.mass_negative, found.alignment_positive, found.alignment_negative],
        axis=1,
    )
    np.testing.assert_allclose(rows[1:], TABLE[key], atol=1.1e-6)
    d, p = key
    np.testing.assert_allclose(rows[0], [p / 2, 0.5, 0.5, p / d, p / d], atol=1e-6)


def test_digits_of_the_kernels() -> None:
    assert Harmonics(5, 2, 150).kernel(0.3, 0.9) == pytest.approx(0.175118, abs=6e-7)
    assert Harmonics(5, 2, 150).kernel(0.3, 0.3) == pytest.approx(0.194902, abs=6e-7)
    assert Harmonics(10, 5).kernel(0.3, 0.9) == pytest.approx(0.165732, abs=6e-7)
    assert Harmonics(2, 1, 150).kernel(0.3, 0.3) == pytest.approx(0.233693, abs=6e-7)
    theta, step = np.array([0.4, 1.1]), 1e-6
    harmonics = Harmonics(5, 2, 30)
    slope = (harmonics.values(theta + step) - harmonics.values(theta - step)) / (2 * step)
    np.testing.assert_allclose(harmonics.slopes(theta), slope, rtol=1e-4, atol=1e-4)
    field = reduced_field(
        np.array([[0.6, 0.2]]),
        np.array([0.5]),
        np.array([1, -0.5]),
        np.array([[1, 0], [-0.3, 0.4]]),
        np.array([0.2, 0.9]),
        2,
    )
    np.testing.assert_allclose(
        np.concatenate([np.ravel(part) for part in field]), [0.259264, 0.441457, -0.0373042, 0.00370213], atol=6e-7
    )


def test_neurons_turn_to_the_subspace_or_away_from_it() -> None:
    found = norm_target_flow(5, 2, [0.0, 1.0, 5.0], angles=40, degrees=60)
    assert bool((np.diff(found.alignment_positive) > 0).all())
    assert bool((np.diff(found.alignment_negative) < 0).all())
    assert found.weights.sum() == pytest.approx(0.5)


@pytest.mark.slow
def test_particles_tend_to_the_reduced_flow() -> None:
    """The error of the loss and of the alignment falls as 1/√m: slope −0.5 ± 0.1 of the output's distance."""
    d, p, time = 5, 2, 2.0
    reference = norm_target_flow(d, p, [time])
    X = np.random.default_rng(0).standard_normal((2000, d))
    f = reference.output(X)
    widths, errors = [100, 200, 400, 800], []
    for m in widths:
        runs = [particle_flow(NormTarget(p), m, [time], d=d, seed=seed, tolerance=1e-6) for seed in range(5)]
        errors.append(np.sqrt(np.mean([(run.states[0].output(X) - f) ** 2 for run in runs])))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


@pytest.mark.slow
def test_any_target_of_a_projection() -> None:
    """The reduced flow against particles in R^d for a smooth target: both have the same limit.

    m neurons start with E ½f₀² = 1/(4m) above it, and are at most as far from it later.
    """
    target = ProjectedTarget(lambda x: np.tanh(x[:, 0]) ** 2 + 0.3 * x[:, 0], 1)
    reduced = [low_dimensional_flow(target, 4, 150, [0.0, 3.0], seed=seed).loss for seed in range(4)]
    free = [particle_flow(target, 300, [0.0, 3.0], d=4, seed=seed, tolerance=1e-6).loss for seed in range(4)]
    error = np.hypot(np.std(reduced, axis=0, ddof=1), np.std(free, axis=0, ddof=1)) / 2
    assert bool((np.abs(np.mean(reduced, axis=0) - np.mean(free, axis=0)) < 3 * error + 1 / (4 * 150)).all())
    flow = low_dimensional_flow(target, 4, 150, [0.0, 3.0])
    assert flow.inside[1] > flow.inside[0] + 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: norm_target_flow(3, 3, [1.0]), "p: 3 is not allowed; give a number below d = 3"),
        (lambda: norm_target_flow(1, 1, [1.0]), "d: 1 is not allowed"),
        (lambda: norm_target_flow(3, 1, [-1.0]), "times: "),
        (lambda: norm_target_flow(300, 1, [1.0]), "d: 300 with p = 1 is not resolved by 100 harmonics"),
        (lambda: norm_target_flow(3, 1, [1.0], sigma=0.0), r"sigma: 0\.0 is not allowed"),
        (lambda: low_dimensional_flow(ProjectedTarget(lambda x: x[:, 0], 1), 1, 5, [1.0]), "d: 1 is not allowed"),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_output_of_the_reduced_flow() -> None:
    """½E(f − f*)² from outputs at points against the loss of the spectrum."""
    found = norm_target_flow(4, 2, [0.0, 1.0, 3.0])
    X = np.random.default_rng(1).standard_normal((20_000, 4))
    np.testing.assert_allclose(found.output(X[:50], 0), 0, atol=1e-10)
    for index in (1, 2):
        squares = 0.5 * (found.output(X, index) - np.linalg.norm(X[:, :2], axis=1)) ** 2
        assert abs(squares.mean() - found.loss[index]) < 4 * squares.std() / len(X) ** 0.5


def test_the_output_of_the_flow_of_any_target() -> None:
    target = ProjectedTarget(lambda x: np.tanh(x[:, 0]) ** 2 + 0.3 * x[:, 0], 1)
    X = np.random.default_rng(1).standard_normal((20_000, 4))
    flow = low_dimensional_flow(target, 4, 80, [0.0, 3.0])
    for index in (0, 1):
        squares = 0.5 * (flow.output(X, index) - target.value(X)) ** 2
        assert abs(squares.mean() - flow.loss[index]) < 4 * squares.std() / len(X) ** 0.5
