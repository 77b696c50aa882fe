import json
import math

import numpy as np
import pytest
import torch

import gradrank as gr
from gradrank.foundation.errors import InputError

REQUIRED = {
    "problem", "seed", "norms", "shares", "singular_values", "alignments", "beta", "regime",
    "reconstruction_error", "status", "seconds", "schema",
}  # fmt: skip


def small(**changes: object) -> gr.Problem:
    fields = {"inputs": gr.SpikedGaussian(n=60, d=80, nu=0.3), "network": gr.TwoLayer(m=100), **changes}
    return gr.Problem(**fields)


def strict(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not strict JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_the_promised_keys_and_parts() -> None:
    body = strict(gr.measure(small(), 3).to_json())
    assert set(body) >= REQUIRED
    assert set(body["norms"]) == {"gradient", "residue_spike", "interpolant", "data_spike", "remainder"}
    assert body["seed"] == 3
    assert body["schema"] == "gradrank.measurement/2"
    assert body["status"] == {"measurement": "ok"}
    assert set(body["alignments"]) == {f"{side}{rank}" for side in "uv" for rank in range(1, 11)}
    assert sum(body["shares"].values()) == pytest.approx(1.0, abs=1e-12)


def test_regularised_problem_names_its_parts() -> None:
    regularisers = gr.Regularisers(jacobian=1.0, weight_decay=0.1, input_noise=0.5)
    norms = gr.measure(small(regularisers=regularisers)).norms
    assert {"jacobian_spike", "jacobian_remainder", "weight_decay"} <= set(norms)
    assert all(value > 0 for value in norms.values())


def test_numbers_agree_with_dense_linear_algebra() -> None:
    problem = small()
    result = gr.measure(problem, 1)
    parts = gr.decompose(problem.draw(1))
    G = parts.gradient.dense()
    U, sigma, _ = torch.linalg.svd(G)
    np.testing.assert_allclose(result.singular_values, sigma.numpy(), rtol=1e-9, atol=1e-12 * float(sigma[0]))
    q = parts.split.direction
    assert result.alignments["u1"]["q"] == pytest.approx(abs(float(U[:, 0] @ q)), abs=1e-8)
    E = parts["remainder"].dense()
    assert result.norms["remainder"] == pytest.approx(float(torch.linalg.matrix_norm(E, 2)), rel=1e-6)
    assert result.ratios["gradient"] == pytest.approx(float(sigma[0] / torch.linalg.matrix_norm(E, 2)), rel=1e-6)


def test_beta_is_the_formula_on_this_draw() -> None:
    problem = small()
    draw = problem.draw(5)
    z, r = draw.inputs.scores, draw.residue
    cosine = abs(float(z @ r)) / (math.sqrt(60) * float(r.norm()))
    assert gr.measure(problem, 5).beta == pytest.approx(-2 * math.log(cosine) / math.log(80), rel=1e-12)


def zero_gradient_problem() -> gr.Problem:
    """Return a problem whose labels are the network's own outputs."""
    X = np.random.default_rng(0).standard_normal((30, 20))
    network = gr.TwoLayer(m=25)
    f = gr.Problem(inputs=gr.ArrayInputs(X=X), network=network).draw(0).outputs
    return gr.Problem(inputs=gr.ArrayInputs(X=X, y=f.numpy()), targets="numbers", network=network)


def test_zero_gradient_gives_zeros_and_a_status() -> None:
    body = strict(gr.measure(zero_gradient_problem(), 0).to_json())
    assert set(body["norms"].values()) == {0.0}
    assert set(body["singular_values"]) == {0.0}
    assert body["shares"] is None
    assert body["ratios"] is None
    assert body["beta"] is None
    assert body["status"]["gradient"] == "zero"
    assert {"shares", "ratios", "beta"} <= set(body["status"])


def test_rank_one_data_withhold_ratios() -> None:
    X = np.outer(np.linspace(-1, 2, 40), np.linspace(0.5, 1, 30))
    result = gr.measure(gr.Problem(inputs=gr.ArrayInputs(X=X), network=gr.TwoLayer(m=25)))
    assert result.status["ratios"] == "the remainder is zero to rounding"
    assert result.ratios == {}
    strict(result.to_json())


def test_no_spike_is_said() -> None:
    result = gr.measure(small(inputs=gr.SpikedGaussian(n=60, d=80, direction="none")))
    assert result.norms["interpolant"] == result.norms["data_spike"] == 0.0
    assert "no spike" in result.status["beta"]
    strict(result.to_json())


def test_float32_agrees_with_float64() -> None:
    single, double = gr.measure(small(dtype="float32")), gr.measure(small())
    for name, norm in double.norms.items():
        assert single.norms[name] == pytest.approx(norm, rel=2e-5)
    assert single.environment["dtype"] == "float32"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"k": 0}, "k"),
        ({"spectrum": "all"}, "spectrum"),
        ({"split": "orcale"}, "split"),
        ({"device": "cuda:7"}, "device"),
    ],
)
def test_bad_options_are_one_line(options: dict, field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: ") as caught:
        gr.measure(small(), **options)
    assert "\n" not in str(caught.value)


def test_activation_without_an_expectation_needs_the_empirical_centring() -> None:
    problem = small(network=gr.TwoLayer(m=10, activation=lambda x: torch.exp(x**4)))
    with pytest.raises(InputError, match="give 'empirical'"):
        gr.measure(problem)
    assert gr.measure(problem, centring="empirical").reconstruction_error < 1e-12


def test_overflowing_activation_is_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        gr.measure(small(network=gr.TwoLayer(m=10, activation=lambda x: torch.exp(100 * x**2))), centring="empirical")


def test_top_only_spectrum() -> None:
    result = gr.measure(small(), spectrum="top", k=4)
    assert not result.full_spectrum
    assert result.singular_values.shape == (4,)
    full = gr.measure(small(), spectrum="full", k=4)
    np.testing.assert_allclose(result.singular_values, full.singular_values[:4], rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda: gr.measure("digits"), lambda: gr.measure(small(), k=2.5), lambda: gr.measure(small(), k="3"),
    lambda: gr.measure_many(small(), "2"), lambda: gr.measure_many(small(), True), lambda: gr.regime("x"),
    lambda: gr.decompose(small()), lambda: gr.load(None),
])  # fmt: skip
def test_wrong_types_are_one_line(call) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [1e-200, 1e-120, 1e120])
def test_norms_at_any_scale_of_the_gradient(scale: float) -> None:
    # MSE with labels kept: the residue stays of order one, so every norm is proportional to the output scale.
    # The squares of 1e-200 are below the smallest float64: the shares are withheld, the norms are not.
    small_scale, one = gr.measure(small(network=gr.TwoLayer(m=100, scaling=scale))), None
    if scale < 1:
        one = gr.measure(small(network=gr.TwoLayer(m=100, scaling=1e-20)))
        for name, norm in one.norms.items():
            assert small_scale.norms[name] == pytest.approx(norm * (scale / 1e-20), rel=1e-9)
        assert ("shares" in small_scale.status) == (scale == 1e-200)
    assert small_scale.norms["gradient"] == pytest.approx(float(small_scale.singular_values[0]), rel=1e-9)


def test_a_zero_gradient_is_explained_once() -> None:
    status = gr.measure(zero_gradient_problem(), 0).to_dict()["status"]
    assert not [key for key in status if key.startswith(("alignments.", "part_alignments."))]
