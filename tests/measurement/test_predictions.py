"""What a measurement says of theory: predicted spectrum, counted spikes, exponents, and what is withheld with a reason."""

import json
import math

import numpy as np
import pytest

import gradrank as gr
from gradrank.foundation.errors import InputError

SMALL = gr.Problem(
    inputs=gr.SpikedGaussian(n=120, d=160, nu=0.3), network=gr.TwoLayer(m=200, activation="relu"), loss="mse"
)


@pytest.fixture(scope="module")
def measured() -> gr.Measurement:
    return gr.measure(SMALL, seed=1)


def test_json_has_the_prediction_beside_the_measurement(measured: gr.Measurement) -> None:
    body = json.loads(measured.to_json())
    prediction = body["spectrum_prediction"]
    assert set(prediction) >= {"edge", "outliers", "ks"}
    direct = gr.predict_spectrum(SMALL.draw(1))
    assert prediction["edge"] == pytest.approx(direct.upper_edge, rel=1e-9)
    assert prediction["outliers"][0]["predicted"] == pytest.approx(direct.outliers[0].value, rel=1e-9)
    assert prediction["outliers"][0]["measured"] == pytest.approx(measured.singular_values[0])
    assert 0.5 / 120 <= prediction["ks"] < 5 / 120
    spikes = body["spikes"]
    assert set(spikes) >= {"count", "null", "level", "p_values"}
    assert spikes["null"] == "law"
    assert spikes["count"] == sum(p <= spikes["level"] for p in spikes["p_values"])
    assert body["exponents"]["convention"]


def test_curve_counts_the_bulk(measured: gr.Measurement) -> None:
    x, density = measured.prediction_curve
    counted = float(np.trapezoid(density, x))
    outliers = len([row for row in measured.spectrum_prediction["outliers"] if row["predicted"] is not None])
    assert counted == pytest.approx(120 - outliers, rel=0.05)


def test_saved_and_loaded(measured: gr.Measurement, tmp_path) -> None:
    page = measured.save(tmp_path / "out")
    back = gr.load(tmp_path / "out")
    assert back.spectrum_prediction == measured.spectrum_prediction
    assert back.spikes == json.loads(measured.to_json())["spikes"]
    np.testing.assert_array_equal(back.prediction_curve, measured.prediction_curve)
    text = page.read_text(encoding="utf-8")
    assert "Outliers of the spectrum" in text
    assert "spikes:" in text
    assert "exponents of the inputs" in text


def test_off_and_data_dependent_weights_are_withheld() -> None:
    off = gr.measure(SMALL, prediction="off")
    assert off.spectrum_prediction is None
    assert off.spikes is None
    assert off.prediction_curve.shape == (2, 0)
    assert off.to_dict()["status"]["spikes"] == "not asked for"
    beyond = gr.measure(SMALL, prediction="auto", spectrum="top")
    assert "ask for it with prediction = on" in beyond.status["exponents"]
    dependent = gr.measure(SMALL.model_copy(update={"network": gr.TwoLayer(m=200, inner="data")}))
    assert dependent.spectrum_prediction is None
    assert "depend on the data" in dependent.status["spectrum_prediction"]
    assert dependent.spikes["null"] == "factored"
    with pytest.raises(InputError, match="prediction: 'maybe' is not allowed"):
        gr.measure(SMALL, prediction="maybe")


def test_real_data_get_their_regime_from_the_estimated_exponents() -> None:
    problem = gr.Problem(inputs=gr.ArrayInputs(X=_power_law(300, 200)), network=gr.TwoLayer(m=250))
    one = gr.measure(problem)
    assert one.exponents["alpha"] == pytest.approx(0.8, abs=4 * one.exponents["alpha_error"])
    assert one.regime.nu == one.exponents["nu"]
    assert one.regime.alpha == one.exponents["alpha"]


def test_a_spectrum_far_from_its_law_gives_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason that a law is not the draw's, spikes are not counted against it."""
    law = gr.predict_spectrum(SMALL.draw(1))
    monkeypatch.setattr("gradrank.measurement.predictions.predict_spectrum", lambda _: law)
    one = gr.measure(SMALL.model_copy(update={"loss": "squared-hinge"}), seed=1)
    assert "the measured spectrum is off by" in one.status["spectrum_prediction"]
    assert one.spikes is None
    assert one.status["spikes"].startswith("withheld: the predicted law")


def test_huge_inputs_withhold_the_prediction_and_keep_the_measurement() -> None:
    one = gr.measure(gr.Problem(inputs=gr.SpikedGaussian(n=60, d=70, nu=30.0), network=gr.TwoLayer(m=80)))
    assert one.spectrum_prediction is None
    assert "too large for this activation's quadrature" in one.status["spectrum_prediction"]


def test_zero_gradient_has_no_prediction() -> None:
    X = np.random.default_rng(0).standard_normal((60, 80))
    zero = gr.Problem(
        inputs=gr.ArrayInputs(X=X),
        network=gr.TwoLayer(m=70, inner="given", weights=np.zeros((70, 80)), activation="tanh"),
    )
    one = gr.measure(zero)
    assert one.spectrum_prediction is None
    assert "spectrum_prediction" in one.status


def _power_law(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    q = rng.standard_normal(d)
    bulk = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.4
    return bulk + n**0.4 * np.outer(rng.standard_normal(n), q / math.sqrt(q @ q))
