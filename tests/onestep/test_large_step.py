"""The risk after a large step: published digits, limits, the equations for a drawn matrix, and simulation."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep import asymptotic_risk, large_step_risk, simulate
from gradrank.onestep.functions import centred
from gradrank.onestep.large_step import spike_parameters
from gradrank.onestep.spiked_equivalent import SpikedEquivalent
from gradrank.onestep.spiked_features import SpikedFeatures

NOISE = math.sqrt(0.1)
DIGITS = [  # function, law, r, c, τ, ψ₁, ψ₂, λ, noise variance, width; risk
    ("tanh", "gaussian", 1.0, 0.9, 0.0, 4, 2, 0.01, 0.0, 1e10, 0.024059729),
    ("tanh", "gaussian", 1.0, 0.9, 0.0, 4, 2, 0.01, 0.0, 500, 0.024492461),
    ("tanh", "gaussian", 2.0, 0.8, 0.5, 3, 1, 0.1, 0.05, 1e10, 0.097222782),
    ("erf", "signs", 2.0, 0.9, 0.0, 1.5, 1, 0.1, 0.05, 1e10, 0.091346736),
    ("erf", "signs", 2.0, 0.9, 0.0, 1.5, 1, 0.001, 0.05, 1e10, 0.36611505),
    ("erf", "gaussian", 0.905, 0.938, 0.0337, 8, 2, 0.03, 0.0, 1e10, 0.0182517),
]
RIDGES = [1e-3, 3e-2, 0.1, 1.0]
TABLE = [  # η̃, ψ₁, ψ₂, activation, teacher, noise variance, ψ₀, width; risks at RIDGES
    (2.0, 8, 2, "erf", "erf", 0.0, None, None, (0.01979, 0.01828, 0.01957, 0.03702)),
    (2.0, 8, 2, "tanh", "tanh", 0.0, None, None, (0.01351, 0.01251, 0.01417, 0.03007)),
    (1.0, 8, 1, "erf", "erf", 0.0, None, None, (0.03144, 0.03110, 0.03284, 0.04729)),
    (1.0, 8, 1, "erf", "erf", 0.0, None, 500, (0.04067, 0.04023, 0.04243, 0.06026)),
    (1.0, 2, 1, "erf", "erf", 0.1, None, 600, (0.25369, 0.17672, 0.14953, 0.15690)),
    (1.0, 1, 1, "erf", "erf", 0.1, 4, 600, (1.0509, 0.23944, 0.16128, 0.11794)),
    (1.0, 4, 2, "tanh", "relu", 0.1, None, 1200, (0.27179, 0.16330, 0.14129, 0.13729)),
    (2.0, 2, 0.5, "erf", "tanh", 0.1, 4, 300, (0.13043, 0.11528, 0.10235, 0.09774)),
]


@pytest.mark.parametrize("row", DIGITS)
def test_known_digits(row: tuple) -> None:
    name, law, r, c, tau, psi1, psi2, ridge, variance, width, expected = row
    function = centred(name, "activation")
    features = SpikedFeatures.of(function, function, r, c, tau, law)
    risk, residual = features.risks(np.array([ridge]), psi1, psi2, math.sqrt(variance), width)
    assert risk[0] == pytest.approx(expected, rel=1e-5)
    assert residual[0] < 1e-10


@pytest.mark.parametrize("row", TABLE)
def test_the_table(row: tuple) -> None:
    eta, psi1, psi2, activation, teacher, variance, psi0, width, expected = row
    found = large_step_risk(eta, RIDGES, psi1, psi2, activation, teacher, math.sqrt(variance), psi0, width)
    # half a unit of the last digit given; a kinked teacher is integrated to 1e-4 on the nodes of either
    np.testing.assert_allclose(
        found.risk, expected, atol=6e-6 if max(expected) < 1 else 6e-5, rtol=1e-4 if teacher == "relu" else 0
    )


def test_the_parameters() -> None:
    tanh, erf = centred("tanh", "activation"), centred("erf", "activation")
    np.testing.assert_allclose(
        spike_parameters(2.0, tanh, tanh, NOISE, 8.0), (0.79314214, 0.92512841, 0.024102723), rtol=1e-7
    )
    np.testing.assert_allclose(
        spike_parameters(1.0, erf, erf, NOISE, 4.0), (0.48992665, 0.86627902, 0.020464822), rtol=1e-7
    )


def test_a_small_spike_of_signs_is_the_limit_of_large_eta() -> None:
    """At ±r with r → 0 the spike carries a linear feature of unlimited size: what η → ∞ is in the small-step formula."""
    erf = centred("erf", "activation")
    _, cosine, _ = spike_parameters(1.0, erf, erf, 0.2, 3.0)
    features = SpikedFeatures.of(erf, erf, 1e-3, cosine, 0.0, "signs")
    risk, _ = features.risks(np.array([0.1]), 3.0, 1.5, 0.2, math.inf)
    limit = asymptotic_risk(math.inf, 0.1, 3.0, 1.5, "erf", "erf", 0.2).risk
    assert risk[0] == pytest.approx(limit, rel=1e-5)


def test_the_equations_of_a_drawn_matrix_have_this_limit() -> None:
    """The conditional equivalent of drawn spiked weights, averaged over draws, against the limit for their width."""
    d, m, n, r, c = 240, 240, 480, 1.0, 0.8
    erf, rng = centred("erf", "activation"), np.random.default_rng(0)
    limit, _ = SpikedFeatures.of(erf, erf, r, c, 0.0).risks(np.array([0.1]), n / d, m / d, 0.2, m)
    beta, v = c * np.eye(d)[0] + 0.6 * np.eye(d)[1], np.eye(d)[0]
    found = []
    for _ in range(12):
        W = rng.standard_normal((m, d))
        W[:, 0] = 0.0
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        W[:, 0] = r * rng.standard_normal(m)
        found.append(SpikedEquivalent.of(W, beta, v, erf, erf).risks(np.array([0.1]), n, 0.2)[0][0])
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - limit[0]) < 3 * error < 0.05 * limit[0]


def test_it_goes_below_the_bound_of_linear_models() -> None:
    found = large_step_risk(2.0, RIDGES, 8, 2, "erf", "erf", 0.0)
    assert found.risk.min() < found.linear_bound / 2
    assert asymptotic_risk(math.inf, RIDGES, 8, 2, "erf", "erf", 0.0).risk.min() > found.linear_bound


def test_hard_regimes_converge_and_the_ridgeless_limit() -> None:
    for psi1 in (0.5, 1.0, 2.0):
        for psi2 in (0.5, 1.0, 2.0):
            found = large_step_risk(2.0, [1e-5, 1e-3, 10.0], psi1, psi2, "erf", "erf", 0.1)
            assert bool((found.residual < 1e-10).all())
            assert bool((found.risk > 0).all())
    for psi1, psi2 in ((2.0, 1.0), (1.0, 2.0)):
        zero, near = large_step_risk(2.0, [0.0, 1e-7], psi1, psi2, "erf", "erf", 0.1).risk
        assert zero == pytest.approx(near, rel=1e-4)
    with pytest.raises(InputError, match="as many features as samples"):
        large_step_risk(2.0, 0.0, 1.0, 1.0, "erf", "erf", 0.1)


def test_the_nodes_resolve_large_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    found = large_step_risk(12.0, RIDGES, 4, 2, "tanh", "tanh", 0.1, width=2000).risk
    monkeypatch.setattr("gradrank.onestep.conditional_moments.FEWEST", 80)
    assert found == pytest.approx(large_step_risk(12.0, RIDGES, 4, 2, "tanh", "tanh", 0.1, width=2000).risk, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("outer", ["gaussian", "signs"])
def test_simulated_steps(outer: str) -> None:
    ridges, noise = [0.03, 0.3], 0.2
    theory = large_step_risk(2.0, ridges, 4, 1, "erf", "erf", noise, width=400, outer=outer)
    found = simulate(2.0, ridges, 4, 1, "erf", "erf", noise, d=400, seeds=10, exponent=0.5, outer=outer)
    assert bool((np.abs(found.risk - theory.risk) < 3 * found.standard_error + 0.03 * theory.risk).all())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta_tilde": 0.0}, "eta_tilde: 0.0 is not allowed"),
        ({"eta_tilde": 0.1}, "eta_tilde: 0.1 is not allowed; .* give width"),
        ({"eta_tilde": 1e3}, "eta_tilde: 1000.0 is not allowed; .* up to 25 is resolved"),
        ({"activation": torch.exp}, "activation: .* grows too fast"),
        ({"ridge": 0.0, "psi1": 1.001}, "as many features as samples"),
        ({"width": -1}, "width: -1 is not allowed"),
        ({"eta_tilde": 1e-3, "width": 1e4}, r"eta_tilde: 0\.001 is not allowed; .* no larger than at the start"),
        ({"outer": "uniform"}, "outer: 'uniform' is not allowed"),
        ({"activation": "square"}, "activation: 'square' is not allowed"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    usual = {
        "eta_tilde": 1.0,
        "ridge": 0.1,
        "psi1": 2.0,
        "psi2": 1.0,
        "activation": "tanh",
        "teacher": "tanh",
        "noise": 0.1,
    }
    with pytest.raises(InputError, match=message):
        large_step_risk(**{**usual, **change})
