import json

import numpy as np
import pytest

import gradrank as gr
from gradrank.flow.training.held_out import hold_out
from gradrank.flow.training.schedule import At, Every, Logarithmic
from gradrank.flow.training.trackers import Alignments, Loss, TopSingularValues, Weights


@pytest.fixture(scope="module")
def draw() -> gr.Draw:
    return gr.Problem(inputs=gr.SpikedGaussian(n=40, d=50), network=gr.TwoLayer(m=60)).draw(0)


def test_series_by_name(draw: gr.Draw) -> None:
    run = gr.train(draw, gr.Descent(steps=10), [Loss(), TopSingularValues(2, schedule=Every(5)), Weights(At([3]))])
    assert run.names == ("loss", "singular_values", "residuals", "left_vectors", "right_vectors", "weights")
    assert run.steps("loss").tolist() == list(range(11))
    assert run.steps("singular_values").tolist() == [0, 5, 10]
    assert run.values("singular_values").shape == (3, 2)
    assert run.values("weights").shape == (1, 60, 50)
    assert (run.status, run.last_step) == ("ok", 10)
    with pytest.raises(gr.InputError, match=r"name: 'lose' is not allowed; .*did you mean 'loss'"):
        run.values("lose")


def test_xarray(draw: gr.Draw, tmp_path) -> None:
    trackers = [Loss(), Alignments(schedule=Logarithmic(2)), TopSingularValues(2, schedule=Every(5))]
    run = gr.train(draw, gr.Descent(steps=10), trackers)
    data = run.to_xarray()
    assert data["loss"].dims == ("step",)
    assert data["alignment_q"].dims == ("step",)
    assert np.isnan(data["alignment_q"].sel(step=4))
    assert float(data["alignment_q"].sel(step=3)) == run.values("alignment_q")[2]
    assert data["singular_values"].dims == ("singular_values_step", "index")
    assert data["singular_values_step"].values.tolist() == [0, 5, 10]
    assert data.attrs["status"] == "ok"
    assert gr.Descent.from_mapping(json.loads(data.attrs["descent"])) == run.descent
    data.to_zarr(tmp_path / "run.zarr", consolidated=False)


def test_nothing_tracked(draw: gr.Draw) -> None:
    run = gr.train(draw, gr.Descent(steps=2))
    assert run.names == ()
    assert run.to_xarray().sizes == {"step": 0}


def test_hold_out_shares_all_but_the_samples(draw: gr.Draw) -> None:
    train, test = hold_out(draw, 15)
    assert (train.shape, test.shape) == ((25, 50, 60), (15, 50, 60))
    assert np.array_equal(np.vstack([train.X, test.X]), draw.X)
    assert np.array_equal(np.concatenate([train.y, test.y]), draw.y)
    assert train.network is test.network
    assert gr.decompose(train).reconstruction_error < 1e-13
    for samples in (0, 39, 2.0, True):
        with pytest.raises(gr.InputError, match=r"samples: .* is not allowed; give a whole number from 1 to 38"):
            hold_out(draw, samples)
