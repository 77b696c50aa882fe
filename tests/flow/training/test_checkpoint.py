"""A run that was interrupted ends with the same bits; a file of another run is refused."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

import gradrank as gr
from gradrank.flow.training.schedule import At, Every
from gradrank.flow.training.state import State
from gradrank.flow.training.trackers import Alignments, Loss, Parts, TopSingularValues, Weights

TRACKERS = [Loss(), TopSingularValues(2), Alignments(schedule=Every(4)), Parts(schedule=Every(7)), Weights(At([17]))]
DESCENTS = {
    "whole": {},
    "momentum": {"momentum": 0.8, "rate": 2.0},
    "batches": {"batch": 16, "momentum": 0.3},
    "plain": {"parametrisation": "plain", "rate": 0.3},
}


class Interruption(Exception):  # noqa: N818
    pass


class Interrupting:
    """Stops the process, as it were, at one step."""

    schedule = Every(1)
    dims: ClassVar = {}
    at: ClassVar[int | None] = None

    def record(self, state: State) -> dict:
        if state.step == self.at:
            raise Interruption
        return {"step_seen": state.step}


def problem(dtype: str = "float64", **network) -> gr.Problem:
    return gr.Problem(
        inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=100, **network), dtype=dtype, targets="single-index"
    )


def interrupted(path: Path, draw: gr.Draw, descent: gr.Descent, step: int) -> None:
    Interrupting.at = step
    try:
        with pytest.raises(Interruption):
            gr.train(draw, descent, [*TRACKERS, Interrupting()], checkpoint=path)
    finally:
        Interrupting.at = None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", DESCENTS)
def test_resumed_runs_have_the_same_bits(tmp_path: Path, case: str, dtype: str) -> None:
    draw, descent = problem(dtype).draw(0), gr.Descent(steps=25, **DESCENTS[case])
    whole = gr.train(draw, descent, [*TRACKERS, Interrupting()])
    path = tmp_path / "run.checkpoint"
    interrupted(path, draw, descent, 13)
    interrupted(path, problem(dtype).draw(0), descent, 24)
    assert torch.load(path, weights_only=True)["step"] == 20
    resumed = gr.train(problem(dtype).draw(0), descent, [*TRACKERS, Interrupting()], checkpoint=path)
    assert torch.equal(resumed.final.network.W, whole.final.network.W)
    assert resumed.names == whole.names
    for name in whole.names:
        assert resumed.steps(name).tolist() == whole.steps(name).tolist()
        assert resumed.values(name).dtype == whole.values(name).dtype
        assert resumed.values(name).tobytes() == whole.values(name).tobytes(), name
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_a_finished_run_is_returned_at_once(tmp_path: Path) -> None:
    draw, path = problem().draw(0), tmp_path / "run"
    first = gr.train(draw, gr.Descent(steps=12), TRACKERS[:2], checkpoint=path)
    changed = path.stat().st_mtime_ns
    again = gr.train(draw, gr.Descent(steps=12), TRACKERS[:2], checkpoint=str(path))
    assert path.stat().st_mtime_ns == changed
    assert torch.equal(again.final.network.W, first.final.network.W)
    assert np.array_equal(again.values("singular_values"), first.values("singular_values"))
    assert again.status == "ok"


def test_checkpoints_of_another_run_are_refused(tmp_path: Path) -> None:
    draw, descent, path = problem().draw(0), gr.Descent(steps=3), tmp_path / "run"
    trackers = [Loss(), Alignments({"mine": torch.ones(80)})]
    gr.train(draw, descent, trackers, checkpoint=path)
    noisy = replace(draw, regularisers=gr.Regularisers(weight_decay=0.1))
    others = {
        "descent.steps: 3 there, 4 here": (draw, gr.Descent(steps=4), trackers),
        "descent.momentum: 0.0 there, 0.5 here": (draw, gr.Descent(steps=3, momentum=0.5), trackers),
        "draw.seed: 0 there, 1 here": (problem().draw(1), descent, trackers),
        "draw.dtype: float64 there, float32 here": (problem("float32").draw(0), descent, trackers),
        "draw.gamma: 0.1 there, 0.01 here": (problem(scaling="mf").draw(0), descent, trackers),
        "draw.activation: sigmoid": (problem(activation="tanh").draw(0), descent, trackers),
        "draw.regularisers: weight_decay=0.0": (noisy, descent, trackers),
        "draw.y: float64[60]": (replace(draw, y=draw.y + 1), descent, trackers),
        "trackers: 2 there, 1 here": (draw, descent, trackers[:1]),
        "trackers.1: Alignments(": (draw, descent, [Loss(), Alignments({"mine": torch.zeros(80)})]),
    }
    for message, arguments in others.items():
        with pytest.raises(gr.InputError) as caught:
            gr.train(*arguments, checkpoint=path)
        assert f"is of another specification ({message}" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(gr.InputError, match=r"\(test\.shape: nothing there"):
        gr.train(draw, descent, trackers, test=draw, checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 broken", None])
def test_files_that_are_no_checkpoint_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "file"
    if content is None:
        torch.save({"weights": torch.ones(2)}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(gr.InputError, match="is no checkpoint of a run; give another file"):
        gr.train(problem().draw(0), gr.Descent(steps=1), checkpoint=path)
    assert content is None or path.read_bytes() == content


def test_a_failed_write_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, descent, path = problem().draw(0), gr.Descent(steps=25), tmp_path / "run"
    interrupted(path, draw, descent, 13)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(gr.GradrankError, match=r"checkpoint: .* cannot be written \(No space left on device\)"):
        gr.train(draw, descent, [*TRACKERS, Interrupting()], checkpoint=path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


KILLED = """
import os, signal, sys
import gradrank as gr
from gradrank.flow.training import checkpoint
import torch
class Saves:
    count = 0
def save(body, file):
    Saves.count += 1
    if Saves.count == 2:
        file.write(b"half of it")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    original(body, file)
original, torch.save = torch.save, save
draw = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=100)).draw(0)
gr.train(draw, gr.Descent(steps=25), checkpoint=sys.argv[1])
"""


def test_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    draw = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=100)).draw(0)
    assert torch.load(path, weights_only=True)["step"] == 10
    resumed = gr.train(draw, gr.Descent(steps=25), checkpoint=path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    assert torch.equal(resumed.final.network.W, gr.train(draw, gr.Descent(steps=25)).final.network.W)
