"""The spike of the weights and the count of the features' spikes: digits, limits, a direct eigenvalue problem, simulation."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep import feature_spikes, simulate_weight_spike, spike_theory

NOISE = math.sqrt(0.1)
DIGITS = [  # arguments; θ₁, θ₂, s₁, overlap
    ((1.0, 2, 1, "tanh", "tanh", NOISE), (0.47462985, 0.36687916, 2.0, 0.0)),
    ((4.0, 2, 1, "tanh", "tanh", NOISE), (1.8985194, 1.4675167, 2.4252457, 0.43172738)),
    ((5.0, 2, 2, "erf", "relu", NOISE), (2.2341303, 1.628675, 2.8969004, 0.40719429)),
    ((3.0, 4, 0.5, "tanh", "erf", 0.5), (1.4111088, 1.1837969, 1.9345101, 0.40941596)),
]
TABLE = [  # arguments, then multiples of the threshold with η, s₁ and the overlap, to the digits given
    ((2, 1, "tanh", "tanh", NOISE), 1.1, 2.3176, 2.0091, 0.1037),
    ((2, 1, "tanh", "tanh", NOISE), 3.0, 6.3207, 3.3333, 0.5311),
    ((2, 2, "erf", "relu", NOISE), 1.5, 3.9922, 2.6097, 0.3245),
    ((4, 0.5, "tanh", "erf", 0.5), 1.5, 2.6816, 1.8453, 0.3468),
]


@pytest.mark.parametrize(("arguments", "expected"), DIGITS)
def test_known_digits(arguments: tuple, expected: tuple) -> None:
    found = spike_theory(*arguments)
    np.testing.assert_allclose([found.theta1, found.theta2, found.singular_value, found.overlap], expected, rtol=1e-7)
    assert found.above_threshold == (found.overlap > 0)


@pytest.mark.parametrize(("arguments", "multiple", "eta", "value", "overlap"), TABLE)
def test_the_table(arguments: tuple, multiple: float, eta: float, value: float, overlap: float) -> None:
    found = spike_theory(eta, *arguments)
    assert found.theta1 / found.threshold == pytest.approx(multiple, rel=2e-4)
    assert found.singular_value == pytest.approx(value, abs=6e-5)
    assert found.overlap == pytest.approx(overlap, abs=2e-4)


def test_the_formula_is_that_of_a_spiked_matrix() -> None:
    """W₀ + θ₁ c bᵀ with unit b and c has the limits that are used: means over draws, both vectors."""
    d, m, theta = 600, 400, 1.8
    generator = torch.Generator().manual_seed(3)
    rows = []
    for _ in range(12):
        W = torch.randn(m, d, dtype=torch.float64, generator=generator) / d**0.5
        W[0, 0] += theta  # the law of W₀ is invariant under rotations
        left, values, right = torch.linalg.svd(W, full_matrices=False)
        rows.append([float(values[0]), float(right[0, 0] ** 2), float(left[0, 0] ** 2)])
    found = np.array(rows)
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    # E f*² + noise² = 0 in the gradient's norm would need an infinite ψ₀: take it so large that θ₁ = η μ₁ μ₁*
    base = spike_theory(1.0, 2, m / d, "linear", "linear", 0.0, psi0=1e12)
    theory = spike_theory(theta / base.theta1, 2, m / d, "linear", "linear", 0.0, psi0=1e12)
    assert theory.theta1 == pytest.approx(theta)
    expected = np.array([theory.singular_value, theory.overlap, theory.neuron_overlap])
    assert bool((np.abs(found.mean(axis=0) - expected) < 3 * error).all())
    assert bool((error < 0.02).all())


@pytest.mark.slow
@pytest.mark.parametrize("multiple", [0.5, 1.5, 2.0])
def test_simulated_steps_at_1000_dimensions(multiple: float) -> None:
    theory = spike_theory(1.0, 2.0, 1.0, "tanh", "tanh", NOISE)
    eta = multiple * theory.threshold / theory.theta1
    theory = spike_theory(eta, 2.0, 1.0, "tanh", "tanh", NOISE)
    found = simulate_weight_spike(eta, 2.0, 1.0, "tanh", "tanh", NOISE, d=1000, seeds=8)
    for values, expected, band in (
        (found.singular_values, theory.singular_value, 0.02 * theory.singular_value),
        (found.overlaps, theory.overlap, 0.03),
    ):
        error = values.std(ddof=1) / len(values) ** 0.5
        assert abs(values.mean() - expected) < max(band, 3 * error)


def test_how_many_spikes_the_features_hold() -> None:
    assert feature_spikes(0.2, "relu").count == 1
    assert feature_spikes(0.3, "relu").orders == (1, 2)
    odd = feature_spikes(0.36, "tanh")
    assert (odd.orders, odd.absent) == ((1, 3), (2,))
    assert odd.exponents == pytest.approx((0.36, 0.08))
    assert feature_spikes(0.36, "elu").count == 3


@pytest.mark.parametrize(
    ("s", "message"),
    [
        (0.0, "s: 0.0 is not"),
        (0.5, "s: 0.5 is not"),
        (0.25, "k = 2, the limit is not known"),
        (1 / 3, "k = 3"),
        (0.47, "more than 12"),
    ],
)
def test_exponents_that_are_refused(s: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        feature_spikes(s, "relu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta": -1.0}, "eta: -1.0 is not allowed"),
        ({"psi2": 0.0}, "psi2: 0.0 is not allowed"),
        ({"noise": math.nan}, "noise: nan is not allowed"),
        ({"psi0": math.inf}, "psi0: inf is not allowed"),
        ({"teacher": "tangent"}, "teacher: 'tangent' is not allowed"),
        ({"activation": 3}, "activation: 3 is not allowed"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    usual = {"eta": 1.0, "psi1": 2.0, "psi2": 1.0, "activation": "tanh", "teacher": "tanh", "noise": 0.1}
    with pytest.raises(InputError, match=message):
        spike_theory(**{**usual, **change})
