"""Runs that leave the finite numbers stop, say so, and keep what they have."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

import gradrank as gr
from gradrank.flow.training.parametrisation import parametrisation
from gradrank.flow.training.schedule import Every
from gradrank.flow.training.state import State
from gradrank.flow.training.trackers import Loss, Parts, Regime, TopSingularValues


def draw(dtype: str = "float64", activation: str = "relu") -> gr.Draw:
    return gr.Problem(
        inputs=gr.SpikedGaussian(n=30, d=20), network=gr.TwoLayer(m=25, activation=activation), dtype=dtype
    ).draw(0)


@pytest.mark.parametrize("batch", [None, 10])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_diverging_run_keeps_its_trajectory(tmp_path: Path, dtype: str, batch: int | None) -> None:
    descent = gr.Descent(steps=2000, rate=1e4, parametrisation="plain", batch=batch)
    run = gr.train(draw(dtype), descent, [Loss(), TopSingularValues(1)], checkpoint=tmp_path / "run")
    steps = run.steps("loss")
    assert 0 < len(steps) < 500
    assert steps.tolist() == list(range(len(steps)))
    assert np.isfinite(run.values("loss")).all()
    assert run.values("loss")[-1] > 1e3 * run.values("loss")[0]
    assert run.status.startswith(f"stopped at step {steps[-1] + 1}: ") or run.status.startswith(
        f"stopped at step {steps[-1]}: "
    )
    assert "is not finite; give a smaller rate" in run.status
    assert "\n" not in run.status
    assert bool(torch.isfinite(run.final.network.W).all())
    assert run.last_step == steps[-1]
    assert run.to_xarray().attrs["status"] == run.status
    again = gr.train(draw(dtype), descent, [Loss(), TopSingularValues(1)], checkpoint=tmp_path / "run")
    assert (again.status, again.last_step) == (run.status, run.last_step)
    assert torch.equal(again.final.network.W, run.final.network.W)


def test_lengths_that_overflow_are_no_zero_weights() -> None:
    """‖v‖ overflows long before v: w = s v/‖v‖ would be zero, and the run would go on with nothing."""
    descent = gr.Descent(steps=60, rate=1e50, momentum=0.9)
    weights = parametrisation("weight-normalised", draw().network.W, 0.0)
    weights.step(torch.full((20, 25), 1e160, dtype=torch.float64), 1.0)
    weights.step(torch.randn(20, 25, dtype=torch.float64), 1e160)
    assert not bool(torch.isfinite(weights.W).all())
    run = gr.train(draw(), descent, [Loss()])
    lengths = torch.linalg.vector_norm(run.final.network.W, dim=1)
    torch.testing.assert_close(lengths, torch.linalg.vector_norm(draw().network.W, dim=1))


@pytest.mark.parametrize("tracker", [Parts(), Regime()], ids=["parts", "regime"])
def test_trackers_that_fail_first_end_the_run_and_keep_it(tracker: Parts | Regime) -> None:
    """The variance wᵀΣw of the outputs overflows before the weights do."""
    problem = gr.Problem(
        inputs=gr.SpikedGaussian(n=30, d=20),
        network=gr.TwoLayer(m=25, activation="tanh"),
        regularisers={"weight_decay": 1.0},
    )
    run = gr.train(problem.draw(0), gr.Descent(steps=2000, rate=1e4, parametrisation="plain"), [Loss(), tracker])
    assert run.status.startswith("stopped at step")
    assert run.last_step > 10
    assert len(run.values("loss")) > 10


def test_weight_normalisation_does_not_diverge() -> None:
    assert gr.train(draw(), gr.Descent(steps=50, rate=1e6), [Loss()]).status == "ok"


def test_a_network_that_is_not_finite_at_the_start_is_refused() -> None:
    problem = gr.Problem(
        inputs=gr.SpikedGaussian(n=30, d=20, nu=150.0), network=gr.TwoLayer(m=25, activation="relu"), dtype="float64"
    )
    with pytest.raises(gr.InputError, match="is not finite before the first step; give smaller inputs"):
        gr.train(problem.draw(0), gr.Descent(steps=3))


class Failing:
    schedule = Every(1)
    dims: ClassVar = {}

    def __init__(self, at: int) -> None:
        self.at = at

    def record(self, state: State) -> dict:
        if state.step == self.at:
            raise gr.InputError("cannot go on")
        return {"mine": 1.0}


def test_a_tracker_that_fails_later_stops_the_run() -> None:
    run = gr.train(draw(), gr.Descent(steps=5), [Loss(), Failing(3)])
    assert run.status == "stopped at step 3: Failing fails (cannot go on)"
    assert run.steps("mine").tolist() == [0, 1, 2]
    assert run.steps("loss").tolist() == [0, 1, 2, 3]


def test_a_tracker_that_fails_at_once_is_an_error() -> None:
    with pytest.raises(gr.InputError, match="cannot go on"):
        gr.train(draw(), gr.Descent(steps=5), [Failing(0)])
