"""Training with the top 2 singular triplets at every step, against bare training and a full SVD at every step."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import pytest
import torch

import gradrank as gr
from gradrank.flow.training.schedule import ALWAYS
from gradrank.flow.training.state import State
from gradrank.flow.training.trackers import TopSingularValues

STEPS, NAIVE_STEPS, ROUNDS = 30, 2, 5
SECTION = "Training, (750, 1000, 1250) float64"
CASES = {
    "NTK, sigmoid, ν = 0.3": (0.3, {"scaling": "ntk"}),
    "NTK, sigmoid, ν = 0 (σ₂ at the bulk's edge)": (0.0, {"scaling": "ntk"}),
    "MF, tanh, ν = 0.3": (0.3, {"scaling": "mf", "activation": "tanh"}),
}


class FullDecomposition:
    """The top 2 as a notebook has them: `torch.linalg.svd` of every gradient."""

    schedule = ALWAYS
    dims = {"singular_values": ("index",)}  # noqa: RUF012

    def record(self, state: State) -> dict[str, torch.Tensor]:
        return {"singular_values": torch.linalg.svd(state.gradient, full_matrices=False)[1][:2]}


@pytest.mark.parametrize("name", CASES)
def test_tracked_training(clock: Callable, ledger, name: str) -> None:
    """Time bare and tracked runs in turn, so that a busy spell of the machine falls on both."""
    nu, network = CASES[name]
    draw = gr.Problem(inputs=gr.SpikedGaussian(nu=nu), network=gr.TwoLayer(**network)).draw(0)
    descent, bare = gr.Descent(steps=STEPS), []

    def bare_run() -> tuple[tuple, dict]:
        begin = perf_counter()
        gr.train(draw, descent)
        bare.append((perf_counter() - begin) / STEPS)
        return (), {}

    run = clock(
        f"tracked {name}", lambda: gr.train(draw, descent, [TopSingularValues(2)]), setup=bare_run, rounds=ROUNDS
    )
    tracked, alone = ledger.seconds[f"tracked {name}"] / STEPS, median(bare)
    ledger.row(
        SECTION,
        f"top 2 with vectors at every step over bare training, {name}",
        f"{tracked / alone:.2f} × ({1e3 * tracked:.0f} ms a step)",
        "at most 1.25 ×",
    )
    begin = perf_counter()
    exact = gr.train(draw, gr.Descent(steps=NAIVE_STEPS), [FullDecomposition()])
    naive = (perf_counter() - begin) / (NAIVE_STEPS + 1)
    ledger.row(SECTION, f"a full SVD at every step over tracked training, {name}", f"{naive / tracked:.1f} ×")
    values, reference = run.values("singular_values")[: NAIVE_STEPS + 1], exact.values("singular_values")
    ledger.row(
        SECTION,
        f"largest relative error of the top 2, {name}",
        f"{abs(values / reference - 1).max():.1e}",
        "at most 1e-06",
    )
