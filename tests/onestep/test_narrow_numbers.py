"""Numbers of few bits, as arrays hand them out, count as the numbers that they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradrank.onestep import (
    asymptotic_risk,
    conditional_risk,
    large_step_risk,
    linear_risk,
    simulate,
    simulate_feature_spikes,
    spike_theory,
)

W = np.random.default_rng(0).standard_normal((30, 40)) / 40**0.5
CALLS: dict[str, Callable[[Callable[[int], Any]], Any]] = {
    "asymptotic": lambda t: asymptotic_risk(t(100), t(1), t(100), t(3), "tanh", "tanh", t(100)).risk,
    "spike": lambda t: spike_theory(t(100), t(100), t(3), "tanh", "tanh", t(100)).singular_value,
    "large": lambda t: large_step_risk(t(16), t(1), t(100), t(3), "tanh", "tanh", t(12), width=t(100)).risk,
    "linear": lambda t: linear_risk(t(100), "tanh", t(100)).risk,
    "conditional": lambda t: conditional_risk(W, t(1), t(100), "tanh", "tanh", t(100), W[0]).risk,
    "simulation": lambda t: simulate(
        t(1), [t(1)], t(2), t(2), "tanh", "tanh", t(100), d=t(20), seeds=[1], test=t(100)
    ).risk[0],
    "features": lambda t: simulate_feature_spikes(
        0.25, "tanh", "tanh", noise=t(100), n=t(100), psi1=t(2), seeds=1
    ).edges[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_eight_bits(name: str) -> None:
    assert CALLS[name](np.int8) == CALLS[name](int)
