"""Simulated steps: pairing over steps, both outer laws, a hand-made run, theory, and what is refused."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.random import stream, unit_vector
from gradrank.onestep import simulate, simulate_feature_spikes, simulate_weight_spike

NOISE = math.sqrt(0.1)


def test_it_is_what_its_docstring_says() -> None:
    """One seed by hand, with autograd for the gradient and a linear solver for the ridge."""
    d, m, n0, n, t, seed, eta, ridge = 20, 30, 50, 60, 40, 4, 1.5, 0.2
    found = simulate(eta, ridge, n / d, m / d, "tanh", "erf", 0.3, d=d, psi0=n0 / d, seeds=[seed], test=t)
    normal = {
        name: torch.from_numpy(stream(seed, f"onestep.{name}").standard_normal(shape))
        for name, shape in {
            "step.inputs": (n0, d), "step.noise": n0, "ridge.inputs": (n, d), "ridge.noise": n, "test.inputs": (t, d),
            "inner": (m, d), "outer": m,
        }.items()
    }  # fmt: skip
    beta = torch.from_numpy(unit_vector(stream(seed, "onestep.direction"), d))
    W = (normal["inner"] / d**0.5).requires_grad_()
    y = torch.erf(normal["step.inputs"] @ beta) + 0.3 * normal["step.noise"]
    f = torch.tanh(normal["step.inputs"] @ W.T) @ normal["outer"] / m
    (slope,) = torch.autograd.grad(0.5 * (f - y).square().mean(), W)
    W1 = (W - eta * m**0.5 * slope).detach()
    S = torch.tanh(normal["ridge.inputs"] @ W1.T)
    y = torch.erf(normal["ridge.inputs"] @ beta) + 0.3 * normal["ridge.noise"]
    w = torch.linalg.solve(S.T @ S / n + ridge * torch.eye(m, dtype=S.dtype), S.T @ y / n)
    X = normal["test.inputs"]
    risk = (torch.tanh(X @ W1.T) @ w - torch.erf(X @ beta)).square().mean()
    assert found.risk[0] == pytest.approx(float(risk), rel=1e-9)
    left, values, right = torch.linalg.svd(W1)
    assert found.singular_values[0] == pytest.approx(float(values[0]), rel=1e-10)
    assert found.overlaps[0] == pytest.approx(float((right[0] @ beta) ** 2), rel=1e-8)
    assert left.shape == (m, m)
    assert math.isnan(found.standard_error[0])
    assert (found.eta, found.seeds) == (eta, (seed,))


def test_draws_are_paired_over_steps_and_penalties() -> None:
    few = {"psi1": 2.0, "psi2": 1.0, "activation": "tanh", "teacher": "tanh", "noise": NOISE, "d": 60, "seeds": 12}
    both = [simulate(eta, [0.01, 0.1], **few) for eta in (0.0, 2.0)]
    gain = both[0].risks - both[1].risks
    paired = gain.std(axis=0, ddof=1)
    assert bool((paired < 0.7 * np.hypot(both[0].risks.std(axis=0, ddof=1), both[1].risks.std(axis=0, ddof=1))).all())
    alone = simulate(2.0, 0.1, **few)
    np.testing.assert_allclose(alone.risks[:, 0], both[1].risks[:, 1], rtol=1e-10)
    assert both[1].standard_error.shape == (2,)


def test_exponents_and_outer_weights() -> None:
    few = {"psi1": 2.0, "psi2": 1.5, "activation": "tanh", "teacher": "tanh", "noise": 0.1, "d": 40, "seeds": [7]}
    assert simulate(2.0, 0.1, exponent=0.5, **few).eta == pytest.approx(2 * 60**0.5)
    signs = simulate(2.0, 0.1, outer="signs", **few)
    assert signs.risk[0] != simulate(2.0, 0.1, **few).risk[0]
    weights = simulate_weight_spike(2.0, 2.0, 1.5, "tanh", "tanh", 0.1, d=40, seeds=[7], outer="signs")
    assert weights.singular_values[0] == signs.singular_values[0]


def test_other_losses_and_teachers() -> None:
    few = {"psi1": 2.0, "psi2": 1.0, "activation": "erf", "noise": 0.1, "d": 40, "seeds": 2}
    huber = simulate(3.0, 0.1, teacher="relu", loss="huber", **few)
    assert bool(np.isfinite(huber.risk).all())
    assert huber.risk[0] != simulate(3.0, 0.1, teacher="relu", **few).risk[0]
    own = simulate(3.0, 0.1, teacher=lambda z: z * torch.sigmoid(z), **few)
    assert 0 < own.risk[0] < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "teacher", "psi1", "psi2", "ridge", "eta", "risk", "error"),
    [
        ("tanh", "tanh", 0.5, 1, 0.01, 0.0, 0.57094, 0.00852),
        ("tanh", "tanh", 2, 1, 0.01, 2.0, 0.21684, 0.00500),
        ("erf", "erf", 1, 1, 0.1, 1.0, 0.34036, 0.00686),
        ("tanh", "relu", 4, 2, 0.1, 2.0, 0.15824, 0.00131),
        ("erf", "erf", 4, 2, 0.1, 0.0, 0.13282, 0.00087),
    ],
)
def test_earlier_simulations(
    activation: str, teacher: str, psi1: float, psi2: float, ridge: float, eta: float, risk: float, error: float
) -> None:
    """Means of ten seeds at d = 500 that another program measured, within three combined standard errors."""
    found = simulate(eta, ridge, psi1, psi2, activation, teacher, NOISE, d=500, seeds=10)
    assert abs(found.risk[0] - risk) < 3 * math.hypot(error, found.standard_error[0])


def two_spikes(z: torch.Tensor) -> torch.Tensor:
    """√(2e) sin(z + π/4): every Hermite coefficient is ±1."""
    return torch.sin(z + math.pi / 4) * math.sqrt(2 * math.e)


def test_spikes_in_the_features() -> None:
    for s, count in ((1 / 6, 1), (0.3, 2)):
        found = simulate_feature_spikes(s, two_spikes, "tanh", n=1500, seeds=2)
        assert list(found.counts) == [count] * 2
        assert found.theta == pytest.approx(1500**s)
        assert bool((found.singular_values[:, count - 1] > found.edges).all())


def cubic(z: torch.Tensor) -> torch.Tensor:
    """He₁ + He₂/2 + He₃/6: E σ⁽ᵏ⁾ = 1 for k = 1, 2, 3."""
    return z + (z * z - 1) / 2 + (z**3 - 3 * z) / 6


def test_strengths_of_the_features_spikes() -> None:
    """θ₁^k m^(−(k−1)/2); the third coefficient adds θ₁³ E ã⁴/(2m) to the first spike, a factor 1 + 1.5 θ₁²/m."""
    found = simulate_feature_spikes(0.25, cubic, "tanh", n=1500, seeds=6)
    theta, m = found.theta, 750
    expected = np.array([theta * (1 + 1.5 * theta**2 / m), theta**2 * m**-0.5])
    measured = found.strengths[:, :2]
    error = measured.std(axis=0, ddof=1) / 6**0.5
    assert bool((np.abs(measured.mean(axis=0) - expected) < 3 * error + 0.05 * expected).all())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d": 1}, "d: 1 is not allowed"),
        ({"d": 4, "psi2": 0.3}, "psi2: 0.3 is not allowed; psi2·d must be at least 2"),
        ({"seeds": 0}, "seeds: 0 is not allowed"),
        ({"seeds": []}, r"seeds: \[\] is not allowed"),
        ({"seeds": [1, 1]}, "seeds: .* give each seed once"),
        ({"seeds": np.array(3)}, "seeds: "),
        ({"seeds": [1, -1]}, "seeds: -1 is not allowed"),
        ({"exponent": math.nan}, "exponent: nan is not allowed"),
        ({"eta": -2.0}, "eta: -2.0 is not allowed"),
        ({"outer": "uniform"}, "outer: 'uniform' is not allowed; give one of gaussian, signs"),
        ({"test": 1}, "test: 1 is not allowed"),
        ({"ridges": -1.0}, "ridge: -1.0 is not allowed"),
        ({"loss": "cubic"}, "loss: 'cubic' is not allowed"),
        ({"device": "tpu"}, "device: 'tpu' is not allowed"),
        ({"d": 10**7}, "d: .* memory"),
        ({"exponent": 100.0, "activation": "relu", "eta": 1e50}, "features: their squares are not finite"),
        ({"exponent": 5000.0}, "exponent: 5000.0 is not allowed; m.exponent overflows"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    usual = {
        "eta": 1.0, "ridges": 0.1, "psi1": 2.0, "psi2": 1.0, "activation": "tanh", "teacher": "tanh", "noise": 0.1,
        "d": 20, "seeds": 2,
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        simulate(**{**usual, **change})


def test_bad_exponents_of_feature_spikes() -> None:
    with pytest.raises(InputError, match=r"s: 0\.5 is not allowed"):
        simulate_feature_spikes(0.5, "relu", "tanh", n=100)
    with pytest.raises(InputError, match="n: 4 is not allowed"):
        simulate_feature_spikes(0.2, "relu", "tanh", n=4)
