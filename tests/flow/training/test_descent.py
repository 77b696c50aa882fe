"""Each step is that of torch, and what does not fit is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_descent import descend

import gradrank as gr
from gradrank.flow.training.batches import Batches
from gradrank.flow.training.trackers import Loss, TopSingularValues, Weights
from gradrank.gradient.loss_gradient import loss_gradient

REGULARISERS = {
    "none": {},
    "weight decay": {"weight_decay": 0.4},
    "Jacobian penalty": {"jacobian": 3.0},
    "noise": {"input_noise": 0.5},
    "all": {"weight_decay": 0.1, "jacobian": 0.5, "input_noise": 0.2},
}


def problem(scaling: str = "ntk", inner: str = "sphere", dtype: str = "float64", **regularisers: float) -> gr.Problem:
    return gr.Problem(
        inputs=gr.SpikedGaussian(n=30, d=20, nu=0.3),
        network=gr.TwoLayer(m=25, activation="tanh", scaling=scaling, inner=inner),
        regularisers=gr.Regularisers(**regularisers),
        dtype=dtype,
    )


@pytest.mark.parametrize("regularisers", REGULARISERS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("normalised", [True, False])
def test_steps_are_those_of_torch(normalised: bool, momentum: float, regularisers: str) -> None:
    draw = problem(**REGULARISERS[regularisers]).draw(1)
    parametrisation = "weight-normalised" if normalised else "plain"
    descent = gr.Descent(steps=12, rate=0.4, parametrisation=parametrisation, momentum=momentum)
    ours = gr.train(draw, descent, [Weights(), Loss()])
    weights, values = descend(draw, 12, 0.4, normalised=normalised, momentum=momentum)
    assert ours.status == "ok"
    torch.testing.assert_close(torch.from_numpy(ours.values("weights")), torch.stack(weights), rtol=0, atol=1e-12)
    if regularisers in ("none", "noise"):
        torch.testing.assert_close(
            torch.from_numpy(ours.values("loss")), torch.tensor(values, dtype=torch.float64), rtol=1e-12, atol=0
        )
    torch.testing.assert_close(ours.final.network.W, weights[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("inner", ["gaussian", "aligned", "data"])
def test_rows_keep_their_length(inner: str) -> None:
    draw = problem(inner=inner).draw(0)
    final = gr.train(draw, gr.Descent(steps=20)).final.network.W
    lengths = torch.linalg.vector_norm(draw.network.W, dim=1)
    torch.testing.assert_close(torch.linalg.vector_norm(final, dim=1), lengths, rtol=1e-14, atol=0)
    torch.testing.assert_close(final, descend(draw, 20, 5.0, normalised=True)[0][-1], rtol=0, atol=1e-12)


def test_batches_are_those_of_a_shuffle_for_each_epoch() -> None:
    draw = problem().draw(2)
    batches = Batches(30, 8, draw.seed)
    rows = [batches.rows(step) for step in range(8)]
    assert [len(batch) for batch in rows] == [8, 8, 8, 6] * 2
    for epoch in (rows[:4], rows[4:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(30))
    assert torch.cat(rows[:4]).tolist() != torch.cat(rows[4:]).tolist()
    ours = gr.train(draw, gr.Descent(steps=8, rate=0.7, batch=8, momentum=0.5), [Weights()])
    weights, _ = descend(draw, 8, 0.7, normalised=True, momentum=0.5, batches=rows)
    torch.testing.assert_close(torch.from_numpy(ours.values("weights")), torch.stack(weights), rtol=0, atol=1e-12)


def test_one_batch_of_all_samples_is_the_whole_gradient_to_rounding() -> None:
    draw = problem(jacobian=2.0, weight_decay=0.1).draw(0)
    whole = gr.train(draw, gr.Descent(steps=6)).final.network.W
    batch = gr.train(draw, gr.Descent(steps=6, batch=30)).final.network.W
    torch.testing.assert_close(batch, whole, rtol=0, atol=1e-13)


def test_trackers_do_not_disturb_the_descent() -> None:
    draw = problem().draw(0)
    for descent in (gr.Descent(steps=8), gr.Descent(steps=8, batch=7)):
        alone = gr.train(draw, descent).final.network.W
        assert torch.equal(gr.train(draw, descent, [Loss(), TopSingularValues(2)]).final.network.W, alone)


def test_step_size_is_one_over_gamma_unless_given() -> None:
    assert gr.Descent().step_size(0.25) == 4.0
    assert gr.Descent(rate=0.3).step_size(0.25) == 0.3


def test_final_draw_counts_as_trained() -> None:
    draw = problem(inner="sphere").draw(0)
    kept = draw.network.W.clone()
    final = gr.train(draw, gr.Descent(steps=3)).final
    assert not final.network.independent
    assert draw.network.independent
    assert torch.equal(draw.network.W, kept)
    assert gr.decompose(final).reconstruction_error < 1e-13


@pytest.mark.parametrize("name", ["mse", "logistic", "huber", "log-cosh", "squared-hinge"])
def test_every_loss_goes_down(name: str) -> None:
    draw = gr.Problem(
        inputs=gr.SpikedGaussian(n=60, d=20, nu=0.0), network=gr.TwoLayer(m=30), targets="linear", loss=name
    ).draw(0)
    loss = gr.train(draw, gr.Descent(steps=30), [Loss()]).values("loss")
    assert loss[-1] < 0.9 * loss[0]


def test_float32_follows_float64() -> None:
    runs = [
        gr.train(problem(dtype=dtype).draw(0), gr.Descent(steps=10)).final.network.W for dtype in ("float64", "float32")
    ]
    assert runs[1].dtype == torch.float32
    torch.testing.assert_close(runs[1].double(), runs[0], rtol=0, atol=1e-5)


def test_gradient_before_the_projection_is_that_of_decompose() -> None:
    draw = problem(jacobian=2.0, weight_decay=0.3).draw(0)
    torch.testing.assert_close(loss_gradient(draw), gr.decompose(draw).gradient.dense(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps: 0 is not allowed; give a number of at least 1"),
        ({"rate": 0}, "rate: 0 is not allowed; give '1/gamma' or a number above 0"),
        ({"rate": 10**400}, "rate: 1000"),
        ({"rate": np.array([0.1, 0.2])}, "rate: "),
        ({"rate": "fast"}, "rate: 'fast' is not allowed; give '1/gamma' or a number above 0"),
        ({"momentum": 1.0}, "momentum: 1.0 is not allowed; give a number below 1"),
        ({"batch": 0}, "batch: 0 is not allowed; give a number of at least 1"),
        (
            {"parametrisation": "normal"},
            "parametrisation: 'normal' is not allowed; give one of plain, weight-normalised",
        ),
        ({"epochs": 3}, "epochs: no such field; give one of batch, momentum, parametrisation, rate, steps"),
    ],
)
def test_bad_descents_are_refused_in_one_line(fields: dict, message: str) -> None:
    with pytest.raises(gr.InputError) as caught:
        gr.Descent(**fields)
    assert str(caught.value).startswith(message)


def test_arguments_that_do_not_fit_are_refused_in_one_line(tmp_path: Path) -> None:
    draw = problem().draw(0)
    other = gr.Problem(inputs=gr.SpikedGaussian(n=30, d=21), network=gr.TwoLayer(m=25)).draw(0)
    cases = {
        "draw: a Problem is not allowed; give what problem.draw(seed) returns": ((problem(),), {}),
        "descent: a dict is not allowed; give a Descent": ((draw, {"steps": 3}), {}),
        "trackers: Loss is no tracker; give objects such as Loss()": ((draw, gr.Descent(), [Loss]), {}),
        "trackers: a Loss is not allowed; give a list of trackers": ((draw, gr.Descent(), Loss()), {}),
        "trackers: Loss has the schedule 5; give Every, Logarithmic or At": ((draw, gr.Descent(), [Loss(5)]), {}),
        "test: d, dtype and device are (21, ": ((draw, gr.Descent(), []), {"test": other}),
        "descent.batch: 31 is not allowed; give a number of at most n = 30": ((draw, gr.Descent(batch=31)), {}),
        "checkpoint: '": ((draw, gr.Descent()), {"checkpoint": tmp_path}),
        "checkpoint: the folder of '": ((draw, gr.Descent()), {"checkpoint": tmp_path / "no" / "file"}),
    }
    for message, (arguments, named) in cases.items():
        with pytest.raises(gr.InputError) as caught:
            gr.train(*arguments, **named)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_rows_of_zeros_have_no_direction() -> None:
    weights = torch.randn(25, 20, dtype=torch.float64)
    weights[3] = 0.0
    draw = gr.Problem(
        inputs=gr.SpikedGaussian(n=30, d=20), network=gr.TwoLayer(m=25, inner="given", weights=weights)
    ).draw(0)
    with pytest.raises(gr.InputError, match="row 3 of the inner weights is zero and has no direction"):
        gr.train(draw, gr.Descent(steps=1))
    assert gr.train(draw, gr.Descent(steps=1, parametrisation="plain")).status == "ok"
