"""Networks in law, networks with weights, and the SDE: against each other, against exact laws, and what is refused."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from gradrank.foundation.errors import InputError
from gradrank.initialization import (
    ShapedReLU,
    ShapedSmooth,
    compare,
    correlation_moments,
    explosion_probability,
    sample_correlation,
    sample_network,
    sample_one_input,
    sample_real_network,
    sample_sde,
)

START = [[1.0, 0.3], [0.3, 1.0]]
THREE = np.array([[1, 0.4, -0.2], [0.4, 1.5, 0.3], [-0.2, 0.3, 0.8]])


def silu(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * torch.sigmoid(x)


def mixed(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) + 0.5 * torch.tanh(x) ** 2


def correlations(V: torch.Tensor) -> np.ndarray:
    return (V[:, 0, 1] / (V[:, 0, 0] * V[:, 1, 1]).sqrt()).numpy()


@pytest.mark.parametrize("shaping", [ShapedReLU(1, -1), ShapedSmooth(mixed)], ids=str)
def test_networks_in_law_are_networks_with_weights(shaping: ShapedReLU | ShapedSmooth) -> None:
    found = compare(
        sample_network(THREE, 10, 20, shaping, 4000, seed=0), sample_real_network(THREE, 10, 20, shaping, 3000, seed=1)
    )
    assert len(found) == 6
    assert all(one.p_value > 1e-3 for one in found)
    assert all(abs(one.means[0] - one.means[1]) < 4 * math.hypot(*one.errors) for one in found)


def test_one_input_is_a_chain_of_chi_squares() -> None:
    """V′/V = (c/n)(s₊²χ²_K + s₋²χ²_{n−K}) with K ~ Bin(n, ½): exact for shaped ReLU."""
    n, depth, samples, shaping = 30, 30, 20_000, ShapedReLU(0.5, -1)
    rng, (plus, minus) = np.random.default_rng(0), shaping.slopes(n)
    log_v = np.zeros(samples)
    for _ in range(depth):
        K = rng.binomial(n, 0.5, samples)
        chi = [np.where(k > 0, rng.chisquare(np.maximum(k, 1)), 0.0) for k in (K, n - K)]
        log_v += np.log(shaping.normaliser(n) / n * (plus**2 * chi[0] + minus**2 * chi[1]))
    found = sample_network([[1.0]], depth, n, shaping, samples, seed=3)[:, 0, 0].log().numpy()
    assert kstest(found, log_v).pvalue > 1e-3


def test_the_log_determinant_of_linear_networks() -> None:
    """E log det V_d = d Σ_{i<p}[ψ((n − i)/2) + log(2/n)] for c₊ = c₋ = 0: −1.522075 and −3.067074 at n = 50, d = 25."""
    for start, expected in ((np.eye(2), -1.522075), (np.eye(3), -3.067074)):
        V = sample_network(start, 25, 50, ShapedReLU(0, 0), 8000, seed=2)
        found = torch.linalg.slogdet(V).logabsdet
        assert abs(float(found.mean()) - expected) < 3.5 * float(found.std()) / 8000**0.5


def test_layers_of_a_path() -> None:
    path = sample_network(START, 6, 20, ShapedReLU(0, -1), 50, seed=1, layers=[0, 3, 6])
    assert path.shape == (50, 3, 2, 2)
    np.testing.assert_allclose(path[:, 0], np.broadcast_to(START, (50, 2, 2)))
    torch.testing.assert_close(path[:, 2], sample_network(START, 6, 20, ShapedReLU(0, -1), 50, seed=1))


@pytest.mark.parametrize(
    ("c", "rho", "time"), [((0, 0), 0.3, 1.0), ((0, -1), 0.3, 1.0), ((1, -1), 0.3, 1.0), ((1, -1), -0.5, 1.0)]
)
def test_the_sde_has_its_exact_laws(c: tuple[int, int], rho: float, time: float) -> None:
    samples = 20_000
    V = sample_sde([[1, rho], [rho, 1]], time, ShapedReLU(*c), samples, seed=5, step=0.02)
    law = correlation_moments(rho, time, *c)
    found = correlations(V)
    critical = 1.63 / samples**0.5  # 1 % point of one test; the scheme's weak error at this step is below 0.002
    assert kstest(found, law.cdf).statistic < critical + 0.003
    assert abs(found.mean() - law.mean) < 3.5 * found.std() / samples**0.5 + 0.002
    log_v = V[:, 0, 0].log().numpy()
    assert kstest(log_v, norm(-time, math.sqrt(2 * time)).cdf).statistic < critical + 0.005
    determinant = torch.linalg.slogdet(V).logabsdet
    if c == (0, 0):  # driftless: E log det V_T = log det V_0 − p(p + 1)T/2
        assert (
            abs(float(determinant.mean()) - math.log(1 - rho**2) + 3 * time)
            < 3.5 * float(determinant.std()) / samples**0.5
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "shaping", [ShapedReLU(0, -1), ShapedSmooth("tanh"), ShapedSmooth(mixed)], ids=["relu", "tanh", "mixed"]
)
def test_networks_of_width_200_against_the_sde(shaping: ShapedReLU | ShapedSmooth) -> None:
    """At T = 1 and 10,000 samples, below the 95 % point, with the corrections for that width."""
    found = compare(
        sample_network(START, 200, 200, shaping, 10_000, seed=11),
        sample_sde(START, 1.0, shaping, 10_000, seed=12, width=200),
    )
    assert all(one.ks < one.critical for one in found), [(one.name, one.ks, one.critical) for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("shaping", [ShapedReLU(1, -1), ShapedSmooth(mixed)], ids=["relu", "mixed"])
def test_the_corrections_for_a_width_are_needed_and_enough(shaping: ShapedReLU | ShapedSmooth) -> None:
    """One input, width 100: log V of networks against the equation without and with them."""
    networks = sample_network([[1.0]], 100, 100, shaping, 10_000, seed=11)
    limit, corrected = (
        compare(networks, sample_sde([[1.0]], 1.0, shaping, 20_000, seed=12, width=width))[0] for width in (None, 100)
    )
    assert limit.ks > limit.critical
    assert corrected.ks < corrected.critical
    assert abs(corrected.means[0] - corrected.means[1]) < 3 * math.hypot(*corrected.errors)


def test_every_path_stays_positive_semidefinite() -> None:
    for start, shaping, count in ((START, ShapedReLU(1, -1), 100_000), (THREE, ShapedSmooth("tanh"), 10_000)):
        path = sample_sde(start, 1.0, shaping, count, seed=0, step=0.1, at=[0.0, 0.1, 0.5, 1.0])
        trace = torch.diagonal(path, dim1=-2, dim2=-1).sum(dim=-1)
        minors = path[..., 0, 0] * path[..., 1, 1] - path[..., 0, 1] ** 2
        assert float((minors / trace**2).min()) > -1e-13
        if len(start) > 2:
            assert float((torch.linalg.eigvalsh(path)[..., 0] / trace).min()) > -1e-13
        assert bool(torch.isfinite(path).all())
        np.testing.assert_allclose(path[:, 0], np.broadcast_to(start, (count, *np.shape(start))))


def test_one_input_of_a_smooth_network_against_its_exact_solution() -> None:
    shaping = ShapedSmooth("tanh")  # b = −2
    exact = sample_one_input(1.0, -2.0, [1.0], 40_000, seed=1).values[:, 0]
    assert np.log(exact).mean() == pytest.approx(-0.674789, abs=3.5 * np.log(exact).std() / 200)
    assert np.log(exact).var() == pytest.approx(0.720184, rel=0.03)
    V = sample_sde([[1.0]], 1.0, shaping, 20_000, seed=2, step=0.01)[:, 0, 0].numpy()
    assert kstest(np.log(V), np.log(exact)).pvalue > 1e-3


@pytest.mark.parametrize("phi", ["tanh", mixed], ids=["tanh", "mixed"])
@pytest.mark.parametrize("size", [30.0, 1e6])
def test_large_covariances_come_down_as_the_exact_solution(phi: object, size: float) -> None:
    """A step in which V falls by powers of ten; a map of first order gave E log V = −3 instead of 1.6 from V = 1000."""
    shaping, samples = ShapedSmooth(phi, 1.0), 8000
    V = sample_sde(size * np.array(START), 0.1, shaping, samples, seed=3)
    found = np.log(V[:, 0, 0].numpy())
    exact = np.log(sample_one_input(size, shaping.growth, [0.1], samples, seed=4, step=1e-3).values[:, 0])
    error = math.hypot(found.std(), exact.std()) / samples**0.5
    assert abs(found.mean() - exact.mean()) < 4 * error
    assert found.std() == pytest.approx(exact.std(), rel=4 / (samples) ** 0.5)
    assert bool((torch.linalg.eigvalsh(V)[:, 0] >= 0).all())


def test_explosion_is_said_and_never_nan() -> None:
    shaping = ShapedSmooth(silu)  # b = ¾
    with pytest.warns(RuntimeWarning, match=r"of 2000 samples exceeded 2000 before T = 3"):
        V = sample_sde([[2.0]], 3.0, shaping, 2000, seed=0, at=[1.0, 3.0])
    assert not bool(torch.isnan(V).any())
    gone = torch.isinf(V[:, :, 0, 0]).double().mean(dim=0)
    assert 0 < float(gone[0]) < float(gone[1]) < 0.7
    exact = sample_one_input(2.0, 0.75, [1.0, 3.0], 4000, seed=1)
    expected = np.isinf(exact.values).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) * (1 / 2000 + 1 / 4000))
    assert bool((np.abs(gone.numpy() - expected) < 4 * error + 0.02).all())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool(torch.isfinite(sample_sde([[2.0]], 3.0, ShapedSmooth("tanh"), 200, seed=0)).all())


@pytest.mark.parametrize("width", [None, 1000, 10**9])
def test_the_share_that_explodes(width: int | None) -> None:
    """Of one input: P(Gamma(b + 1) < bV₀). A jump beyond all floats once came back as zero with the corrections for a width."""
    samples, shaping = 4000, ShapedSmooth(silu, 1.0)
    with pytest.warns(RuntimeWarning, match="samples exceeded"):
        V = sample_sde([[1.0]], 10.0, shaping, samples, step=0.02, width=width)
    share = explosion_probability(shaping.growth, 1.0)
    assert abs(float(torch.isinf(V).double().mean()) - share) < 3.5 * (share * (1 - share) / samples) ** 0.5
    assert float(V.min()) > 0
    with pytest.warns(RuntimeWarning, match="10 of 10 samples"):  # in one step, however long
        assert bool(torch.isinf(sample_sde([[3.0]], 1e3, shaping, 10, step=1e3)).all())


def test_the_correlation_alone() -> None:
    law = correlation_moments(0.3, 1.0, 0, -1)
    found = sample_correlation(0.3, 1.0, 0, -1, 40_000, seed=3).numpy()
    assert kstest(found, law.cdf).statistic < 1.63 / 200 + 0.002
    assert sample_correlation(-0.9, 0.5, 5, -5, 100, seed=0).abs().max() < 1


def test_samples_depend_on_the_seed_alone() -> None:
    for sampler in (
        lambda seed: sample_network(START, 3, 10, ShapedReLU(0, -1), 9, seed),
        lambda seed: sample_sde(START, 0.1, ShapedReLU(0, -1), 9, seed),
    ):
        torch.testing.assert_close(sampler(4), sampler(4), rtol=0, atol=0)
        assert not torch.equal(sampler(4), sampler(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v0": [[1, 2], [2, 1]]}, r"v0: is not positive semidefinite \(smallest eigenvalue -1 of"),
        ({"v0": [[1, 0.5], [0.4, 1]]}, "v0: is not symmetric"),
        ({"v0": [[0.0]]}, "v0: a diagonal entry is not above 0"),
        ({"v0": [1.0, 2.0]}, r"v0: the shape \(2,\) is not allowed"),
        ({"v0": [[math.nan]]}, r"v0: \[\[nan\]\] is not allowed"),
        ({"width": -3}, "width: -3 is not allowed"),
        ({"depth": 0}, "depth: 0 is not allowed"),
        ({"samples": 1.5}, r"samples: 1\.5 is not allowed"),
        ({"layers": [4]}, r"layers: \[4\] is not allowed; give numbers from 0 to depth = 3"),
        ({"seed": -1}, "seed: -1 is not allowed"),
    ],
)
def test_networks_that_are_refused(change: dict, message: str) -> None:
    usual = {"v0": START, "depth": 3, "width": 10, "shaping": ShapedReLU(0, -1), "samples": 5}
    with pytest.raises(InputError, match=message):
        sample_network(**{**usual, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": 0.0}, r"time: 0\.0 is not allowed"),
        ({"step": -1.0}, r"step: -1\.0 is not allowed"),
        ({"cap": 0.5}, r"cap: 0\.5 is not allowed; give a number above the diagonal"),
        ({"at": [0.5, 0.2]}, r"at: \[0\.5, 0\.2\] is not allowed"),
        ({"at": []}, r"at: \[\] is not allowed"),
        ({"width": 0}, "width: 0 is not allowed"),
    ],
)
def test_equations_that_are_refused(change: dict, message: str) -> None:
    usual = {"v0": START, "time": 1.0, "shaping": ShapedReLU(0, -1), "samples": 5}
    with pytest.raises(InputError, match=message):
        sample_sde(**{**usual, **change})


def test_samples_that_cannot_be_compared() -> None:
    with pytest.raises(InputError, match=r"give \(S, p, p\) twice"):
        compare(torch.ones(3, 2, 2), torch.ones(3, 3, 3))
    with pytest.raises(InputError, match="fewer than two finite covariances"):
        compare(torch.full((3, 1, 1), math.inf), torch.ones(3, 1, 1))
    with pytest.raises(InputError, match="samples: 'a' is not allowed; give tensors of covariances"):
        compare("a", torch.ones(3, 1, 1))
    assert compare(np.ones((5, 1, 1)), torch.ones(3, 1, 1))[0].ks == 0.0


def test_shaped_relu_of_any_size_never_explodes() -> None:
    """The equation is the same for V and for any multiple of it."""
    small, large = (sample_sde(size * np.array(START), 1.0, ShapedReLU(0, -1), 500, seed=1) for size in (1.0, 2000.0))
    torch.testing.assert_close(large / 2000.0, small, rtol=1e-9, atol=0.0)


@pytest.mark.slow
def test_three_inputs_of_very_different_sizes() -> None:
    """The law of two of them does not depend on how small they are, nor on the third."""
    scale = np.diag([1.0, 1.0, 1e-8])
    V0 = scale @ np.array([[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]]) @ scale
    three = sample_network(V0, 30, 30, ShapedReLU(0, -1), 4000, seed=1)[:, 1:, 1:]
    two = sample_network(START, 30, 30, ShapedReLU(0, -1), 4000, seed=2)
    unit = torch.tensor([1.0, 1e8], dtype=torch.float64)
    found = compare(three * unit[:, None] * unit, two)
    assert all(one.p_value > 1e-3 for one in found)


def test_what_overflows_is_infinite_and_said() -> None:
    cubic = ShapedSmooth(lambda x: x + x**3, 0.05)
    for p in (2, 3):
        with pytest.warns(RuntimeWarning, match="samples exceeded 1000"):
            V = sample_sde(np.eye(p), 1.0, cubic, 50)
        assert not bool(torch.isnan(V).any())
        with pytest.warns(RuntimeWarning, match="networks overflowed"):
            V = sample_network(np.eye(p), 50, 5, ShapedSmooth(torch.sinh), 8)
        assert not bool(torch.isnan(V).any())


def test_equal_inputs_stay_equal_with_the_corrections_for_a_width() -> None:
    for shaping in (ShapedReLU(1, -1), ShapedSmooth(mixed)):
        V = sample_sde(np.ones((2, 2)), 1.0, shaping, 50, width=50)
        torch.testing.assert_close(V[:, 0, 0], V[:, 1, 1], rtol=1e-5, atol=0.0)


@pytest.mark.slow
def test_close_inputs_with_the_corrections_for_a_width() -> None:
    """The variance of log V¹¹/V²² at ρ₀ = 0.99: networks against the equation, in their standard errors."""
    start = [[1.0, 0.99], [0.99, 1.0]]

    def ratio(V: torch.Tensor) -> tuple[float, float]:
        squares = ((V[:, 0, 0] / V[:, 1, 1]).log() ** 2).numpy()
        return float(squares.mean()), float(squares.std() / len(squares) ** 0.5)

    networks, error = ratio(sample_network(start, 50, 50, ShapedReLU(1, -1), 8000, seed=1))
    equation, other = ratio(sample_sde(start, 1.0, ShapedReLU(1, -1), 8000, seed=2, width=50))
    assert abs(networks - equation) < 3 * math.hypot(error, other) + 0.1 * networks  # 5/n of the next order


@pytest.mark.parametrize(
    ("rho", "time", "c"), [(-0.999, 1.0, (1, -1)), (-0.95, 0.2, (1, -1)), (-0.9, 0.2, (2, -2)), (-0.5, 0.2, (4, -4))]
)
def test_correlations_that_start_near_minus_one_or_move_fast(rho: float, time: float, c: tuple[int, int]) -> None:
    found = sample_correlation(rho, time, *c, 20_000, seed=1).numpy()
    law = correlation_moments(rho, time, *c)
    assert abs(found.mean() - law.mean) < 3.5 * found.std() / 20_000**0.5 + 0.002
    assert kstest(found, law.cdf).statistic < 1.63 / 20_000**0.5 + 0.003


@pytest.mark.parametrize("shaping", [None, "relu", torch.relu, ShapedReLU])
def test_what_is_no_shaping(shaping: object) -> None:
    for sampler in (sample_network, sample_real_network):
        with pytest.raises(InputError, match=r"shaping: .* give ShapedReLU"):
            sampler(START, 2, 3, shaping, 2)
    with pytest.raises(InputError, match=r"shaping: .* give ShapedReLU"):
        sample_sde(START, 1.0, shaping, 2)


def test_gram_matrices_in_single_precision() -> None:
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    assert sample_network(x @ x.T / 2, 3, 10, ShapedReLU(0, -1), 3).shape == (3, 4, 4)
    with pytest.raises(InputError, match="not positive semidefinite"):
        sample_network([[1e8, 1.5], [1.5, 1e-8]], 1, 10, ShapedReLU(0, 0), 3)
    with pytest.raises(InputError, match="the derivatives from the left and the right"):
        ShapedSmooth(torch.nn.functional.elu)
