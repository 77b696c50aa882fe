"""Simulated networks and paths that other programs measured, against ours: within three combined standard errors."""

import math
import warnings

import numpy as np
import pytest
import torch

from gradrank.initialization import (
    ShapedReLU,
    ShapedSmooth,
    explosion_probability,
    sample_network,
    sample_one_input,
    sample_sde,
)

pytestmark = pytest.mark.slow
START = [[1.0, 0.3], [0.3, 1.0]]

# Shaped ReLU at T = 1 from ρ₀ = 0.3: (c₊, c₋), width, samples; mean of ρ with its error, variance of ρ; mean of log V with
# its error, variance of log V with its error.
NETWORKS = [
    ((0, -1), 100, 40_000, (0.3466, 0.0030), 0.3499, (-1.016, 0.007), (2.048, 0.014)),
    ((0.5, -0.5), 100, 40_000, (0.3375, 0.0030), 0.3572, (-1.015, 0.007), (2.045, 0.014)),
    ((0, -1), 300, 20_000, (0.3431, 0.0042), 0.3494, (-1.001, 0.010), (2.042, 0.020)),
    ((1, -1), 100, 40_000, (0.5298, 0.0023), 0.2160, (-1.057, 0.007), (2.133, 0.015)),
    ((0, -2), 300, 10_000, (0.5592, 0.0044), 0.1930, (-1.021, 0.015), (2.090, 0.030)),
]
# The scheme for (1, −1) from ρ₀ = 0.3 at T = 1 with noise after the whole drift, steps of 1/10, 1/20, 1/50: errors of E ρ and
# E ρ², of the mean and of the variance of log V, all to 0.002 (0.014 for the variance).
SCHEME = {0.1: (0.003, 0.008, 0.008, 0.018), 0.05: (0.001, 0.003, 0.004, 0.012), 0.02: (0.0, 0.0, 0.002, 0.018)}


def mixed(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) + 0.5 * torch.tanh(x) ** 2


def silu(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * torch.sigmoid(x)


def moments(values: np.ndarray) -> tuple[float, float, float, float]:
    """Return the mean and the variance, each followed by its standard error."""
    centred = values - values.mean()
    return (
        float(values.mean()),
        float(values.std() / len(values) ** 0.5),
        float(values.var()),
        float((centred**2).std() / len(values) ** 0.5),
    )


def correlations(V: torch.Tensor) -> np.ndarray:
    return (V[:, 0, 1] / (V[:, 0, 0] * V[:, 1, 1]).sqrt()).numpy()


@pytest.mark.parametrize(("c", "width", "theirs", "rho", "rho_variance", "log_v", "log_v_variance"), NETWORKS)
def test_shaped_networks(c, width, theirs, rho, rho_variance, log_v, log_v_variance) -> None:
    samples = 10_000 if width == 100 else 3_000
    V = sample_network(START, width, width, ShapedReLU(*c), samples, seed=21)
    mean, error, variance, variance_error = moments(correlations(V))
    assert abs(mean - rho[0]) < 3 * math.hypot(error, rho[1])
    scale = math.hypot(1, (samples / theirs) ** 0.5)  # their variance's error is not stated: that of their sample
    assert abs(variance - rho_variance) < 3 * scale * variance_error
    mean, error, variance, variance_error = moments(V[:, 0, 0].log().numpy())
    assert abs(mean - log_v[0]) < 3 * math.hypot(error, log_v[1])
    assert abs(variance - log_v_variance[0]) < 3 * math.hypot(variance_error, log_v_variance[1])


@pytest.mark.parametrize("step", SCHEME)
def test_weak_errors_of_the_scheme(step: float) -> None:
    """Ours has half the drift on either side of the noise, and must not do worse."""
    V = sample_sde(START, 1.0, ShapedReLU(1, -1), 100_000, seed=5, step=step)
    rho, log_v = correlations(V), V[:, 0, 0].log().numpy()
    exact = (0.538845, 0.205879 + 0.538845**2, -1.0, 2.0)
    found = [moments(rho)[:2], moments(rho**2)[:2], moments(log_v)[:2], moments(log_v)[2:]]
    for (value, error), limit, other, stated in zip(
        found, exact, SCHEME[step], (0.002, 0.002, 0.002, 0.014), strict=True
    ):
        assert abs(value - limit) < other + 3 * math.hypot(error, stated)


@pytest.mark.parametrize(
    ("width", "mean", "variance"), [(300, (-2.520, 0.016), (4.985, 0.050)), (100, (-2.536, 0.016), (5.250, 0.053))]
)
def test_unshaped_networks(width: int, mean: tuple, variance: tuple) -> None:
    """The ReLU itself is s₊ = 1, s₋ = 0: log V_T ≈ N(−5T/2, 5T)."""
    V = sample_network([[1.0]], width, width, ShapedReLU(0, -(width**0.5)), 4_000, seed=4)
    found = moments(V[:, 0, 0].log().numpy())
    assert abs(found[0] - mean[0]) < 3 * math.hypot(found[1], mean[1])
    assert abs(found[2] - variance[0]) < 3 * math.hypot(found[3], variance[1])


@pytest.mark.parametrize(("width", "value", "stated"), [(100, 0.604, 0.011), (200, 0.537, 0.013)])
def test_how_unshaped_networks_collapse(width: int, value: float, stated: float) -> None:
    """E q^(−½) with q = l²(1 − ρ_l) at l = n, T = 1; 0.4793 in the limit."""
    V = sample_network(START, width, width, ShapedReLU(0, -(width**0.5)), 2000, seed=6)
    q = width**2 * (1 - correlations(V))
    mean, error, *_ = moments(q**-0.5)
    assert abs(mean - value) < 3 * math.hypot(error, stated)


@pytest.mark.parametrize(
    ("b", "v0", "simulated"),
    [(0.5, 1, 0.1989), (0.75, 1, 0.2356), (1, 1, 0.2641), (2, 1, 0.3254), (1, 2, 0.5923), (1, 0.5, 0.0902)],
)
def test_explosions(b: float, v0: float, simulated: float) -> None:
    paths = sample_one_input(v0, b, [40.0], 10_000, seed=2, step=0.005)
    found = float(np.isfinite(paths.explosion_times).mean())
    error = (found * (1 - found) / 10_000) ** 0.5
    assert abs(found - simulated) < 3 * math.hypot(error, 0.003)
    assert abs(found - explosion_probability(b, v0)) < 3 * error


def test_when_paths_explode() -> None:
    for b, time, value, stated in (
        (0.75, 1, 0.0983, 5e-4),
        (2, 0.5, 0.117, 1e-3),
        (2, 1, 0.264, 1e-3),
        (2, 2, 0.317, 1e-3),
    ):
        paths = sample_one_input(1.0, b, [2.0], 40_000, seed=3, step=1e-3)
        found = float((paths.explosion_times <= time).mean())
        assert abs(found - value) < 3 * math.hypot((found * (1 - found) / 40_000) ** 0.5, stated)


def test_the_stationary_law_of_paths() -> None:
    late = sample_one_input(1.0, -2.0, [24.0], 20_000, seed=4, step=0.01).values[:, 0]
    mean, error, variance, variance_error = moments(late)
    theirs = 2**0.5  # both samples are of the same size
    assert abs(mean - 0.495) < 3 * theirs * error
    assert abs(variance - 0.245) < 3 * theirs * variance_error


@pytest.mark.parametrize(
    ("phi", "width", "exact", "gap", "stated"),
    [
        (mixed, 50, -0.806901, -0.054, 0.004),
        (mixed, 100, -0.806901, -0.026, 0.006),
        ("tanh", 50, -0.674789, 0.014, 0.004),
        ("tanh", 100, -0.674789, 0.013, 0.005),
    ],
)
def test_one_input_of_smooth_networks(phi, width: int, exact: float, gap: float, stated: float) -> None:
    """How far E log V_1 is from that of the equation."""
    V = sample_network([[1.0]], width, width, ShapedSmooth(phi), 8_000, seed=8)
    mean, error, *_ = moments(V[:, 0, 0].log().numpy())
    assert abs(mean - exact - gap) < 3 * math.hypot(error, stated)


def test_explosive_networks() -> None:
    """P(V¹¹ > 20) and P(largest > 20) at T = 1 for b = ¾: networks of width 100, and the equation."""
    V = sample_network(START, 100, 100, ShapedSmooth(silu), 4_000, seed=9)
    first = float((V[:, 0, 0] > 20).double().mean())
    largest = float((V.diagonal(dim1=1, dim2=2).amax(dim=1) > 20).double().mean())
    error = (first * (1 - first) / 4_000) ** 0.5
    assert 0.084 - 3 * error < first < 0.087 + 3 * error
    assert abs(largest - 0.153) < 3 * (0.153 * 0.847 * (1 / 4_000 + 1 / 20_000)) ** 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        V = sample_sde(START, 1.0, ShapedSmooth(silu), 4_000, seed=9, step=0.005)
    found = float((V.diagonal(dim1=1, dim2=2).amax(dim=1) > 20).double().mean())
    assert abs(found - 0.190) < 3 * (0.19 * 0.81 * (1 / 4_000 + 1 / 20_000)) ** 0.5
