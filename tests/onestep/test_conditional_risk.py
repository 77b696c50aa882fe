"""The risk given the weights: published digits for a toy, simulation with its standard error, and what is refused."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep import conditional_risk, simulate
from gradrank.onestep.dependence import dependence
from gradrank.onestep.functions import centred
from gradrank.onestep.ridge import ridge_path
from gradrank.onestep.spiked_equivalent import SpikedEquivalent

NOISE = math.sqrt(0.1)


def toy() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights (m, d), the same with a spike, β, and the spike's direction."""
    i, j = np.meshgrid(np.arange(6), np.arange(8), indexing="ij")
    W = np.sqrt(2 / 6) * np.cos(0.9 * (i + 1) * (j + 2) + 0.4 * j)
    beta = np.ones(6) / 6**0.5
    v = beta + 0.3 * np.cos(np.arange(6) + 1)
    v = v / np.linalg.norm(v)
    return W.T, (W + 1.5 * np.outer(v, np.sin(np.arange(8) + 1))).T, beta, v


@pytest.mark.parametrize(("n", "ridge", "risk"), [(5, 0.1, 0.41182443), (12, 0.01, 0.2798465), (12, 1.0, 0.36135586)])
def test_digits_of_a_small_step(n: int, ridge: float, risk: float) -> None:
    W, _, beta, _ = toy()
    found = conditional_risk(W, ridge, n, "tanh", "erf", NOISE, beta, step="small")
    assert found.risk == pytest.approx(risk, rel=1e-7)
    assert found.residual < 1e-12


@pytest.mark.parametrize(("n", "ridge", "risk"), [(12, 0.1, 0.078664331), (30, 0.01, 0.041176621)])
def test_digits_of_a_large_step(n: int, ridge: float, risk: float) -> None:
    _, W, beta, v = toy()
    found = conditional_risk(torch.from_numpy(W), ridge, n, "tanh", "tanh", NOISE, 3 * beta, spike=-2 * v)
    assert (found.step, found.residual < 1e-8) == ("large", True)
    assert found.risk == pytest.approx(risk, rel=2e-7)


def spiked(d: int, m: int, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights with a spike, β at a cosine of 0.8 with it, and the spike's direction."""
    rng = np.random.default_rng(seed)
    v, beta = np.eye(d)[0], 0.8 * np.eye(d)[0] + 0.6 * np.eye(d)[1]
    return rng.standard_normal((m, d)) / d**0.5 + strength * np.outer(rng.standard_normal(m), v), beta, v


def measured(
    W: np.ndarray, beta: np.ndarray, ridges: list[float], n: int, activation: str, teacher: str, noise: float, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean test risk and its standard error over training sets, for the same weights."""
    generator = torch.Generator().manual_seed(1)
    sigma, target = centred(activation, "activation"), centred(teacher, "teacher")
    weights, direction = torch.from_numpy(W).T, torch.from_numpy(beta)
    risks = []
    for _ in range(runs):
        X = torch.randn(n, len(beta), dtype=torch.float64, generator=generator)
        y = target.value(X @ direction) + noise * torch.randn(n, dtype=torch.float64, generator=generator)
        path = ridge_path(sigma.value(X @ weights), y, ridges)
        X = torch.randn(4000, len(beta), dtype=torch.float64, generator=generator)
        errors = path.predict(sigma.value(X @ weights)) - target.value(X @ direction)[:, None]
        risks.append(errors.square().mean(dim=0).numpy())
    table = np.array(risks)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / runs**0.5


@pytest.mark.parametrize(("activation", "teacher"), [("erf", "tanh"), ("relu", "tanh"), ("gelu", "relu")])
def test_a_small_step_against_simulation(activation: str, teacher: str) -> None:
    """Activations that are not odd as well: their even part acts as noise."""
    rng = np.random.default_rng(0)
    W, beta, ridges = rng.standard_normal((450, 300)) / 300**0.5, np.eye(300)[0], [0.01, 0.3]
    theory = conditional_risk(W, ridges, 600, activation, teacher, 0.3, beta)
    mean, error = measured(W, beta, ridges, 600, activation, teacher, 0.3, 25)
    assert theory.step == "small"
    # beyond the noise: the equivalence is exact as d → ∞, here to 2 %
    assert bool((np.abs(mean - theory.risk) < 3 * error + 0.02 * mean).all())


@pytest.mark.parametrize(("activation", "teacher"), [("erf", "erf"), ("tanh", "relu")])
def test_a_large_step_against_simulation(activation: str, teacher: str) -> None:
    W, beta, v = spiked(200, 300, 1.0, 2)
    ridges = [0.01, 0.3]
    theory = conditional_risk(W, ridges, 800, activation, teacher, 0.2, beta, spike=v)
    mean, error = measured(W, beta, ridges, 800, activation, teacher, 0.2, 25)
    assert theory.step == "large"
    assert bool((np.abs(mean - theory.risk) < 3 * error + 0.02 * mean).all())
    small = conditional_risk(W, ridges, 800, activation, teacher, 0.2, beta, step="small")
    assert bool((np.abs(mean - small.risk) > 5 * error).any())  # the other equivalent would be wrong


def test_the_choice_and_the_ridgeless_limit() -> None:
    W, beta, _ = spiked(60, 90, 1.0, 0)
    found = conditional_risk(W, 0.1, 200, "erf", "erf", 0.1, beta)
    assert (found.step, "above 0.15" in found.reason) == ("large", True)
    assert conditional_risk(W, 0.1, 200, "erf", "erf", 0.1, beta, step="small").reason == "as asked for"
    for step in ("small", "large"):
        for n in (200, 50):
            zero, near = conditional_risk(W, [0.0, 1e-7], n, "erf", "erf", 0.1, beta, step=step).risk
            assert zero == pytest.approx(near, rel=1e-3)
        with pytest.raises(InputError, match="as many features as samples"):
            conditional_risk(W, 0.0, 90, "erf", "erf", 0.1, beta, step=step)


def test_a_grid_gives_what_its_members_give() -> None:
    W, beta, v = spiked(40, 60, 1.0, 1)
    ridges = [0.01, 1.0, 0.1]
    for step in ("small", "large"):
        grid = conditional_risk(W, ridges, 150, "tanh", "tanh", 0.2, beta, step=step, spike=v)
        for index, ridge in enumerate(ridges):
            alone = conditional_risk(W, ridge, 150, "tanh", "tanh", 0.2, beta, step=step, spike=v)
            assert grid.risk[index] == pytest.approx(alone.risk, rel=1e-7)


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_rows_of_any_norm_against_simulation(scale: float) -> None:
    """μ₁ and μ₂ of the small equivalent are those of rows of norm one, and it would be wrong by a factor of up to two."""
    rng = np.random.default_rng(5)
    W, beta, ridges = scale * rng.standard_normal((150, 150)) / 150**0.5, np.eye(150)[0], [0.01, 0.3]
    theory = conditional_risk(W, ridges, 300, "tanh", "tanh", 0.3, beta)
    mean, error = measured(W, beta, ridges, 300, "tanh", "tanh", 0.3, 25)
    assert theory.step == "large"
    assert bool((np.abs(mean - theory.risk) < 3 * error + 0.02 * mean).all())
    assert "mean square norm is 0," in conditional_risk(0 * W, 0.1, 300, "tanh", "tanh", 0.3, beta).reason
    assert conditional_risk(0 * W, 0.1, 300, "tanh", "tanh", 0.3, beta).risk == pytest.approx(0.39429449, rel=1e-6)


def test_a_step_in_between_against_simulation() -> None:
    """Neurons that see the spike's coordinate at 0.3 of a standard deviation: too much for the small equivalent."""
    W, beta, v = spiked(200, 400, 0.3, 3)
    theory = conditional_risk(W, 0.1, 800, "relu", "relu", 0.1, beta, spike=v)
    mean, error = measured(W, beta, [0.1], 800, "relu", "relu", 0.1, 25)
    assert theory.step == "large"
    assert abs(mean[0] - theory.risk) < 3 * error[0] + 0.02 * mean[0]
    small = conditional_risk(W, 0.1, 800, "relu", "relu", 0.1, beta, spike=v, step="small").risk
    assert abs(mean[0] - small) > 5 * error[0] + 0.02 * mean[0]


def test_the_equivalent_without_a_spike_is_close_to_the_small_one() -> None:
    rng = np.random.default_rng(4)
    W, beta, v = rng.standard_normal((200, 300)) / 300**0.5, np.eye(300)[0], np.eye(300)[1]
    sigma = centred("erf", "activation")
    risk, _ = SpikedEquivalent.of(W, beta, v, sigma, sigma).risks(np.array([0.1]), 500, 0.2)
    small = conditional_risk(W, 0.1, 500, "erf", "erf", 0.2, beta, step="small").risk
    assert risk[0] == pytest.approx(small, rel=0.02)  # the small one takes every row's norm to be one


def test_one_neuron_that_carries_the_spike_against_simulation() -> None:
    """The rule over k resolves the largest |⟨v̂, w_j⟩|: with nodes for the typical one the risk was 10 % low."""
    rng = np.random.default_rng(0)
    W, beta = rng.standard_normal((200, 200)), rng.standard_normal(200)
    W, beta, ridges = W / np.linalg.norm(W, axis=1)[:, None], beta / np.linalg.norm(beta), [0.01, 0.1]
    W[0] = 12 * beta
    theory = conditional_risk(W, ridges, 400, "tanh", "tanh", 0.2, beta)
    mean, error = measured(W, beta, ridges, 400, "tanh", "tanh", 0.2, 40)
    assert bool((np.abs(mean - theory.risk) < 3 * error + 0.01 * mean).all())


def rows(m: int, d: int, seed: int = 0) -> np.ndarray:
    W = np.random.default_rng(seed).standard_normal((m, d))
    return np.asarray(W / np.linalg.norm(W, axis=1)[:, None])


def test_the_dependence_of_non_linear_parts() -> None:
    """√(2m)/d times the share of the quadratic part for random rows; one where all rows come twice, as they are or turned."""
    v, relu, tanh = np.eye(300)[0], centred("relu", "activation"), centred("tanh", "activation")
    quadratic = (1 / (4 * math.pi)) / (0.5 - 1 / (2 * math.pi) - 0.25)
    assert dependence(rows(150, 300), v, relu) == pytest.approx(quadratic * math.sqrt(2 * 150) / 300, rel=0.05)
    assert dependence(rows(300, 300), v, tanh) < 0.01
    assert dependence(rows(300, 300), v, centred("linear", "activation")) == 0.0
    assert dependence(np.eye(300), v, relu) == dependence(0 * np.eye(300), v, relu) == 0.0
    for one in (rows(100, 300), np.eye(300)):
        for sign in (1, -1):
            for activation in (relu, tanh):
                assert dependence(np.concatenate([one, sign * one]), v, activation) == pytest.approx(1, abs=0.05)
    pair = rows(100, 300)
    pair[1] = pair[0]
    assert dependence(pair, v, tanh) == pytest.approx(math.sqrt(2 / 100), rel=0.1)
    pair[:50] = np.outer(np.arange(50) - 20, v)  # along the spike: no non-linear part across it
    assert dependence(pair, v, relu) < 0.1


def test_rows_that_depend_on_each_other() -> None:
    """Doubled rows, of which simulation has a risk 36 % below that of independent features, and twice it for n < m."""
    beta = np.eye(100)[0]
    for W in (np.concatenate([rows(100, 100), rows(100, 100)]), rows(200, 10) @ np.eye(10, 100), rows(3000, 100)):
        with pytest.raises(InputError, match="weights: the non-linear parts of the features are correlated"):
            conditional_risk(W, 0.01, 400, "relu", "relu", 0.2, beta)
    assert 0.1 < conditional_risk(rows(100, 100), 0.01, 400, "relu", "relu", 0.2, beta).dependence < 0.15
    orthogonal = conditional_risk(np.eye(300), 0.01, 400, "tanh", "tanh", 0.2, np.ones(300))
    assert (orthogonal.dependence, orthogonal.risk > 0) == (0.0, True)


@pytest.mark.slow
def test_the_weights_of_real_steps() -> None:
    """Theory for the weights of simulated large steps against their test risk, paired over seeds."""
    ridges = [1e-3, 3e-2, 0.1, 1.0]
    found = simulate(2.0, ridges, 8, 2, "erf", "erf", 0.0, d=250, seeds=6, exponent=0.5)
    expected = np.array([0.01979, 0.01828, 0.01957, 0.03702])  # the limit
    assert bool((np.abs(found.risk - expected) < 3 * found.standard_error + 0.03 * expected).all())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(3)}, r"weights: shape \(3,\)"),
        ({"weights": np.full((4, 6), np.nan)}, "weights: an entry is NaN"),
        (
            {"weights": np.ones((8, 3))},
            r"weights: shape \(8, 3\) is not allowed; give \(m, d\), m at least 2 and d at least 4",
        ),
        ({"direction": None}, "direction: is missing"),
        ({"direction": np.zeros(6)}, "direction: shape"),
        ({"direction": np.ones(5)}, "direction: shape"),
        ({"n": 1}, "n: 1 is not allowed"),
        ({"weights": [[1.0, 2.0], [1.0]]}, "weights: lists of different lengths"),
        ({"direction": "north"}, "direction: 'north' is not allowed"),
        ({"step": "large", "activation": torch.exp, "weights": 2 * np.eye(6)}, "activation: .* grows too fast"),
        ({"step": "large", "activation": "linear", "n": 6, "ridge": 0.0}, "as many features as samples"),
        ({"step": "medium"}, "step: 'medium' is not allowed; give one of auto, small, large"),
        ({"ridge": [0.1, -1.0]}, "ridge: -1.0 is not allowed"),
        ({"noise": -1}, "noise: -1 is not allowed"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    W, _, beta, _ = toy()
    usual = {
        "weights": W,
        "ridge": 0.1,
        "n": 10,
        "activation": "tanh",
        "teacher": "tanh",
        "noise": 0.1,
        "direction": beta,
    }
    with pytest.raises(InputError, match=message):
        conditional_risk(**{**usual, **change})
