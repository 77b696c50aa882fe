"""Means over seeds that other programs measured, against ours: within three combined standard errors, cell by cell."""

import math

import numpy as np
import pytest
import torch

from gradrank.gradient.loss_gradient import loss_gradient
from gradrank.onestep import simulate, simulate_weight_spike, spike_theory
from gradrank.onestep.world import Sizes, World

pytestmark = pytest.mark.slow
NOISE = 0.1**0.5

# ‖G − A‖/‖A‖ of the first gradient and its rank-one part A at d = 250, 500, 1000, measured to 3 %; σ, σ*, ψ₁, ψ₂.
RANK_ONE = [
    ("tanh", "tanh", 2, 1, [0.0813, 0.0597, 0.0431]),
    ("erf", "relu", 2, 1, [0.1089, 0.0780, 0.0571]),
    ("relu", "relu", 2, 1, [0.1807, 0.1373, 0.0983]),
    ("tanh", "tanh", 4, 2, [0.0569, 0.0395, 0.0285]),
]
# The largest singular value of W₁ and its squared overlap with β, each with its standard error; d = 400 with 48 seeds,
# d = 1200 with 10. The step is a multiple of the one at the threshold. σ, σ*, ψ₁, ψ₂, noise².
SPIKES = {
    ("tanh", "tanh", 2, 1, 0.1): {
        0.5: ([1.9859, 0.0023, 0.0029, 0.0006], [1.9931, 0.0020, 0.0016, 0.0008]),
        0.9: ([1.9912, 0.0023, 0.0216, 0.0036], [1.9951, 0.0020, 0.0101, 0.0025]),
        1.1: ([2.0079, 0.0028, 0.0930, 0.0092], [2.0047, 0.0034, 0.0792, 0.0138]),
        1.5: ([2.1502, 0.0074, 0.3283, 0.0066], [2.1430, 0.0113, 0.3377, 0.0100]),
        2.0: ([2.4771, 0.0120, 0.4546, 0.0044], [2.4687, 0.0183, 0.4639, 0.0069]),
        3.0: ([3.3077, 0.0198, 0.5368, 0.0037], [3.2976, 0.0299, 0.5459, 0.0057]),
    },
    ("erf", "relu", 2, 2, 0.1): {
        0.5: ([2.3999, 0.0018, 0.0039, 0.0008], [2.4078, 0.0015, 0.0019, 0.0008]),
        1.1: ([2.4249, 0.0039, 0.0873, 0.0100], [2.4276, 0.0048, 0.0841, 0.0158]),
        1.5: ([2.5943, 0.0107, 0.3234, 0.0059], [2.5994, 0.0128, 0.3262, 0.0069]),
        3.0: ([3.9764, 0.0278, 0.4951, 0.0040], [3.9653, 0.0325, 0.4960, 0.0041]),
    },
    ("tanh", "erf", 4, 0.5, 0.25): {
        0.9: ([1.6954, 0.0024, 0.0156, 0.0025], [1.7021, 0.0026, 0.0169, 0.0052]),
        1.5: ([1.7998, 0.0063, 0.3305, 0.0088], [1.8439, 0.0082, 0.3518, 0.0097]),
        3.0: ([2.7383, 0.0166, 0.6186, 0.0034], [2.8221, 0.0267, 0.6162, 0.0052]),
    },
}
# Test risk at d = 500 over ten seeds for η = 0, 1, 2, each with its standard error; σ, σ*, ψ₁, ψ₂, λ.
RISKS = [
    ("tanh", "tanh", 0.5, 1, 0.01, [0.57094, 0.54760, 0.51572], [0.00852, 0.00693, 0.00675]),
    ("tanh", "tanh", 1, 1, 0.1, [0.30008, 0.28144, 0.25502], [0.00641, 0.00558, 0.00513]),
    ("tanh", "tanh", 2, 1, 0.01, [0.25648, 0.24158, 0.21684], [0.00542, 0.00561, 0.00500]),
    ("tanh", "tanh", 4, 2, 0.1, [0.10406, 0.10116, 0.09373], [0.00077, 0.00087, 0.00084]),
    ("erf", "erf", 1, 1, 0.1, [0.36793, 0.34036, 0.30657], [0.00793, 0.00686, 0.00632]),
    ("erf", "erf", 2, 1, 0.01, [0.32770, 0.30376, 0.26813], [0.00637, 0.00649, 0.00563]),
    ("erf", "erf", 2, 2, 0.001, [0.78153, 0.76291, 0.73407], [0.02028, 0.01978, 0.01773]),
    ("tanh", "relu", 0.5, 1, 0.01, [0.60591, 0.59605, 0.58008], [0.01677, 0.01697, 0.01640]),
    ("tanh", "relu", 1, 1, 0.1, [0.32814, 0.31943, 0.30577], [0.00400, 0.00340, 0.00296]),
]
# R(0) − R(η), paired, for η = ½, 1, 2 and λ = 0.01; σ, σ*, ψ₁, ψ₂.
IMPROVEMENTS = [
    ("tanh", "tanh", 2, 1, [0.004540, 0.014904, 0.039645], [0.000990, 0.001456, 0.001640]),
    ("erf", "tanh", 4, 1, [0.003049, 0.011527, 0.034200], [0.000899, 0.001635, 0.002423]),
]
# Test risk after a step η̃√m for λ = 0.001, 0.03, 0.1, 1, each with its standard error; σ, σ*, ψ₀, ψ₁, ψ₂, η̃, noise², d,
# and how many seeds ours take: theirs were 6 and 8.
LARGE = [
    ("erf", "erf", 8, 8, 2, 2, 0.0, 500, 6, [0.02018, 0.01861, 0.01981, 0.03737], [37, 31, 33, 65]),
    ("tanh", "tanh", 8, 8, 2, 2, 0.0, 500, 6, [0.01384, 0.01277, 0.01438, 0.03064], [23, 18, 20, 53]),
    ("erf", "erf", 8, 8, 1, 1, 0.0, 500, 6, [0.03838, 0.03812, 0.04041, 0.05771], [64, 62, 63, 65]),
    ("erf", "erf", 2, 2, 1, 1, 0.1, 600, 8, [0.25631, 0.17979, 0.15347, 0.16073], [575, 287, 191, 206]),
    ("erf", "erf", 4, 1, 1, 1, 0.1, 600, 32, [1.0381, 0.24112, 0.16498, 0.11960], [2500, 300, 251, 149]),
    ("tanh", "relu", 4, 4, 2, 1, 0.1, 600, 8, [0.27219, 0.16340, 0.14142, 0.13835], [237, 117, 108, 134]),
    ("erf", "tanh", 4, 2, 0.5, 2, 0.1, 600, 8, [0.12584, 0.11155, 0.09925, 0.09439], [335, 270, 205, 145]),
]


def assert_agree(found: np.ndarray, error: np.ndarray, value: np.ndarray, stated: np.ndarray) -> None:
    z = (np.asarray(found) - value) / np.hypot(error, stated)
    assert float(np.abs(z).max()) < 3, np.round(z, 2)


def rank_one_error(world: World, seed: int) -> float:
    """Return ‖G − A‖/‖A‖ of minus the gradient, G, and A = (μ₁/m) v ãᵀ with v = Xᵀy/n₀."""
    draw = world.first_draw(seed)
    signal = draw.X.T @ draw.y / len(draw.y)
    A = world.slope / draw.network.m * signal[:, None] * draw.network.a[None, :]
    G = -loss_gradient(draw)
    return float(torch.linalg.matrix_norm(G - A, 2) / torch.linalg.matrix_norm(A, 2))


@pytest.mark.parametrize(("activation", "teacher", "psi1", "psi2", "values"), RANK_ONE)
def test_how_far_the_gradient_is_from_rank_one(activation, teacher, psi1, psi2, values) -> None:
    for d, value in zip((250, 500, 1000), values, strict=True):
        world = World.of(Sizes.of(d, psi1, psi2, None, 2), activation, teacher, NOISE)
        found = np.array([rank_one_error(world, seed) for seed in range(8)])
        assert_agree(found.mean(), found.std(ddof=1) / 8**0.5, value, 0.03 * value)


@pytest.mark.parametrize(("d", "seeds", "worlds"), [(400, 24, slice(None)), (1200, 10, slice(2, None))], ids=str)
def test_spikes_of_the_weights(d: int, seeds: int, worlds: slice) -> None:
    for world, table in list(SPIKES.items())[worlds]:
        assert_spikes(world, table, d, seeds)


def assert_spikes(world: tuple, table: dict, d: int, seeds: int) -> None:
    *given, variance = world
    noise = variance**0.5
    for multiple, rows in table.items():
        value, stated, overlap, overlap_error = rows[0 if d == 400 else 1]
        base = spike_theory(1.0, given[2], given[3], *given[:2], noise)
        eta = multiple * base.threshold / base.theta1
        found = simulate_weight_spike(eta, given[2], given[3], *given[:2], noise, d=d, seeds=seeds)
        for sample, expected, error in (
            (found.singular_values, value, stated),
            (found.overlaps, overlap, overlap_error),
        ):
            assert_agree(sample.mean(), sample.std(ddof=1) / seeds**0.5, expected, error)


@pytest.mark.parametrize(("activation", "teacher", "psi1", "psi2", "ridge", "risks", "errors"), RISKS)
def test_risks_after_small_steps(activation, teacher, psi1, psi2, ridge, risks, errors) -> None:
    for eta, risk, stated in zip((0.0, 1.0, 2.0), risks, errors, strict=True):
        found = simulate(eta, ridge, psi1, psi2, activation, teacher, NOISE, d=500, seeds=10)
        assert_agree(found.risk, found.standard_error, risk, stated)


@pytest.mark.parametrize(("activation", "teacher", "psi1", "psi2", "gains", "errors"), IMPROVEMENTS)
def test_what_small_steps_gain(activation, teacher, psi1, psi2, gains, errors) -> None:
    risks = [
        simulate(eta, 0.01, psi1, psi2, activation, teacher, NOISE, d=500, seeds=10).risks[:, 0]
        for eta in (0.0, 0.5, 1.0, 2.0)
    ]
    gained = risks[0] - np.array(risks[1:])
    assert_agree(gained.mean(axis=1), gained.std(axis=1, ddof=1) / 10**0.5, np.array(gains), np.array(errors))


@pytest.mark.parametrize(
    ("activation", "teacher", "psi0", "psi1", "psi2", "eta", "variance", "d", "seeds", "risks", "errors"), LARGE
)
def test_risks_after_large_steps(activation, teacher, psi0, psi1, psi2, eta, variance, d, seeds, risks, errors) -> None:
    found = simulate(
        eta,
        [1e-3, 3e-2, 0.1, 1.0],
        psi1,
        psi2,
        activation,
        teacher,
        math.sqrt(variance),
        d=d,
        seeds=seeds,
        psi0=psi0,
        exponent=0.5,
    )
    assert_agree(found.risk, found.standard_error, np.array(risks), np.array(errors) * 1e-5)
