"""Figure 6: the gradient follows the residue for a small spike, q for a large one, and passes from one to the other in between.

The paper's step is 1/γ. A tenth of it is ours: it tells what belongs to the spike from what belongs to the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow.training.descent import Descent, train
from gradrank.flow.training.trackers import Alignments, Loss
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.low_rank.problems import sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error

STEPS = 80
NUS = [0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.625, 0.75]
QUICK_NUS = [0.0, 0.2, 0.3, 0.5, 0.75]
LABELS = {"residue": "$|\\langle u_1, X_B^T r\\rangle|$", "spike": "$|\\langle u_1, q\\rangle|$"}
STEP_SIZES = {"η = 1/γ": 1.0, "η = 0.1/γ": 0.1}


def cell(size: list[int], nu: float, step_size: str, seed: int) -> dict[str, object]:
    """Return the loss and the alignments of u₁ with the residue and with q at every step."""
    draw = synthetic(size, nu=nu, activation="tanh", scaling="mf").draw(seed)
    rate = STEP_SIZES[step_size] / draw.network.gamma
    run = train(draw, Descent(steps=STEPS, rate=rate), [Alignments(), Loss()])
    return {
        "residue": run.values("alignment_bulk_residue"),
        "spike": run.values("alignment_q"),
        "loss": run.values("loss"),
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over ν and the size of the steps."""
    return {
        "training": Experiment(
            name="fig6",
            function="gradrank.reproduce.low_rank.fig6:cell",
            grid={"nu": QUICK_NUS if quick else NUS, "step_size": list(STEP_SIZES)},
            seeds=[0, 1, 2] if quick else list(range(6)),
            outputs={"residue": ["step"], "spike": ["step"], "loss": ["step"]},
            coordinates={"step": list(range(STEPS + 1))},
            fixed={"size": sizes(quick)},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw both alignments over ν and step, as grey maps, and the losses."""
    one = data["training"].mean("seed")
    nus = one["nu"].values

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        grid = figure.subplots(2, 3, sharex=True)
        for row, step_size in zip(grid, STEP_SIZES, strict=True):
            chosen = one.sel(step_size=step_size)
            for axes, (name, label) in zip(row, LABELS.items(), strict=False):
                table = chosen[name].transpose("nu", "step").values
                image = axes.imshow(
                    table, origin="lower", aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest"
                )
                axes.set_yticks(range(len(nus)), [f"{nu:g}" for nu in nus])
                axes.set_ylabel("ν")
                axes.set_title(f"{label}, {step_size}", loc="left")
            figure.colorbar(image, ax=row[1])
            for nu, style in zip((0.0, 0.3, 0.5, 0.75), ("-", "--", "-.", ":"), strict=True):
                loss = chosen["loss"].sel(nu=nu).values
                row[2].plot(loss / loss[0], style, color="0.0", label=f"ν = {nu:g}")
            row[2].set_title("loss over that at step 0", loc="left")
        for axes in grid[1]:
            axes.set_xlabel("step")
        grid[0, 2].legend(ncols=2, loc=(0.28, 0.36))
        return figure

    caption = "Alignment of u₁(G_t) with the residue and with the spike, and the loss, against ν and the step; mean over seeds."
    return {"fig6": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim who is followed for small, intermediate and large ν."""
    both, source = data["training"], f"{LRG}, figure 6"
    nus = [float(nu) for nu in both["nu"].values]
    one, small = (both.sel(step_size=step_size) for step_size in STEP_SIZES)
    found = [
        Claim("|⟨u₁, X_Bᵀr⟩| at step 0, ν = 0", source, *mean_and_error(one["residue"].sel(nu=0.0, step=0)), 0.95, ">")
    ]
    found.append(_follows(one, 0.5, "η = 1/γ", source))
    found += [_follows(small, nu, "η = 0.1/γ", f"{source}, with a smaller step") for nu in nus if nu >= 0.5]
    between = [nu for nu in nus if 0.2 <= nu <= 0.4]
    middle = one.sel(nu=between).mean("nu")
    gained = middle["spike"].sel(step=STEPS) - middle["spike"].sel(step=0)
    found.append(
        Claim("gain of |⟨u₁, q⟩| in training, mean over ν = 0.2 … 0.4", source, *mean_and_error(gained), 0.1, ">")
    )
    lost = middle["residue"].sel(step=STEPS) - middle["residue"].sel(step=0)
    found.append(Claim("change of |⟨u₁, X_Bᵀr⟩| in training, the same", source, *mean_and_error(lost), 0.0, "<"))
    rise = (one["loss"].diff("step") / one["loss"].isel(step=0)).sel(nu=[nu for nu in nus if nu <= 0.2])
    text = "largest rise of the loss in a step, over its start, ν ≤ 0.2"
    found.append(Claim(text, source, *mean_and_error(rise.max(["step", "nu"])), 0.02, "<"))
    return found


def _follows(one: xarray.Dataset, nu: float, step_size: str, source: str) -> Claim:
    late = one["spike"].sel(nu=nu, step=slice(STEPS - 20, STEPS)).mean("step")
    return Claim(f"|⟨u₁, q⟩| over the last 20 steps, ν = {nu:g}, {step_size}", source, *mean_and_error(late), 0.95, ">")


FIG6 = Reproduction(
    name="fig6",
    title="Figure 6: transition with the size of the spike and with training",
    shows="small ν follows the residue, ν ≥ ½ follows q; in between the gradient turns to q while the loss stays smooth",
    cost="30 s | 12 min",
    setting="MF scaling, Tanh, MSE, α = 0, triple-index targets, gradient descent with weight normalisation, η = 1/γ, and a tenth "
    "of it. With η = 1/γ and ν above ½ the first step can throw the rows of W onto ±q, where tanh saturates and μ vanishes "
    "(assumption 4.3 fails): the loss stands still, and u₁ leaves q at some steps. With the smaller step u₁ keeps to q; but then "
    "it does not turn to q for ν = 0.2 … 0.4 either: that turn belongs to the large step.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
