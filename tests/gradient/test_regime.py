"""Every branch of `regime` against section 3 of LRG."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.gradient.regime import Regime, regime
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import MultiIndex

FAILS = "the theorem needs "
SMOOTH = "σ twice differentiable almost everywhere, σ′ Lipschitz (Theorem 3.1)"
INDEPENDENT = "W independent of X (Theorem 3.1)"


def problem(
    nu: float = 0.1,
    alpha: float = 0.0,
    activation: Any = "elu",
    inner: str = "sphere",
    n: int = 75,
    direction: str = "random",
    **fields: Any,
) -> Problem:
    weights = {"conv": {"m": 96, "kernel_size": 5}, "given": {"m": 2, "weights": np.ones((2, 100))}}
    network = TwoLayer(activation=activation, inner=inner, **weights.get(inner, {"m": 120}))
    inputs = SpikedGaussian(n=n, d=100, nu=nu, alpha=alpha, direction=direction)
    return Problem(**{"inputs": inputs, "network": network, **fields})


def condition(found: Regime, words: str) -> bool | None:
    (match,) = [c for c in found.conditions if words in c.text]
    return match.holds


@pytest.mark.parametrize(
    ("nu", "alpha", "beta", "dominant", "rank"),
    [
        (0.10, 0.0, 1.0, "residue_spike", 1),
        (0.10, 0.5, 0.71, "residue_spike", 1),
        (0.10, 0.5, 0.70, "both", 1),  # β = 2ν + α: of one order
        (0.10, 0.5, 0.30, "both", 1),
        (0.125, 0.0, 0.25, "both", 1),  # β = 2ν
        (0.125, 0.0, 0.24, "interpolant", 1),
        (0.00, 0.0, 0.0, "both", 1),
        (0.00, 0.0, 0.5, "residue_spike", 1),
        (0.2499, 0.0, 1.0, "residue_spike", 1),
        (0.25, 0.0, 1.0, "both", 2),  # the ¼ threshold
        (0.25, 0.0, 0.0, "both", 2),
        (0.4999, 0.0, 0.5, "both", 2),
        (0.50, 0.0, 0.99, "data_spike", 1),
        (0.50, 0.0, 1.0, "both", None),  # ν = β/2 is not above it
        (0.75, 0.0, 0.0, "data_spike", 1),
        (0.75, 2.0, 1.6, "both", None),
    ],
)  # fmt: skip
def test_table_of_exponents(nu: float, alpha: float, beta: float, dominant: str, rank: int | None) -> None:
    found = regime(problem(nu, alpha), beta=beta)
    assert (found.dominant, found.rank, found.status) == (dominant, rank, "ok")
    assert (found.nu, found.alpha, found.beta, found.beta_source) == (nu, alpha, beta, "given")
    if nu >= 0.5:
        assert found.theorem == ("Theorem 3.2" if dominant == "data_spike" else "rule of thumb")
        assert condition(found, "ν > β/2") is (nu > beta / 2)
    else:
        assert found.theorem == ("Theorem 3.1, ν < ¼" if nu < 0.25 else "Theorem 3.1, ¼ ≤ ν < ½")
        assert condition(found, "S₁ over S₁₂") is (beta > 2 * nu + alpha)
        assert condition(found, "S₁₂ over S₁") is (beta < 2 * nu)


@given(nu=st.floats(0, 1), alpha=st.floats(0, 2), beta=st.floats(0, 3))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_agrees_with_the_rule_of_thumb(nu: float, alpha: float, beta: float) -> None:
    dominant = regime(problem(nu, alpha), beta=beta).dominant
    if 2 * nu < min(0.5, beta - alpha, 1 - alpha):
        assert dominant == "residue_spike"
    if nu >= 0.5 and 2 * nu > beta:
        assert dominant == "data_spike"
    if beta <= 1:  # as counted for any r: then β > 2ν + α implies 2ν < 1 − α, and the rule is an equivalence
        assert (dominant == "residue_spike") == (nu < 0.25 and beta > 2 * nu + alpha)
        assert (dominant == "data_spike") == (nu >= 0.5 and 2 * nu > beta)


@pytest.mark.parametrize("nu", [0.1, 0.3])
@pytest.mark.parametrize(
    ("activation", "smooth"),
    [
        ("relu", False),
        ("leaky_relu", False),
        ("elu", True),
        ("swish", True),
        ("softplus", True),
        ("sigmoid", True),
        ("tanh", True),
    ],
)
def test_theorem_3_1_asks_for_a_smooth_activation(nu: float, activation: str, smooth: bool) -> None:
    found = regime(problem(nu, activation=activation))
    assert condition(found, SMOOTH) is smooth
    assert (found.dominant is None) == (found.rank is None) == (not smooth)
    assert found.status == ("ok" if smooth else FAILS + SMOOTH)


def test_smoothness_of_a_users_activation_is_not_known_and_does_not_withhold_the_prediction() -> None:
    found = regime(problem(0.1, activation=lambda t: t + t.sin() / 2))
    assert condition(found, SMOOTH) is None
    assert found.dominant == "residue_spike"


@pytest.mark.parametrize(
    ("inner", "independent"), [("sphere", True), ("gaussian", True), ("conv", True), ("data", False), ("given", None)]
)
def test_theorem_3_1_asks_for_weights_independent_of_the_data(inner: str, independent: bool | None) -> None:
    found = regime(problem(0.1, inner=inner))
    assert condition(found, INDEPENDENT) is independent
    assert (found.dominant is None) == (independent is False)


def test_theorem_3_1_names_every_failing_condition() -> None:
    found = regime(problem(0.3, activation="relu", inner="data"))
    assert (found.status, found.theorem) == (f"{FAILS}{SMOOTH}; {INDEPENDENT}", "none")


@pytest.mark.parametrize("nu", [0.5, 0.8])
@pytest.mark.parametrize(("activation", "inner"), [("relu", "sphere"), ("elu", "data"), ("relu", "given")])
def test_theorem_3_2_asks_for_neither(nu: float, activation: str, inner: str) -> None:
    found = regime(problem(nu, activation=activation, inner=inner))
    assert (found.dominant, found.rank, found.theorem, found.status) == ("data_spike", 1, "Theorem 3.2", "ok")


@pytest.mark.parametrize(("activation", "dominant"), [("elu", "residue_spike"), ("relu", None)])
def test_without_a_spike_the_residue_spike_is_the_only_candidate(activation: str, dominant: str | None) -> None:
    found = regime(problem(activation=activation, alpha=0.7, direction="none"))
    assert (found.dominant, found.nu, found.alpha, found.beta) == (dominant, None, 0.7, None)
    assert (found.status == "ok") == (dominant is not None)


def test_real_data_are_withheld_until_their_exponents_are_given() -> None:
    real = problem(inputs=ArrayInputs(np.ones((5, 100)), np.ones(5)), targets="numbers")
    for known in ({}, {"nu": 0.3}, {"alpha": 0.5}):
        found = regime(real, **known)
        assert (found.dominant, found.rank, found.conditions) == (None, None, ())
        assert found.status == "the exponents of real data are not part of the problem; give nu and alpha"
    found = regime(real, nu=0.784, alpha=0.5)
    assert (found.dominant, found.nu, found.alpha) == ("data_spike", 0.784, 0.5)


def test_exponents_given_go_before_those_of_the_problem() -> None:
    found = regime(problem(0.1, 0.2), nu=0.6, alpha=0.4)
    assert (found.dominant, found.nu, found.alpha) == ("data_spike", 0.6, 0.4)


@pytest.mark.parametrize(("nu", "beta"), [(0.0, 1.0), (0.2, 0.6), (0.5, 0.0), (0.8, 0.0)])
def test_counted_beta(nu: float, beta: float) -> None:
    found = regime(problem(nu))
    assert found.beta == pytest.approx(beta, abs=1e-15)
    assert found.beta_source == "orders of magnitude for these directions"


@pytest.mark.parametrize(
    ("targets", "inner", "beta"),
    [
        ("aligned", "sphere", 0.0),
        (MultiIndex(links="tanh", directions="aligned", cosine=0.2), "sphere", 0.0),
        (MultiIndex(links="tanh", directions="aligned", cosine=0.0), "sphere", 0.8),
        (MultiIndex(links="tanh", directions="orthogonal"), "sphere", 0.8),
        ("triple-index", "aligned", 0.0),
        ("triple-index", "orthogonal", 0.8),
    ],
)
def test_beta_vanishes_for_targets_or_weights_along_the_spike(targets: Any, inner: str, beta: float) -> None:
    found = regime(problem(0.1, targets=targets, inner=inner))
    assert found.beta == pytest.approx(beta)
    assert found.dominant == ("interpolant" if beta == 0 else "residue_spike")


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "erf", "relu", "elu", "swish", "softplus"])
@pytest.mark.parametrize(
    ("inner", "alpha", "last"),  # the largest ν for which w_jᵀΣw_j stays bounded
    [
        ("sphere", 0.0, 0.5),
        ("gaussian", 0.0, 0.5),
        ("aligned", 0.0, 0.25),
        ("orthogonal", 0.0, math.inf),
        ("data", 0.0, 0.25),
        ("data", 0.6, 0.1),
        ("data", 1.5, 0.0),
    ],
)
def test_saturation_is_flagged_for_bounded_activations_alone(
    activation: str, inner: str, alpha: float, last: float
) -> None:
    for nu, holds in [(5.0, True)] if last == math.inf else [(last, True), (last + 0.01, False)]:
        found = regime(problem(nu, alpha, activation, inner))
        if activation in ("sigmoid", "tanh", "erf"):
            assert condition(found, "assumption 4.3") is holds
        else:
            assert not any("4.3" in c.text for c in found.conditions)


def test_saturation_is_not_known_for_given_weights() -> None:
    assert condition(regime(problem(0.1, activation="tanh", inner="given")), "assumption 4.3") is None


@pytest.mark.parametrize(
    ("nu", "alpha", "inner", "visible"),
    [
        (0.125, 0.75, "sphere", True),  # 2ν = 1 − α
        (0.13, 0.75, "sphere", False),
        (0.13, 0.75, "gaussian", False),
        (0.13, 0.75, "orthogonal", True),
        (0.75, 0.0, "sphere", False),
    ],
)
def test_relu_hides_the_residue_spike_beyond_proposition_3_1(
    nu: float, alpha: float, inner: str, visible: bool
) -> None:
    assert condition(regime(problem(nu, alpha, "relu", inner)), "Proposition 3.1") is visible
    assert not any("Proposition 3.1" in c.text for c in regime(problem(nu, alpha, "elu", inner)).conditions)


@pytest.mark.parametrize(("n", "holds"), [(99, True), (100, False), (101, False)])
def test_aspect_ratio(n: int, holds: bool) -> None:
    assert condition(regime(problem(n=n)), "n < d") is holds


def test_regularisers_are_conditions_that_the_exponents_cannot_tell() -> None:
    found = regime(problem(regularisers=Regularisers(weight_decay=1, input_noise=1, jacobian=1)))
    assert [condition(found, words) for words in ("Jacobian penalty", "input noise", "weight decay")] == [None] * 3
    assert len(regime(problem()).conditions) == len(found.conditions) - 3


@pytest.mark.parametrize(
    ("nu", "alpha", "predicted"), [(0.1, 0.7, True), (0.1, 0.9, False), (0.3, 0.3, True), (0.3, 0.5, False)]
)
def test_theorem_3_1_needs_a_negligible_remainder(nu: float, alpha: float, predicted: bool) -> None:
    # ‖W‖ log n = o(n^(½−ν−α/2)) with ‖W‖ of order one: 2ν + α < 1
    found = regime(problem(nu, alpha=alpha))
    assert (found.dominant is not None) == predicted
    assert ("2ν + α < 1" in found.status) == (not predicted)


@pytest.mark.parametrize(("activation", "inner", "predicted"), [
    ("sigmoid", "aligned", False), ("tanh", "aligned", False), ("relu", "aligned", True), ("sigmoid", "sphere", True),
])  # fmt: skip
def test_saturated_aligned_weights_have_no_prediction(activation: str, inner: str, predicted: bool) -> None:
    # at ν = ¾ the measured |⟨u₁, q⟩| scatters between 0.02 and 0.94 for aligned sigmoid and tanh: S₁₂ and S₂ cancel
    found = regime(problem(0.75, activation=activation, inner=inner))
    assert (found.dominant == "data_spike") == predicted
    assert ("assumption 4.3" in found.status) == (not predicted)
