"""Values measured for the figures of LRG, at their sizes (n, d, m = 750, 1000, 1250), and the claims that rest on them.

The reference values are means and standard deviations over three seeds, measured apart from this library. A mean over N
of our seeds may differ by three standard errors, s √(1/3 + 1/N), with the larger of the two standard deviations: a
standard deviation of three values may be far too small by chance.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

from gradrank.gradient.alignments import chance_level
from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import MultiIndex

SEEDS = 6
FULL = (750, 1000, 1250)
SIZES = [pytest.param((150, 200, 250), id="small"), pytest.param(FULL, id="full", marks=pytest.mark.slow)]


def problem(
    nu: float,
    alpha: float,
    activation: str,
    inner: str = "sphere",
    sizes: tuple[int, int, int] = FULL,
    **regularisers: float,
) -> Problem:
    n, d, m = sizes
    return Problem(
        inputs=SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha),
        network=TwoLayer(m=m, activation=activation, inner=inner),
        regularisers=Regularisers(**regularisers),
    )


def measured(specification: Problem, read: Callable[[Decomposition], list[float]], seeds: int = SEEDS) -> np.ndarray:
    """Return what ``read`` finds in the decompositions of the first seeds, shape (seeds, values)."""
    return np.array([read(decompose(specification.draw(seed))) for seed in range(seeds)])


def agrees(sample: np.ndarray, mean: float, deviation: float, count: int = 3) -> bool:
    spread = max(deviation, float(sample.std(ddof=1)))
    return abs(float(sample.mean()) - mean) <= 3 * spread * math.sqrt(1 / count + 1 / len(sample))


def over_remainder(*names: str) -> Callable[[Decomposition], list[float]]:
    def read(parts: Decomposition) -> list[float]:
        norms = parts.norms()
        return [norms[name] / norms["remainder"] for name in names]

    return read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nu", "inner", "expected", "outliers"),
    [
        (0.0, "sphere", [(37.3, 3.0), (0.988, 0.010)], 1),
        (0.375, "aligned", [(3.73, 1.26), (0.39, 0.05), (0.14, 0.04)], 2),
    ],
)
def test_figure_1_outliers(nu: float, inner: str, expected: list[tuple[float, float]], outliers: int) -> None:
    def read(parts: Decomposition) -> list[float]:
        values = parts.leading(6).values
        return (values / parts.norms()["remainder"]).tolist()

    sample = measured(problem(nu, 0.0, "sigmoid", inner), read)
    for column, (mean, deviation) in enumerate(expected):
        assert agrees(sample[:, column], mean, deviation)
    gaps = sample[:, :-1] / sample[:, 1:]
    assert bool((gaps[:, :outliers].min(axis=1) > 1.3).all())  # every outlier stands clear of what follows it
    # The bulk begins after them. For aligned W the third value is the outlier of the remainder itself, and follows the
    # bulk (0.015) from afar: what is claimed is that it lies far below the second.
    assert bool((gaps[:, outliers] < (1.15 if inner == "sphere" else 2.0)).all())


@cache
def figure_2(activation: str) -> np.ndarray:
    return measured(problem(1 / 8, 5 / 9, activation), over_remainder("residue_spike"))[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "mean", "deviation"),
    [("relu", 2.42, 0.24), ("elu", 19.8, 2.2), ("swish", 8.8, 0.6), ("softplus", 17.7, 4.7)],
)
def test_figure_2_relu_hides_the_residue_spike(activation: str, mean: float, deviation: float) -> None:
    sample = figure_2(activation)
    assert agrees(sample, mean, deviation)
    if activation != "relu":
        assert float(sample.min()) > 3 * float(figure_2("relu").max())


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["sphere", "orthogonal", "data", "aligned"])
@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh"])
def test_figure_3_large_spike_is_of_rank_one_along_q(activation: str, inner: str) -> None:
    def read(parts: Decomposition) -> list[float]:
        values = parts.leading(2).values
        cosine = float(parts.alignments(k=1).left["q"][0])
        return [cosine, float(values[1] / values[0]), float(parts.mean_derivative.value.mean())]

    cosine, ratio, mean_mu = measured(problem(0.75, 0.0, activation, inner), read).T
    if inner == "aligned" and activation != "relu":
        # The violation of assumption 4.3: w_jᵀΣw_j ≈ n, μ_j is small, S₁₂ and S₂ cancel. The cosine scatters over (0,
        # 1).
        assert mean_mu == pytest.approx({"sigmoid": 0.015, "tanh": 0.031}[activation], abs=0.001)
        assert float(cosine.mean()) < 0.8
        assert float(np.median(cosine)) < 0.9
        assert agrees(cosine, {"sigmoid": 0.59, "tanh": 0.37}[activation], 0.0)
    else:
        assert float(cosine.min()) > 0.99
        if (
            inner != "data" or activation == "relu"
        ):  # W made of samples saturates too (mean μ 0.006 and 0.013): σ₂/σ₁ scatters
            assert float(ratio.max()) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["ntk", "mf"])
def test_figure_4_the_gradient_follows_the_residue(scaling: str) -> None:
    specification = Problem(
        inputs=SpikedGaussian(n=300, d=400, direction="none"), targets=MultiIndex(links="sigmoid", noise=0.1),
        network=TwoLayer(m=500, activation="relu", scaling=scaling),
    )  # fmt: skip

    def read(parts: Decomposition) -> list[float]:
        left = parts.alignments(k=1).left
        return [float(left[name][0]) for name in ("bulk_residue", "bulk_labels", "target_1")]

    sample = measured(specification, read, seeds=50)
    expected = {"ntk": (0.999, 0.66, 0.20), "mf": (0.998, 0.997, 0.33)}[scaling]
    for column, mean in enumerate(expected):
        # The reference is taken as a mean over as many draws, and given to two or three digits, not always rounded.
        allowed = 3 * float(sample[:, column].std(ddof=1)) * math.sqrt(2 / 50) + (0.005 if mean < 0.99 else 0.001)
        assert abs(float(sample[:, column].mean()) - mean) <= allowed
    assert float(sample[:, 2].mean()) > 3 * chance_level(400)
    if scaling == "ntk":  # the residue, not the target
        assert float((sample[:, 0] - sample[:, 1]).min()) > 0
        assert float(sample[:, 0].min()) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variance", "residue_spike", "data_spike"),
    [
        (0.0, (0.66, 0.08), (4.50, 0.26)),
        (0.05, (2.63, 0.17), (4.31, 0.18)),
        (0.25, (6.66, 0.39), (2.61, 0.09)),
        (1.0, (8.09, 0.41), (0.81, 0.08)),
        (4.0, (8.31, 0.79), (0.28, 0.01)),
    ],
)
def test_figure_7_input_noise(
    variance: float, residue_spike: tuple[float, float], data_spike: tuple[float, float]
) -> None:
    specification = problem(1 / 8, 8 / 9, "relu", input_noise=variance)
    sample = measured(specification, over_remainder("residue_spike", "data_spike"))
    assert agrees(sample[:, 0], *residue_spike)
    assert agrees(sample[:, 1], *data_spike)


@cache
def jacobian_penalty(strength: float) -> np.ndarray:
    """Return ‖S₁‖, ‖S₃‖, ‖E₂‖ and the second singular vector's alignment with X_Bᵀr, shape (seeds, 4)."""

    def read(parts: Decomposition) -> list[float]:
        norms = parts.norms()
        cosine = float(parts.alignments(k=2).left["bulk_residue"][1])
        return [
            norms["residue_spike"],
            norms["jacobian_spike"] / strength,
            norms["jacobian_remainder"] / strength,
            cosine,
        ]

    return measured(problem(3 / 8, 0.0, "sigmoid", jacobian=strength), read)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strength", "mean", "deviation"), [(1, 0.95, 0.04), (10, 0.38, 0.08), (100, 0.07, 0.05), (1000, 0.07, 0.05)]
)
def test_figure_7_jacobian_penalty_drowns_the_residue_spike(strength: float, mean: float, deviation: float) -> None:
    S1, S3, E2, cosine = jacobian_penalty(strength).T
    assert agrees(S1, 0.382, 0.044)
    assert agrees(S3, 1.567, 0.018)
    assert agrees(E2, 0.153, 0.002)
    assert agrees(cosine, mean, deviation)
    # Both grow with λ exactly, S₁ does not change.
    np.testing.assert_allclose(np.stack([S1, S3, E2]), jacobian_penalty(1).T[:3], rtol=2e-6)


def expected_square_of_jacobian_spike(n: int, d: int, m: int, nu: float) -> float:
    """Return E‖S₃‖² for a Sigmoid with W on the sphere, Σ̂ = I and γ² = 1/m, by Gaussian quadrature.

    ‖S₃‖² = γ⁴ζ² Σ_j (1/n Σ_i φ_ij)² with φ = z ‖x‖² h(wᵀx), h = σ′σ″, and independent samples: the expectation
    is γ⁴ζ² m E_c[E[φ²]/n + (1 − 1/n) E[φ]²] with c = wᵀq ~ N(0, 1/d) up to O(1/d). With q = c w + s p, p ⟂ w,
    x = g₁w + g₂p + (d − 2 further N(0, 1)) + ζz q, so that wᵀx = g₁ + ζ z c and
    ‖x‖² = (g₁ + ζ z c)² + (g₂ + ζ z s)² + χ²_{d−2}.
    """
    zeta, (nodes, weights) = n**nu, np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    total = 0.0
    z, g = np.meshgrid(nodes, nodes, indexing="ij")
    joint = np.outer(weights, weights)
    for node, weight in zip(nodes, weights, strict=True):
        c = node / math.sqrt(d)
        if abs(c) >= 1:  # beyond 30 standard deviations
            continue
        t, shift = g + zeta * z * c, (zeta * z) ** 2 * (1 - c * c)
        s = 1 / (1 + np.exp(-t))
        h = (s * (1 - s)) ** 2 * (1 - 2 * s)
        mean = t**2 + 1 + shift + (d - 2)  # of ‖x‖² given z and g₁
        variance = 2 + 4 * shift + 2 * (d - 2)  # of (g₂ + ζzs)² and χ²
        first = float((joint * z * mean * h).sum())
        second = float((joint * z**2 * (mean**2 + variance) * h**2).sum())
        total += weight * (second / n + (1 - 1 / n) * first**2)
    return zeta**2 / m * total


@pytest.mark.parametrize("sizes", SIZES)
def test_jacobian_spike_against_its_expectation(sizes: tuple[int, int, int]) -> None:
    specification = problem(3 / 8, 0.0, "sigmoid", sizes=sizes, jacobian=1.0)
    norms = measured(specification, lambda parts: [parts["jacobian_spike"].norm()], seeds=20)[:, 0]
    error = float((norms**2).std(ddof=1)) / math.sqrt(len(norms))
    assert abs(float((norms**2).mean()) - expected_square_of_jacobian_spike(*sizes, 3 / 8)) < 3 * error
    # Single seeds scatter by 0.09 around 1.46 at full size: 1.567 ± 0.018 is of three that lie together.
    if sizes == FULL:
        assert 0.05 < float(norms.std(ddof=1)) < 0.15


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("nu", "alpha", "expected"), [(1 / 8, 8 / 9, 0.64), (0.75, 0.0, 0.86)])
def test_sign_agreement_of_relus_centred_derivative(
    nu: float, alpha: float, expected: float, sizes: tuple[int, int, int]
) -> None:
    # Proposition 3.1: σ′_⊥ → ½ sign(z) sign(Wq)ᵀ. For one weight, t = wᵀx_B + ζ (wᵀq) z has the sign of (wᵀq) z with
    # probability ½ + arctan(ζ|wᵀq|/√(wᵀΣ̂w))/π.
    specification, found, exact = problem(nu, alpha, "relu", sizes=sizes), [], []
    eigenvalues = torch.arange(1, sizes[1] + 1).double() ** -alpha
    for seed in range(4):
        draw = specification.draw(seed)
        parts = decompose(draw)
        along = draw.network.W @ parts.split.direction
        centred = draw.network.activation.derivative(draw.preactivations) - parts.mean_derivative.value
        agreement = centred.sign() == torch.outer(parts.split.scores.sign(), along.sign())
        found.append(float(agreement.double().mean()))
        ratio = parts.split.strength * along.abs() / torch.sqrt(draw.network.W.square() @ eigenvalues)
        exact.append(0.5 + float(torch.arctan(ratio).mean()) / math.pi)
    error = float(np.std(np.subtract(found, exact), ddof=1)) / 2
    assert abs(np.mean(found) - np.mean(exact)) < 5 * error  # of four values
    if sizes == FULL:  # given to two digits, and once rounded up from 0.854
        assert abs(np.mean(found) - expected) < 0.005 + 3 * float(np.std(found, ddof=1)) / 2
