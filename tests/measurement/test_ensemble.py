import json
import math

import numpy as np
import pytest

import gradrank as gr
from gradrank.foundation.errors import InputError
from gradrank.measurement.ensemble import Mean


@pytest.fixture(scope="module")
def problem() -> gr.Problem:
    return gr.Problem(inputs=gr.SpikedGaussian(n=40, d=50), network=gr.TwoLayer(m=60))


@pytest.fixture(scope="module")
def many(problem: gr.Problem) -> gr.Ensemble:
    return gr.measure_many(problem, 5, first_seed=2)


def test_means_and_standard_errors_over_the_seeds(problem: gr.Problem, many: gr.Ensemble) -> None:
    norms = [gr.measure(problem, seed).norms["residue_spike"] for seed in range(2, 7)]
    assert many.seeds == [2, 3, 4, 5, 6]
    assert many.norms["residue_spike"].mean == pytest.approx(np.mean(norms), rel=1e-12)
    assert many.norms["residue_spike"].standard_error == pytest.approx(np.std(norms, ddof=1) / math.sqrt(5), rel=1e-12)


def test_json_of_an_ensemble(many: gr.Ensemble) -> None:
    body = json.loads(many.to_json())
    assert body["schema"] == "gradrank.ensemble/1"
    assert body["norms"]["gradient"]["count"] == 5
    assert set(body["alignments"]["u1"]["q"]) == {"mean", "standard_error", "count"}


def test_withheld_numbers_are_left_out_of_the_mean() -> None:
    assert Mean.of([1.0, math.nan, 3.0]).count == 2
    assert Mean.of([1.0, math.nan, 3.0]).mean == 2.0
    assert math.isnan(Mean.of([1.0]).standard_error)
    assert math.isnan(Mean.of([]).mean)


def test_one_seed_is_no_ensemble(problem: gr.Problem) -> None:
    with pytest.raises(InputError, match=r"^seeds: 1 is not allowed"):
        gr.measure_many(problem, 1)


def test_dataset_has_a_dimension_of_seeds(many: gr.Ensemble) -> None:
    data = many.to_xarray()
    assert data.sizes["seed"] == 5
    assert float(data["norm"].sel(part="gradient").mean()) == pytest.approx(many.norms["gradient"].mean, rel=1e-12)
