"""Symmetries of the target are kept by the dynamics: exactly by closed sets of neurons, to 1/√m by independent ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from gradrank.experiments.experiment import Experiment
from gradrank.flow import NetworkTarget, check_symmetry, initial_particles, particle_flow, symmetry_error
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import HAJJAR
from gradrank.reproduce.statistics import means, slope
from gradrank.reproduce.symmetry.width_panel import width_panel

D = 5
WIDTHS = [60, 120, 240, 480]
TIMES = [0.0, 0.5, 1.0, 2.0, 3.0, 4.0]
STARTS = ["independent", "closed"]


def cell(start: str, m: int, seed: int) -> dict[str, object]:
    """Return root mean square and largest f − f∘T over points, the largest |f|, and the loss, T the cyclic shift."""
    shift = np.roll(np.eye(D), 1, axis=0)
    target = NetworkTarget(np.ones(D), np.eye(D))
    check_symmetry(target, shift, D)
    group = [(1.0, np.linalg.matrix_power(shift, k)) for k in range(D)] if start == "closed" else ()
    flow = particle_flow(target, initial_particles(m, D, seed=seed, group=group), TIMES)
    error = symmetry_error(flow, shift)
    return {"gap": error.root_mean_square, "largest": error.largest, "size": error.size, "loss": flow.loss}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over the start and the number of neurons."""
    names = ["gap", "largest", "size", "loss"]
    return {
        "flows": Experiment(
            "symmetry-preserved",
            "gradrank.reproduce.symmetry.preserved:cell",
            {"start": STARTS, "m": WIDTHS[:3] if quick else WIDTHS},
            list(range(8 if quick else 24)),
            {name: ["time"] for name in names},
            {"time": TIMES},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the gap against time and against m."""
    one = data["flows"]
    widths = one["m"].values

    def panels() -> Figure:
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        for m, grey in zip(widths, np.linspace(0.65, 0.0, len(widths)), strict=True):
            mean, error = means(one["gap"].sel(start="independent", m=m).transpose("time", "seed"))
            left.errorbar(TIMES, mean, yerr=error, color=str(grey), marker="o", markersize=3, label=f"m = {m}")
        left.set(xlabel="t", ylabel="$‖f_t − f_t∘T‖$", ylim=(0, None))
        left.legend()
        closed = np.maximum(one["largest"].sel(start="closed", time=2.0).max("seed").values, 1e-17)
        right.plot(widths, closed, "s", color="0.45", markersize=4, label="closed under T: largest")
        width_panel(right, one["gap"].sel(start="independent", time=2.0), "independent, t = 2")
        right.yaxis.set_major_locator(LogLocator())
        return figure

    caption = (
        "How far f_t is from its image under the cyclic shift T, f* = Σ relu(x_i), d = 5; means and standard errors."
    )
    return {"symmetry-preserved": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim exactness for closed sets, and the rate for independent neurons."""
    one = data["flows"]
    widths = one["m"].values.astype(float)
    gap = one["gap"].sel(start="independent", time=2.0)
    rate, error = slope(np.log(widths), gap.copy(data=np.log(gap.values)), "m")
    worst = float((one["largest"].sel(start="closed") / one["size"].sel(start="closed").clip(min=1.0)).max())
    fall = float((one["loss"].sel(start="closed", time=4.0) / one["loss"].sel(start="closed", time=0.0)).max())
    return [
        Claim("closed set: largest |f − f∘T| over the largest |f|, all times", HAJJAR, worst, float("nan"), 1e-12, "<"),
        Claim("closed set: largest loss at t = 4 over t = 0", HAJJAR, fall, float("nan"), 0.2, "<"),
        Claim("independent: exponent of m in ‖f − f∘T‖ at t = 2", HAJJAR, rate, error, -0.5, "=", 0.1),
    ]


PRESERVED = Reproduction(
    name="symmetry-preserved",
    title="Symmetries are kept by the dynamics",
    shows="distance of f_t from its image under a symmetry of the target, against time and number of neurons",
    cost="20 s | 3 min",
    setting="Population risk for Gaussian inputs, closed ReLU expectations, d = 5, f* = Σ relu(x_i), which the "
    "cyclic shift of coordinates leaves alone; a = ±1, b uniform on the unit sphere, independent, or five "
    "rotated copies of each neuron.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
