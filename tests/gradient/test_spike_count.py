"""`count_spikes` on noise, on planted spikes of known strength, and on gradients of two-layer networks."""

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import binom

import gradrank as gr
from gradrank.foundation.errors import InputError
from gradrank.gradient.decomposition import decompose
from gradrank.gradient.spectrum_prediction import predict_spectrum
from gradrank.gradient.spike_count import count_spikes
from gradrank.linalg.factored import Factored
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.tracy_widom import quantile


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng((seed, *shape)).standard_normal(shape))


def orthonormal(seed: int, rows: int, columns: int) -> torch.Tensor:
    return torch.linalg.qr(normal(seed, rows, columns)).Q


def spiked(seed: int, N: int, M: int, strengths: list[float]) -> torch.Tensor:
    k = len(strengths)
    left, right = orthonormal(seed + 1, N, k), orthonormal(seed + 2, M, k)
    return normal(seed, N, M) + left * torch.tensor(strengths, dtype=torch.float64) @ right.T


def two_layer(
    seed: int = 0,
    *,
    n: int = 150,
    d: int = 200,
    m: int = 250,
    nu: float = 0.0,
    direction: str = "random",
    inner: str = "sphere",
    activation: str = "sigmoid",
    weight_decay: float = 0.0,
) -> gr.Draw:
    problem = gr.Problem(
        inputs=gr.SpikedGaussian(n=n, d=d, nu=nu, alpha=0.0, direction=direction),
        targets="triple-index",
        network=gr.TwoLayer(m=m, activation=activation, scaling="ntk", inner=inner),
        loss="mse",
        regularisers=gr.Regularisers(weight_decay=weight_decay),
    )
    return problem.draw(seed=seed)


def compatible(p_values: list[float], levels: tuple[float, ...] = (0.01, 0.05, 0.1)) -> bool:
    """Whether the number of p-values below each level lies in the 99 % interval of the binomial law."""
    p, n = np.array(p_values), len(p_values)
    return all(binom.ppf(0.005, n, a) <= (p <= a).sum() <= binom.ppf(0.995, n, a) for a in levels)


@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (250, 250)])
def test_spikes_of_very_different_strengths_are_all_found(shape: tuple[int, int]) -> None:
    strengths = [x * math.sqrt(max(shape)) for x in (300.0, 100.0, 10.0)]
    G = spiked(0, *shape, strengths)
    found = count_spikes(G)
    assert (found.count, found.null, found.level, found.status) == (3, "iid", 0.01, "ok")
    assert len(found.p_values) == 4
    assert max(found.p_values[:3]) < 1e-100 < 0.01 < found.p_values[3]
    np.testing.assert_allclose(found.singular_values, strengths, rtol=0.02)
    assert found.edge == pytest.approx(math.sqrt(shape[0]) + math.sqrt(shape[1]), rel=0.02)
    turned = count_spikes(G.T.numpy())
    assert turned.count == 3
    np.testing.assert_allclose(turned.p_values, found.p_values, rtol=1e-6, atol=1e-280)
    for scale in (1e20, 1e-20):
        single = count_spikes((G * scale).float())
        assert single.count == 3
        np.testing.assert_allclose(np.array(single.singular_values) / scale, found.singular_values, rtol=1e-5)
        assert single.p_values[3] == pytest.approx(found.p_values[3], rel=0.02)


def test_a_pair_one_percent_apart() -> None:
    strength = 3 * (300 * 200) ** 0.25
    assert count_spikes(spiked(10, 300, 200, [strength, 1.01 * strength])).count == 2
    assert count_spikes(spiked(10, 300, 200, [strength] * 20)).count == 20


def test_float32_at_the_ends_of_its_range_agrees() -> None:
    G = spiked(3, 200, 120, [40.0])
    reference = count_spikes(G)
    for scale in (1e-25, 1e35):
        assert count_spikes((G * scale).float()).count == reference.count == 1


def neighbours_correlated(rows: int, columns: int, rho: float) -> torch.Tensor:
    correlation = rho ** (torch.arange(columns)[:, None] - torch.arange(columns)).abs().double()
    return normal(7, rows, columns) @ torch.linalg.cholesky(correlation).T


def test_withheld_by_the_null_of_independent_entries() -> None:
    rng = normal(0, 60, 50)
    cases = {
        "rank is below": rng @ (torch.eye(50, dtype=torch.float64) - 1 / 50),
        "zero": torch.zeros(60, 50),
        "NaN or infinite": torch.where(rng > 2, math.nan, rng),
        "below 20": rng[:, :15],
        "the bulk is not that of i.i.d. entries": normal(1, 2500, 300).T @ normal(2, 2500, 400),
        "the shape of its lower part": neighbours_correlated(400, 200, 0.2),
    }
    for reason, matrix in cases.items():
        found = count_spikes(matrix)
        assert found.count is None
        assert found.status.startswith("withheld: ")
        assert reason in found.status
        assert (found.p_values, found.singular_values, found.edge) == ((), (), None)
    low = LowRank.rank_one(normal(3, 60)[:], normal(4, 50))
    assert "rank is below" in count_spikes(low).status
    assert "no low rank" in count_spikes(normal(5, 100, 80) * torch.linspace(0, 1, 100).double()[:, None] ** 6).status


def test_result_is_plain_data() -> None:
    found = count_spikes(normal(0, 60, 50))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == {
        **found.to_dict(),
        "p_values": list(found.p_values),
    }
    assert "independent noise" in found.assumption


def test_wrong_arguments() -> None:
    with pytest.raises(InputError, match="null: "):
        count_spikes(normal(0, 60, 50), null="median")
    with pytest.raises(InputError, match="null: "):
        count_spikes(normal(0, 60, 50), null="law")
    with pytest.raises(InputError, match="null: "):
        count_spikes(normal(0, 60, 50), null="factored")
    for level in (0.0, 1.0, math.nan, "1%", True):
        with pytest.raises(InputError, match="level: "):
            count_spikes(normal(0, 60, 50), level=level)
    for matrix in (normal(0, 60), "spikes", np.zeros((30, 30), dtype=complex), np.zeros((0, 3)), [[1.0], [1.0, 2.0]]):
        with pytest.raises(InputError, match="G: "):
            count_spikes(matrix)
    with pytest.raises(InputError, match="values: "):
        count_spikes(Factored(normal(0, 60, 50), normal(1, 60, 40)), values=[1.0, 2.0])


def planted(seed: int, n: int, d: int, m: int, strengths: list[float]) -> Factored:
    """Noise factors with common sample scores e: X + √s e uᵀ and Δ + √s e vᵀ, so that XᵀΔ holds s u vᵀ."""
    k = len(strengths)
    e, u, v = orthonormal(seed + 2, n, k), orthonormal(seed + 3, d, k), orthonormal(seed + 4, m, k)
    e = e * torch.tensor(strengths, dtype=torch.float64).sqrt()
    return Factored(normal(seed, n, d) + e @ u.T, normal(seed + 1, n, m) + e @ v.T)


def test_planted_dependence_of_factors() -> None:
    n, d, m = 200, 250, 300
    edge = count_spikes(planted(0, n, d, m, [])).edge
    assert edge is not None
    for strengths in ([1.0], [1.0, 10.0, 100.0], [1.5, 1.515]):
        found = count_spikes(planted(0, n, d, m, [edge * s for s in strengths]))
        assert (found.count, found.null, found.status) == (len(strengths), "factored", "ok")
    # Too weak to be an outlier of either factor, √s < n^¼ d^¼: only the alignment of both shows.
    assert count_spikes(planted(0, n, d, m, [0.5 * edge])).count == 1
    assert count_spikes(planted(0, n, d, m, [0.05 * edge])).count == 0


def test_scale_and_precision_of_factors() -> None:
    G = planted(5, 100, 150, 120, [500.0, 5000.0])
    reference = count_spikes(G)
    for scale in (1e-15, 1e15):
        found = count_spikes(Factored((G.X * scale).float(), G.signal.float()))
        assert found.count == reference.count == 2
        np.testing.assert_allclose(found.singular_values, scale * np.array(reference.singular_values), rtol=1e-4)
        assert found.p_values[2] == pytest.approx(reference.p_values[2], rel=0.02)
    turned = count_spikes(Factored(G.signal, G.X))
    assert turned.count == 2


def test_withheld_by_the_null_of_factors() -> None:
    X, signal = normal(0, 60, 50), normal(1, 60, 40)
    cases = {
        "zero": Factored(X, 0 * signal),
        "NaN or infinite": Factored(X, signal / 0),
        "below 20": Factored(X[:10], signal[:10]),
        "has rank": Factored(X, torch.outer(normal(2, 60), normal(3, 40))),
    }
    for reason, gradient in cases.items():
        found = count_spikes(gradient)
        assert found.count is None
        assert reason in found.status
    known = count_spikes(Factored(X, signal), values=[1e6] * 6)
    assert "give more" in known.status
    # The spectrum is not that of noise at all: every value of the product of equal factors is a square.
    assert "the bulk is not that of this null" in count_spikes(Factored(normal(4, 400, 60), normal(4, 400, 60))).status


def test_a_draw_is_counted_against_its_predicted_law() -> None:
    draw = two_layer(6, direction="none")
    prediction = predict_spectrum(draw)
    found = count_spikes(draw)
    assert (found.null, found.status) == ("law", "ok")
    assert found.count == len(prediction.outliers)
    assert found.edge == prediction.upper_edge
    np.testing.assert_allclose(found.singular_values, [outlier.value for outlier in prediction.outliers], rtol=0.03)
    parts = decompose(draw)
    values = parts.gradient.top(10)
    for again in (
        count_spikes(parts, draw=draw),
        count_spikes(draw, prediction=prediction, values=values),
        count_spikes(draw, prediction=prediction, values=values.values.numpy()),
    ):
        np.testing.assert_allclose(again.p_values, found.p_values, rtol=1e-3, atol=1e-300)
    assert count_spikes(parts).null == "factored"
    assert "rank is below" in count_spikes(draw, null="iid").status


def test_where_the_law_declines() -> None:
    draw = two_layer(0, inner="data")
    found = count_spikes(draw)
    assert found.null == "factored"
    assert "no predicted law: network.inner: 'data'" in found.assumption
    strict = count_spikes(draw, null="law")
    assert strict.count is None
    assert "network.inner: 'data'" in strict.status
    both = count_spikes(two_layer(0, inner="data", weight_decay=0.1))
    assert (both.count, both.null) == (None, "none")
    assert "weight decay" in both.status
    assert "below 20" in count_spikes(two_layer(0, n=12, d=60, m=60)).status


@pytest.mark.parametrize("kind", ["linear by small inputs", "linear", "inputs of rank 3"])
def test_a_gradient_of_low_rank_has_no_bulk_to_count_against(kind: str) -> None:
    """Its few values would be the bulk, and none of them a spike: 0 spikes in an exactly rank-one gradient."""
    X = normal(0, 100, 120)
    if kind == "inputs of rank 3":
        X = X[:, :3] @ normal(1, 3, 120)
    activation = (lambda x: 1.0 * x) if kind == "linear" else "tanh"
    X = 1e-9 * X if kind == "linear by small inputs" else X
    draw = gr.Problem(inputs=gr.ArrayInputs(X=X.numpy()), network=gr.TwoLayer(m=150, activation=activation)).draw(0)
    found = count_spikes(draw)
    assert (found.count, found.null) == (None, "law")
    assert "the predicted bulk has only" in found.status
    prediction = predict_spectrum(draw)
    assert "too few" in prediction.status
    compared = prediction.compare(decompose(draw).gradient.singular_values())
    assert "too few" in compared.status


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1000, 500), (1000, 200), (800, 800), (300, 1000)])
def test_level_on_pure_noise(shape: tuple[int, int]) -> None:
    found = [count_spikes(normal(seed, *shape)) for seed in range(200)]
    assert {one.status for one in found} == {"ok"}
    assert compatible([one.p_values[0] for one in found])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "m"), [(400, 1000, 1250), (375, 500, 625), (800, 400, 500)])
def test_level_on_products_of_noises(n: int, d: int, m: int) -> None:
    products = (Factored(normal(1000 + seed, n, d), normal(5000 + seed, n, m)) for seed in range(200))
    assert compatible([count_spikes(product).p_values[0] for product in products])


@pytest.mark.slow
def test_level_of_the_second_test_beside_a_spike() -> None:
    p = [count_spikes(spiked(7 * seed, 250, 200, [500.0])).p_values[1] for seed in range(200)]
    assert compatible(p)
    p = [count_spikes(planted(9 * seed, 150, 120, 180, [3e4])).p_values[1] for seed in range(200)]
    assert compatible(p)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_level_beyond_the_predicted_outliers(activation: str) -> None:
    p = []
    for seed in range(60):
        draw = two_layer(seed, direction="none", activation=activation)
        prediction = predict_spectrum(draw)
        k = len(prediction.outliers)
        top = decompose(draw).gradient.top(k + 1, vectors=False).values[k]
        p.append(prediction.edge_p_value(float(top)))
    assert compatible(p)


@pytest.mark.slow
def test_detection_around_the_threshold() -> None:
    """A spike θ shows at (θ² + N)(θ² + M)/θ² for θ > (NM)^¼ (Benaych-Georges and Nadakuditi 2012), else not at all.

    Below, the level; where that position meets the 1 % quantile of the noise, about half; above, all.
    """
    N, M, seeds = 300, 200, 100
    threshold = (N * M) ** 0.25
    root_n, root_m = math.sqrt(N - 0.5), math.sqrt(M - 0.5)
    critical = (root_n + root_m) ** 2 + quantile(0.99) * (root_n + root_m) * (1 / root_n + 1 / root_m) ** (1 / 3)
    grid = np.linspace(1.0, 2.0, 100001) * threshold
    half = float(grid[np.argmax((grid**2 + N) * (grid**2 + M) / grid**2 > critical)]) / threshold
    rates = []
    for factor in (0.8, 1.0, half, 1.6):
        found = [count_spikes(spiked(11 * seed, N, M, [factor * threshold])).count for seed in range(seeds)]
        assert None not in found
        rates.append(np.mean([count > 0 for count in found if count is not None]))
    assert binom.ppf(0.0005, seeds, 0.01) <= seeds * rates[0] <= binom.ppf(0.9995, seeds, 0.01)
    assert rates[0] <= rates[1] < rates[2]
    assert 0.3 < rates[2] < 0.7
    assert rates[3] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "inner", "strong"), [(0.0, "sphere", 1), (0.125, "sphere", 1), (0.375, "aligned", 2)])
def test_counts_of_figure_1(nu: float, inner: str, strong: int) -> None:
    """One outlier for ν < ¼, two for ¼ ≤ ν < ½ with aligned W (LRG, figure 1), by those of twice the edge.

    Weak ones beside the edge are real as well: the predicted population has them.
    """
    for seed in range(2):
        draw = two_layer(seed, n=750, d=1000, m=1250, nu=nu, inner=inner)
        found = count_spikes(draw)
        assert found.edge is not None
        assert sum(value > 2 * found.edge for value in found.singular_values) == strong


def test_what_is_known_must_belong_to_what_is_counted() -> None:
    draw, other = two_layer(n=60, d=70, m=80), two_layer(n=61, d=70, m=80)
    prediction = predict_spectrum(other)
    plain = normal(0, 60, 50)
    for call, message in (
        (lambda: count_spikes(draw, prediction=prediction), "prediction: is for"),
        (lambda: count_spikes(draw, prediction=5), "prediction: a int is not allowed"),  # type: ignore[arg-type]
        (lambda: count_spikes(plain, prediction=prediction), "prediction: is not used"),
        (lambda: count_spikes(plain, values=torch.ones(3)), "values: are not used"),
        (lambda: count_spikes(plain, values="x"), "values: give finite"),
        (lambda: count_spikes(decompose(draw), draw="x"), "draw: a str"),  # type: ignore[arg-type]
        (lambda: count_spikes([[object()]]), "G: a list of no real numbers"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_sparse_matrices_are_counted_as_dense_ones() -> None:
    plain = normal(0, 60, 50)
    assert count_spikes(plain.to_sparse()).p_values == count_spikes(plain).p_values
