"""Regularisers in training (ours): how each moves the parts' shares of the gradient over 200 steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow.training.descent import Descent, train
from gradrank.flow.training.schedule import At
from gradrank.flow.training.trackers import Loss, Parts
from gradrank.problem.regularisers import Regularisers
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.low_rank.problems import sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error, means

STEPS = 200
LOOKED_AT = [0, 1, 2, 5, 10, 20, 50, 100, 150, 200]
PARTS = [
    "residue_spike",
    "interpolant",
    "data_spike",
    "jacobian_spike",
    "jacobian_remainder",
    "weight_decay",
    "remainder",
]
CASES: dict[
    str, Callable[[int], Regularisers]
] = {  # for m neurons; the step is η = m, so that weight decay has ηλ = 0.1
    "none": lambda _: Regularisers(),
    "input noise, τ² = 1": lambda _: Regularisers(input_noise=1.0),
    "weight decay, λ = 0.1/m": lambda m: Regularisers(weight_decay=0.1 / m),
    "Jacobian, λ = 10": lambda _: Regularisers(jacobian=10.0),
}


def cell(size: list[int], case: str, seed: int) -> dict[str, object]:
    """Return the parts' shares of ‖G‖_F² and the loss along plain gradient descent."""
    plain = synthetic(size, nu=0.3, activation="tanh", scaling="mf")
    problem = plain.model_copy(update={"regularisers": CASES[case](size[2])})
    descent = Descent(steps=STEPS, parametrisation="plain")
    schedule = At(LOOKED_AT)
    run = train(problem.draw(seed), descent, [Parts(centring="empirical", schedule=schedule), Loss(schedule=schedule)])
    missing = np.full(len(LOOKED_AT), np.nan)
    names = [f"share_{part}" for part in PARTS]
    shares = [run.values(name) if name in run.names else missing for name in names]
    return {"share": np.stack(shares, axis=1), "loss": run.values("loss")}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return one run for each regulariser and seed."""
    return {
        "training": Experiment(
            name="regularisers",
            function="gradrank.reproduce.low_rank.regularisers:cell",
            grid={"case": list(CASES)},
            seeds=[0, 1, 2] if quick else list(range(6)),
            outputs={"share": ["step", "part"], "loss": ["step"]},
            coordinates={"step": LOOKED_AT, "part": PARTS},
            fixed={"size": sizes(quick)},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the shares against the step, a panel for each regulariser."""
    one = data["training"]

    def panels() -> Figure:
        figure = Figure(figsize=(9.2, 2.9), layout="constrained")
        for axes, case in zip(figure.subplots(1, len(CASES), sharey=True), CASES, strict=True):
            shares = one["share"].sel(case=case)
            there = [part for part in PARTS if bool(shares.sel(part=part).notnull().any())]
            x = np.array(LOOKED_AT) + 1.0
            curves = [Series(part.replace("_", " "), x, *means(shares.sel(part=part))) for part in there]
            series_panel(axes, curves, "step + 1", "share of ‖G‖²" if case == "none" else "", log_x=True, legend=False)
            axes.legend(fontsize=6)
            axes.set_title(case, loc="left", fontsize=8)
        return figure

    caption = "Shares ⟨part, G⟩/‖G‖² of the parts along training, which add to one; mean and standard error over seeds."
    return {"regularisers": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim that the shares add to one, what penalty and decay do to those of the spikes, and that all cases learn."""
    one = data["training"]
    share, here = one["share"], "measured here"
    none, _, decay, jacobian = CASES
    total = float(np.abs(share.sum("part") - 1.0).max())
    drowned = share.sel(step=0, case=jacobian, part="residue_spike")
    late = share.sel(step=[step for step in LOOKED_AT if step >= 50], part="data_spike").mean("step")
    kept = late.sel(case=decay) - late.sel(case=none)
    end = share.sel(step=STEPS, case=none, part="residue_spike")
    found = [
        Claim("largest deviation of the shares' sum from one", here, total, np.nan, 1e-9, "<"),
        Claim("Jacobian penalty: share of S₁ at step 0", f"{LRG}, section 4", *mean_and_error(drowned), 0.1, "<"),
        Claim("share of S₂ from step 50: with weight decay less without", here, *mean_and_error(kept), 0.2, ">"),
        Claim(f"no regulariser: share of S₁ at step {STEPS}", here, *mean_and_error(end), 0.5, ">"),
    ]
    fall = one["loss"].sel(step=STEPS) / one["loss"].sel(step=0)
    for case in CASES:
        text = f"loss at step {STEPS} over step 0, {case}"
        found.append(Claim(text, here, *mean_and_error(fall.sel(case=case)), 1.0, "<"))
    return found


REGULARISERS = Reproduction(
    name="regularisers",
    title="Regularisers along training",
    shows="how noise, weight decay and a Jacobian penalty move the parts' shares of the gradient over 200 steps",
    cost="20 s | 3 min",
    setting="ν = 0.3, α = 0, MF scaling, Tanh, MSE, triple-index targets, plain gradient descent, η = 1/γ. The parts are those of "
    "`decompose` with the present weights and the empirical mean of σ′, since trained weights are not those that μ is for. Late "
    "shares can exceed one: S₁ and the remainder are then large and cancel.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
