"""Particle flows: digits of a velocity, samples against the population, symmetries, conservation, and what is refused."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from gradrank.flow import (
    CorrelatedRisk,
    LinearTarget,
    NetworkTarget,
    NormTarget,
    Particles,
    ProjectedTarget,
    SampleRisk,
    check_symmetry,
    excess_risk,
    initial_particles,
    isotropic_progress,
    linear_predictor_flow,
    particle_flow,
    rates,
    symmetry_error,
)
from gradrank.flow.symmetric.linear_predictor import mobility
from gradrank.flow.symmetric.particles import PopulationRisk
from gradrank.foundation.errors import ConvergenceError, InputError

W_STAR, C, S0 = [1.0, -0.5, 0.8], np.diag([2.0, 1.0, 0.5]), 4 / 3
SHIFT = np.roll(np.eye(5), 1, axis=0)
CYCLE = [(1.0, np.linalg.matrix_power(SHIFT, k)) for k in range(5)]
SUM = NetworkTarget(np.ones(5), np.eye(5))


def axes(d: int) -> Particles:
    """±σ times ± the coordinate axes: 4d neurons that reproduce infinite width on linear targets."""
    eye = np.eye(d)
    return Particles(np.repeat([1.0, -1.0], 2 * d), np.concatenate([eye, -eye, eye, -eye]))


def test_digits_of_a_velocity() -> None:
    state = Particles(np.array([1, -0.5]), np.array([[1, 0.5, -0.2], [-0.3, 0.8, 0.4]]))
    risk = PopulationRisk(NormTarget(1))
    da, dB = risk.velocity(state)
    np.testing.assert_allclose(da, [0.235566, 0.339077], atol=6e-7)
    expected = [[0.239711, 0.00855584, 0.0421124], [0.167114, -0.108020, -0.0824695]]
    np.testing.assert_allclose(dB, expected, atol=6e-7)
    assert risk.loss(state) == pytest.approx(0.394400, abs=6e-7)


def test_samples_tend_to_the_population() -> None:
    state, target = initial_particles(6, 3, seed=2), NormTarget(2)
    X = np.random.default_rng(0).standard_normal((400_000, 3))
    sampled, closed = SampleRisk(X, target.value(X)), PopulationRisk(target)
    for one, other in zip(sampled.velocity(state), closed.velocity(state), strict=True):
        np.testing.assert_allclose(one, other, atol=0.01)  # four standard errors of 400,000 samples
    assert sampled.loss(state) == pytest.approx(closed.loss(state), abs=0.01)


def test_the_velocity_is_minus_the_gradient_of_the_loss() -> None:
    state, risk = initial_particles(4, 3, seed=1), PopulationRisk(NetworkTarget([1.0], [[1.0, 0.5, 0.0]]))
    da, dB = risk.velocity(state)
    for j in range(4):
        for column in range(4):
            a, B = [state.a.copy(), state.a.copy()], [state.B.copy(), state.B.copy()]
            for side, step in ((0, 1e-5), (1, -1e-5)):
                if column < 3:
                    B[side][j, column] += step
                else:
                    a[side][j] += step
            slope = (risk.loss(Particles(a[0], B[0])) - risk.loss(Particles(a[1], B[1]))) / 2e-5
            assert (dB[j, column] if column < 3 else da[j]) == pytest.approx(-4 * slope, abs=1e-8)


def test_digits_of_the_linear_predictor() -> None:
    found = linear_predictor_flow(W_STAR, C, S0, [0.5, 1, 2])
    expected = [
        [0.318746, -0.0869413, 0.0727229],
        [0.633615, -0.192711, 0.170966],
        [0.960517, -0.369398, 0.379881],
    ]
    np.testing.assert_allclose(found, expected, atol=6e-7)
    H = [[1.160021, -0.143026, 0.228841], [-0.143026, 0.945483, -0.114420], [0.228841, -0.114420, 1.057043]]
    np.testing.assert_allclose(mobility(np.array(W_STAR), S0), H, atol=6e-7)
    assert rates(W_STAR, C, S0) == pytest.approx((0.333333, 0.985374), abs=6e-7)
    np.testing.assert_allclose(
        isotropic_progress(1.0, 1.2, 1.0, [0.5, 1, 2, 4]), [0.144139, 0.289161, 0.582850, 0.922834], atol=6e-7
    )
    times = [0.0, 0.7, 3.0, 30.0]
    isotropic = linear_predictor_flow([0.6, 0.8], 1.5 * np.eye(2), 1.2, times)
    np.testing.assert_allclose(isotropic @ [0.6, 0.8], isotropic_progress(1.0, 1.2, 1.5, times), atol=1e-10)
    np.testing.assert_allclose(  # w′ = ¼S₀(w* − w) for a small w*, of which nothing cancels
        isotropic_progress(1e-20, 1.0, 1.0, [0, 1, 1e3]), [0.0, 1e-20 * -math.expm1(-0.25), 1e-20], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("size", "s0", "scale"), [(1e-8, 1.0, 1.0), (1e-10, 1e10, 1.0), (1e8, 1.0, 1e-8), (1e-20, 1e-20, 1e20)]
)
def test_linear_predictors_of_any_size(size: float, s0: float, scale: float) -> None:
    times = np.array([0.1, 1, 3, 30]) / (max(s0, size) * scale)
    found = linear_predictor_flow([size], [[scale]], s0, times)[:, 0]
    np.testing.assert_allclose(found, isotropic_progress(size, s0, scale, times), atol=1e-11 * size)


def test_few_neurons_reproduce_infinite_width_on_an_odd_target() -> None:
    w_star, times = np.array([0.5, -0.3, 0.2, 0.1, 0.4]), [0.0, 1.0, 3.0, 6.0]
    flow = particle_flow(LinearTarget(w_star), axes(5), times, tolerance=1e-11)
    expected = linear_predictor_flow(w_star, np.eye(5), 1 + 1 / 5, times)
    np.testing.assert_allclose([state.predictor() for state in flow.states], expected, atol=1e-10)
    np.testing.assert_allclose(flow.loss, excess_risk(expected, w_star, np.eye(5)), atol=1e-10)
    X = np.random.default_rng(0).standard_normal((50, 5))
    np.testing.assert_allclose(flow.states[-1].output(X), X @ flow.states[-1].predictor(), atol=1e-12)
    correlated = np.diag([2.0, 1.0, 0.5, 1.0, 1.0]) + 0.2
    values, vectors = np.linalg.eigh(correlated)
    root = (vectors * np.sqrt(values)) @ vectors.T
    flow = particle_flow(CorrelatedRisk(LinearTarget(root @ w_star), correlated), axes(5), times, tolerance=1e-11)
    expected = linear_predictor_flow(w_star, correlated, 1 + 1 / 5, times)
    np.testing.assert_allclose([state.predictor() for state in flow.states], expected, atol=1e-9)


def test_the_excess_risk_decays_at_the_predicted_rates() -> None:
    times = np.linspace(0, 30, 61)
    risk = excess_risk(linear_predictor_flow(W_STAR, C, S0, times), W_STAR, C)
    bound, asymptotic = rates(W_STAR, C, S0)
    assert bool((risk <= risk[0] * np.exp(-bound * times) * (1 + 1e-9)).all())
    measured = -np.log(risk[40] / risk[30]) / (times[40] - times[30])
    assert measured == pytest.approx(asymptotic, rel=0.01)


def test_odd_samples_keep_the_network_linear() -> None:
    """A nonlinear odd target on a symmetric sample: w* and C are those of the sample."""
    half = np.random.default_rng(3).standard_normal((400, 3)) @ np.diag([1.4, 1.0, 0.7])
    X = np.concatenate([half, -half])
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 3
    covariance = X.T @ X / len(X)
    w_star = np.linalg.solve(covariance, X.T @ y / len(X))
    flow = particle_flow(SampleRisk(X, y), axes(3), [0.0, 2.0], tolerance=1e-9)
    expected = linear_predictor_flow(w_star, covariance, 1 + 1 / 3, [2.0])[0]
    np.testing.assert_allclose(flow.states[-1].predictor(), expected, atol=1e-6)


def test_neurons_closed_under_a_symmetry_keep_it() -> None:
    check_symmetry(SUM, SHIFT, 5)
    closed = particle_flow(SUM, initial_particles(60, 5, seed=1, group=CYCLE), [0.0, 2.0, 4.0])
    error = symmetry_error(closed, SHIFT)
    assert bool((error.largest < 1e-12 * np.maximum(error.size, 1)).all())
    assert closed.loss[-1] < 0.05 * closed.loss[0]
    free = symmetry_error(particle_flow(SUM, 60, [0.0, 2.0], d=5, seed=1), SHIFT)
    assert float(free.root_mean_square[-1]) > 0.05


def test_antipodal_neurons_of_an_odd_target() -> None:
    group = [(1.0, np.eye(4)), (-1.0, -np.eye(4))]
    flow = particle_flow(LinearTarget([1.0, 0, 0, 0.5]), initial_particles(40, 4, seed=2, group=group), [0.0, 3.0])
    assert symmetry_error(flow, -np.eye(4), -1.0).largest.max() < 1e-12


def test_what_is_conserved() -> None:
    flow = particle_flow(NormTarget(1), 50, [0.0, 1.0, 5.0], d=3, seed=0, tolerance=1e-10)
    assert flow.imbalance.max() < 1e-8
    assert bool((np.sign(flow.states[-1].a) == np.sign(flow.states[0].a)).all())
    assert bool((np.diff(flow.loss) < 0).all())


@pytest.mark.slow
def test_the_symmetry_error_of_free_neurons_falls_with_their_number() -> None:
    """‖f − f∘T‖ ~ m^(−½): the slope of its logarithm."""
    sizes = [60, 120, 240, 480]
    errors = []
    for m in sizes:
        runs = [
            symmetry_error(particle_flow(SUM, m, [2.0], d=5, seed=seed), SHIFT).root_mean_square[0]
            for seed in range(12)
        ]
        errors.append(np.sqrt(np.mean(np.square(runs))))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: particle_flow(NormTarget(1), 5, [1.0]), "d: is missing"),
        (lambda: particle_flow(NormTarget(1), 5, [2.0, 1.0], d=3), "times: "),
        (lambda: particle_flow(NormTarget(1), -5, [1.0], d=3), "m: -5 is not allowed"),
        (
            lambda: initial_particles(5, 3, group=[(1, np.eye(3)), (-1, -np.eye(3))]),
            "m: 5 is not allowed; give a multiple",
        ),
        (lambda: initial_particles(4, 3, sigma=-1.0), r"sigma: -1\.0 is not allowed"),
        (lambda: initial_particles(4, 3, group=[(1, 2 * np.eye(3))]), "T: shape"),
        (lambda: check_symmetry(NormTarget(1), SHIFT, 5), "target: is not invariant under T"),
        (lambda: check_symmetry(SUM, -np.eye(5), 5, -1.0), "target: is not odd under T"),
        (lambda: linear_predictor_flow(W_STAR, np.eye(2), 1.0, [1.0]), "covariance: shape"),
        (lambda: linear_predictor_flow(W_STAR, -np.eye(3), 1.0, [1.0]), "covariance: is not positive semidefinite"),
        (lambda: linear_predictor_flow(W_STAR, C, 0.0, [1.0]), r"s0: 0\.0 is not allowed"),
        (lambda: linear_predictor_flow(W_STAR, C, 1.0, [math.inf]), "times: "),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_samples_end_and_repeated_times_are_allowed() -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    flow = particle_flow(SampleRisk(X, X[:, 0] ** 2), 20, [0.0, 0.5, 0.5], d=3)
    assert flow.loss[1] < flow.loss[0]
    assert flow.loss[1] == flow.loss[2]
    with pytest.raises(ConvergenceError, match=r"30000 evaluations reach t = .* give a tolerance above"):
        particle_flow(SampleRisk(X, X[:, 0] ** 2), 20, [0.5], d=3, tolerance=1e-9)
    assert linear_predictor_flow([1, 0], np.eye(2), 1.0, [1, 0, 1])[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SampleRisk(np.full((3, 5), math.nan), np.ones(3)), "X: an entry is NaN"),
        (lambda: SampleRisk(np.ones((3, 5)), np.ones(2)), r"y: shape \(2,\) for samples"),
        (lambda: particle_flow(NormTarget(1), 5, [1.0], d=3, tolerance=math.nan), "tolerance: nan is not allowed"),
        (lambda: particle_flow(None, 5, [1.0], d=3), "target: None is not allowed"),
        (lambda: particle_flow(LinearTarget([1.0, 0]), 5, [1.0], d=3), "target: does not fit neurons of dimension 3"),
        (lambda: particle_flow(NormTarget(1), Particles(np.ones(2), np.ones((3, 2))), [1.0]), "particles: shapes"),
        (lambda: initial_particles(4, 5, group=[(1, np.eye(5)), (1, SHIFT)]), "group: is not closed under products"),
        (lambda: initial_particles(4, 5, group=[(2.0, np.eye(5))]), "group: .* give signs of 1"),
        (lambda: initial_particles(4, 5, seed=None), "seed: None is not allowed"),
        (lambda: check_symmetry(SUM, 1.000004 * np.eye(5), 5), "T: shape .* not orthogonal"),
        (lambda: check_symmetry(SUM, np.eye(5), 5, math.nan), "sign: nan is not allowed"),
        (lambda: CorrelatedRisk(SUM, -np.eye(5)), "covariance: is not positive semidefinite"),
    ],
)
def test_what_would_fail_later_is_refused_now(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_symmetries_that_are_none_are_refused_in_one_line() -> None:
    flow = particle_flow(SUM, 4, [0.0], d=5)
    for sign in (0, 2.0, "x", None, math.nan, np.array([1, 2])):
        with pytest.raises(InputError, match="sign: "):
            symmetry_error(flow, SHIFT, sign)
        with pytest.raises(InputError, match="sign: "):
            check_symmetry(SUM, SHIFT, 5, sign)
    for group in (5, "ab", [SHIFT], [(1.0, SHIFT, 2)], [("a", SHIFT)]):
        with pytest.raises(InputError, match=r"group|T:"):
            initial_particles(5, 5, group=group)
    with pytest.raises(InputError, match="target: has no values at points of dimension 5"):
        check_symmetry(LinearTarget([1.0, 2.0]), SHIFT, 5)
    for p in (1.5, True, 4, "1", np.array([1, 2])):
        with pytest.raises(InputError, match="p: "):
            ProjectedTarget(np.sin, p)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: initial_particles(10**12, 3), "m: needs .* of memory"),
        (lambda: particle_flow(NormTarget, 4, [1.0], d=3), "target: <class .* is not allowed; give a target"),
        (lambda: CorrelatedRisk("x", np.eye(2)), "target: 'x' is not allowed; give a target"),
        (
            lambda: CorrelatedRisk(SampleRisk(np.ones((3, 2)), np.ones(3)), np.eye(2)),
            "target: SampleRisk.* give a target",
        ),
        (lambda: CorrelatedRisk(NormTarget(1), np.ones((0, 0))), r"covariance: shape \(0, 0\) is not allowed"),
        (
            lambda: excess_risk(np.ones((3, 3)), np.ones(2), np.eye(2)),
            r"w: shape \(3, 3\) is not allowed; give \(T, 2\)",
        ),
        (lambda: excess_risk([[math.nan, 1.0]], np.ones(2), np.eye(2)), "w: an entry is NaN"),
        (lambda: excess_risk(np.ones((3, 2)), np.ones(2), -np.eye(2)), "covariance: is not positive semidefinite"),
        (lambda: rates([1e200, 2.0], np.eye(2), 1.0), r"w_star: 1e\+200 is not allowed"),
    ],
)
def test_risks_and_predictors_that_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
