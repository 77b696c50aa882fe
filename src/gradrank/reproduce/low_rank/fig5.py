"""Figure 5: the direction of the gradient along training: stable under mean-field scaling, lost within ten steps under NTK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow.training.descent import Descent, train
from gradrank.flow.training.principal_angles import mean_principal_angle
from gradrank.flow.training.schedule import At
from gradrank.flow.training.trackers import Alignments, Loss, Weights
from gradrank.problem.targets import MultiIndex
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.low_rank.problems import sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error, means

STEPS = 100
SCALINGS = ["ntk", "mf"]
COMPARED = [5, 10, 100]  # steps at which the two trained networks are compared
ANGLES = {5: 3.0, 10: 4.6, 100: 11.0}  # degrees, at (300, 400, 500), ± 0.5


def cell(size: list[int], seed: int) -> dict[str, object]:
    """Return alignments with u₁(G₀) and losses of both scalings, and the angles between the two networks."""
    target = MultiIndex(links=("sigmoid",), on="bulk")
    alignment, loss, weights = [], [], []
    for scaling in SCALINGS:
        draw = synthetic(size, scaling=scaling, targets=target).draw(seed)
        run = train(draw, Descent(steps=STEPS), [Alignments(), Loss(), Weights(schedule=At(COMPARED))])
        alignment.append(run.values("alignment_start"))
        loss.append(run.values("loss"))
        weights.append(run.values("weights"))
    angles = [mean_principal_angle(first, second) for first, second in zip(*weights, strict=True)]
    return {"alignment": np.stack(alignment), "loss": np.stack(loss), "angle": np.array(angles)}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return three seeds; a cell trains both scalings from the same start."""
    return {
        "training": Experiment(
            name="fig5",
            function="gradrank.reproduce.low_rank.fig5:cell",
            grid={},
            seeds=[0, 1, 2],
            outputs={"alignment": ["scaling", "step"], "loss": ["scaling", "step"], "angle": ["compared"]},
            coordinates={"scaling": SCALINGS, "step": list(range(STEPS + 1)), "compared": COMPARED},
            fixed={"size": sizes(quick)},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw alignment, loss and angle against the step."""
    one = data["training"]

    def panels() -> Figure:
        figure = Figure(figsize=(8.8, 2.6), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        x = one["step"].values
        for axes, name, label in ((left, "alignment", "|⟨u₁(G₀), u₁(G_t)⟩|"), (middle, "loss", "loss")):
            curves = [Series(s.upper(), x, means(one[name].sel(scaling=s))[0], markers=False) for s in SCALINGS]
            series_panel(axes, curves, "step", label)
        series_panel(
            right, [Series("", np.array(COMPARED), *means(one["angle"]))], "step", "mean principal angle (degrees)"
        )
        return figure

    caption = "MF and NTK from the same start: u₁ against that of G₀, the loss, and the angle between the two W; mean of 3 seeds."
    return {"fig5": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim that MF keeps its direction, NTK loses it, and the two networks part."""
    one, source = data["training"], f"{LRG}, figure 5"
    alignment = one["alignment"]
    mf, ntk = (alignment.sel(scaling="mf", step=100), alignment.sel(scaling="ntk", step=10))
    found = [
        Claim("MF: |⟨u₁(G₀), u₁(G_t)⟩| at step 100", source, *mean_and_error(mf), 0.9, "=", 0.05),
        Claim("NTK: |⟨u₁(G₀), u₁(G_t)⟩| at step 10", source, *mean_and_error(ntk), 0.2, "<"),
    ]
    quick = one.attrs["specification"].find("[300, 400, 500]") >= 0
    for step in COMPARED if quick else ():
        measured = mean_and_error(one["angle"].sel(compared=step))
        found.append(Claim(f"mean principal angle at step {step}, degrees", source, *measured, ANGLES[step], "=", 0.5))
    growth = one["angle"].sel(compared=100) - one["angle"].sel(compared=5)
    found.append(Claim("growth of the angle from step 5 to 100, degrees", source, *mean_and_error(growth), 2.0, ">"))
    return found


FIG5 = Reproduction(
    name="fig5",
    title="Figure 5: stability of the gradient's direction",
    shows="u₁(G_t) stays near u₁(G₀) under MF for 100 steps, and leaves it within ten under NTK",
    cost="10 s | 1 min",
    setting="ν = α = 0, Sigmoid, MSE, y = sigmoid(ωᵀx_B) + 0.1 ε, gradient descent with weight normalisation, η = 1/γ, both "
    "scalings from the same start. G_t is the gradient before the projection of the normalisation.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
