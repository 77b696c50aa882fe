"""The asymptotic risk: published digits, limits, a finite matrix, and what is refused."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep import asymptotic_risk, conditional_risk, linear_bound, linear_risk
from gradrank.onestep.asymptotic_risk import transform

NOISE = math.sqrt(0.1)
DIGITS = [  # activation, teacher, η, ψ₁, ψ₂, λ, noise variance; risk, κ, df₂/n, δ
    ("tanh", "tanh", 0.0, 2, 1, 0.01, 0.1, 0.26145682, 0.017911292, 0.39690037, 0),
    ("tanh", "tanh", 0.5, 2, 1, 0.01, 0.1, 0.25776095, 0.017911292, 0.39690037, 0.0036958699),
    ("tanh", "tanh", 1.0, 2, 1, 0.01, 0.1, 0.24829211, 0.017911292, 0.39690037, 0.013164719),
    ("tanh", "tanh", 2.0, 2, 1, 0.01, 0.1, 0.22485576, 0.017911292, 0.39690037, 0.036601065),
    ("erf", "erf", 2.0, 4, 2, 0.1, 0.1, 0.11891769, 0.13502828, 0.18014954, 0.015827843),
    ("erf", "erf", 2.0, 2, 2, 0.001, 0.1, 0.77299927, 0.0095179611, 0.80852397, 0.038384153),
    ("erf", "erf", 0.0, 0.5, 2, 1.0, 0.1, 0.36973934, 2.2411181, 0.16933742, 0),
    ("tanh", "relu", 1.0, 1, 2, 0.01, 0.1, 0.51562259, 0.14533777, 0.64070877, 0.0037397925),
    ("erf", "relu", 2.0, 4, 1, 0.001, 0.1, 0.22165707, 0.0013295325, 0.24575152, 0.018846244),
    ("erf", "tanh", 1.0, 4, 0.5, 0.1, 0.0, 0.24129676, 0.11029856, 0.071928063, 0.026078208),
]
TABLE = [  # activation, teacher, ψ₁, ψ₂, λ; risks at η = 0, 1, 2
    ("tanh", "tanh", 0.5, 1, 0.01, (0.57171, 0.54719, 0.51380)),
    ("tanh", "tanh", 1, 1, 0.1, (0.30592, 0.28973, 0.26263)),
    ("tanh", "tanh", 4, 2, 0.1, (0.10554, 0.10216, 0.09464)),
    ("tanh", "tanh", 2, 2, 0.001, (0.58765, 0.58137, 0.56815)),
    ("erf", "erf", 0.5, 1, 0.01, (0.66969, 0.63410, 0.59268)),
    ("erf", "erf", 1, 1, 0.1, (0.37555, 0.35108, 0.31551)),
    ("erf", "erf", 2, 1, 0.01, (0.33293, 0.31179, 0.27811)),
    ("erf", "erf", 4, 2, 0.1, (0.13475, 0.12956, 0.11892)),
    ("erf", "erf", 2, 2, 0.001, (0.81138, 0.79829, 0.77300)),
    ("tanh", "relu", 0.5, 1, 0.01, (0.60602, 0.59420, 0.57642)),
    ("tanh", "relu", 1, 1, 0.1, (0.33228, 0.32451, 0.31023)),
    ("tanh", "relu", 2, 1, 0.01, (0.31878, 0.31245, 0.30000)),
    ("tanh", "relu", 4, 2, 0.1, (0.16491, 0.16331, 0.15948)),
    ("tanh", "relu", 2, 2, 0.001, (0.84027, 0.83729, 0.83054)),
]
TRANSFORMS = [
    (0.1, 0.5, 5.7416574, -51.726124),
    (0.1, 1.0, 2.7015621, -15.617376),
    (0.1, 2.0, 0.84428877, -1.2271764),
    (1.0, 1.0, 0.61803399, -0.4472136),
    (0.001, 2.0, 0.99800598, -1.9880656),
]


@pytest.mark.parametrize("row", DIGITS)
def test_known_digits(row: tuple) -> None:
    activation, teacher, eta, psi1, psi2, ridge, variance, *expected = row
    found = asymptotic_risk(eta, ridge, psi1, psi2, activation, teacher, math.sqrt(variance))
    np.testing.assert_allclose(
        [found.risk, found.kappa, found.df2_share, found.improvement], expected, rtol=1e-7, atol=1e-15
    )
    assert found.residual < 1e-12
    assert found.risk == pytest.approx(found.bias + found.variance)


@pytest.mark.parametrize("row", TABLE)
def test_the_table(row: tuple) -> None:
    activation, teacher, psi1, psi2, ridge, expected = row
    risks = [asymptotic_risk(eta, ridge, psi1, psi2, activation, teacher, NOISE).risk for eta in (0.0, 1.0, 2.0)]
    np.testing.assert_allclose(risks, expected, atol=6e-6)


@pytest.mark.parametrize(("omega", "psi2", "m", "slope"), TRANSFORMS)
def test_the_transform(omega: float, psi2: float, m: float, slope: float) -> None:
    np.testing.assert_allclose(transform(omega, psi2), (m, slope), rtol=1e-7)
    step = 1e-5 * omega
    difference = (transform(omega + step, psi2)[0] - transform(omega - step, psi2)[0]) / (2 * step)
    assert slope == pytest.approx(difference, rel=1e-5)


def test_the_transform_is_that_of_a_large_matrix() -> None:
    W = torch.randn(900, 600, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 600**0.5
    values = torch.linalg.svdvals(W).square()
    # fluctuations of such traces are of the order 1/d
    assert transform(0.3, 1.5)[0] == pytest.approx(float((1 / (values + 0.3)).mean()), rel=3e-3)


def test_limits() -> None:
    usual = {"psi1": 2, "psi2": 1.5, "activation": "tanh", "teacher": "tanh", "noise": 0.3}
    variance = 0.39429449
    assert asymptotic_risk(1.0, 1e9, **usual).risk == pytest.approx(variance, rel=1e-6)
    eta = asymptotic_risk(1e7, 0.1, **usual), asymptotic_risk(math.inf, 0.1, **usual)
    assert eta[0].risk == pytest.approx(eta[1].risk, rel=1e-8)
    for psi1, psi2 in ((2.0, 1.0), (1.0, 2.0), (4.0, 0.5)):  # the ridgeless limit, on both sides of the peak
        ratios = {"psi1": psi1, "psi2": psi2}
        limit = asymptotic_risk(1.0, 0.0, **{**usual, **ratios})
        near = asymptotic_risk(1.0, 1e-9, **{**usual, **ratios})
        assert limit.risk == pytest.approx(near.risk, rel=1e-6)
    # many samples and features: all that a linear model can do is learned
    assert asymptotic_risk(0.0, 1e-6, 1e7, 1e4, "tanh", "tanh", 0.3).risk == pytest.approx(
        linear_bound("tanh"), rel=5e-3
    )


def test_the_step_never_harms_and_stays_above_the_linear_bound() -> None:
    for eta in (0.5, 2.0, math.inf):
        for psi1 in (0.3, 1.0, 5.0):
            for psi2 in (0.4, 1.0, 3.0):
                found = asymptotic_risk(eta, [1e-3, 0.1, 10.0], psi1, psi2, "tanh", "erf", 0.2)
                assert bool((found.improvement > 0).all())
                assert bool((found.risk > found.linear_bound).all())


def test_a_grid_gives_what_its_members_give() -> None:
    grid = asymptotic_risk(1.0, [0.01, 0.1, 1.0], 2, 1, "erf", "relu", 0.3)
    for index, ridge in enumerate([0.01, 0.1, 1.0]):
        alone = asymptotic_risk(1.0, ridge, 2, 1, "erf", "relu", 0.3)
        assert grid.risk[index] == pytest.approx(alone.risk, rel=1e-12)
        assert isinstance(alone.risk, float)


@pytest.mark.parametrize("eta", [0.0, 2.0])
def test_it_is_the_mean_of_the_conditional_risk(eta: float) -> None:
    """The conditional risk of drawn weights, with the idealised spike η μ₁ v ãᵀ/√m, fluctuates around it."""
    d, m, psi1, noise, rng = 500, 750, 2.0, 0.3, np.random.default_rng(5)
    theory = asymptotic_risk(eta, 0.05, psi1, m / d, "tanh", "tanh", noise)
    found = []
    for _ in range(12):
        X = rng.standard_normal((round(psi1 * d), d))
        y = np.tanh(X[:, 0]) + noise * rng.standard_normal(len(X))
        spike = np.outer(rng.standard_normal(m), X.T @ y / len(X)) * (0.60570551 * eta / m**0.5)
        W = rng.standard_normal((m, d)) / d**0.5 + spike
        found.append(conditional_risk(W, 0.05, len(X), "tanh", "tanh", noise, np.eye(d)[0], step="small").risk)
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - theory.risk) < 3 * error < 0.05 * theory.risk


def test_the_linear_model() -> None:
    rng, d, psi1, noise = np.random.default_rng(2), 300, 1.5, 0.4
    for ridge in (None, 0.02, 1.0):
        theory = linear_risk(psi1, "tanh", noise, ridge)
        risks = []
        for _ in range(30):
            X = rng.standard_normal((round(psi1 * d), d))
            y = np.tanh(X[:, 0]) + noise * rng.standard_normal(len(X))
            w = np.linalg.solve(X.T @ X / len(X) + theory.ridge * np.eye(d), X.T @ y / len(X))
            target = np.eye(d)[0] * 0.60570551
            risks.append(((w - target) ** 2).sum() + theory.bound)
        error = np.std(risks, ddof=1) / len(risks) ** 0.5
        assert abs(np.mean(risks) - theory.risk) < 3 * error
    best = linear_risk(psi1, "tanh", noise)
    assert all(linear_risk(psi1, "tanh", noise, best.ridge * factor).risk > best.risk for factor in (0.9, 1.1))
    assert linear_risk(1.0, "linear", 0.0).risk == 0.0  # λ = 0 at n = d, but there is nothing to learn wrong
    with pytest.raises(InputError, match="as many features as samples"):
        linear_risk(1.0, "tanh", 0.0, 0.0)
    with pytest.raises(InputError, match="teacher: 'square' is not allowed; it has no linear part"):
        linear_risk(1.0, "square", 0.1)


def test_extremes() -> None:
    usual = {"psi1": 2, "psi2": 0.5, "activation": "tanh", "teacher": "tanh", "noise": 0.3}
    steps = [asymptotic_risk(eta, 0.1, **usual).risk for eta in (1e6, 1e40, math.inf)]
    assert steps == pytest.approx([steps[2]] * 3, rel=1e-10)
    nothing = asymptotic_risk(1.0, 0.1, **{**usual, "teacher": lambda z: 0 * z, "noise": 0.0})
    assert (nothing.risk, nothing.improvement) == (0.0, 0.0)
    zero, near = asymptotic_risk(1.0, [0.0, 1e-7], **{**usual, "activation": "linear"}).risk
    assert zero == pytest.approx(near, rel=1e-5)
    assert linear_risk(2.0, "linear", 0.0).risk == 0.0
    assert linear_risk(0.5, "tanh", 0.1, 0.0).risk == pytest.approx(linear_risk(0.5, "tanh", 0.1, 1e-9).risk, rel=1e-6)
    with pytest.raises(InputError, match="as many features as samples"):
        linear_risk(1.0, "tanh", 0.1, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": -1.0}, "ridge: -1.0 is not allowed"),
        ({"ridge": []}, "ridge: an empty"),
        ({"psi2": 1e12}, r"psi2: .* give at most 1e\+11"),
        ({"ridge": 0.0, "psi1": 1.0, "psi2": 1.0}, "as many features as samples"),
        ({"eta": -1.0}, "eta: -1.0 is not allowed"),
        ({"psi1": 0}, "psi1: 0 is not allowed"),
        ({"activation": "square"}, "activation: 'square' is not allowed; E σ′"),
        ({"activation": "linear", "ridge": 0.0, "psi2": 0.5, "psi1": 0.5}, "as many features as samples"),
        ({"eta": 1e200}, r"eta: 1e\+200 is not allowed; give one of at most 1e\+50"),
        ({"noise": 10**400}, "noise: 1000.* is not allowed; give one of at most"),
        ({"psi1": 1e-9}, "psi1: 1e-09 is not allowed; give a ratio from 1e-06"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    usual = {"eta": 1.0, "ridge": 0.1, "psi1": 2.0, "psi2": 1.0, "activation": "tanh", "teacher": "tanh", "noise": 0.1}
    with pytest.raises(InputError, match=message):
        asymptotic_risk(**{**usual, **change})
