"""Figure 6: the gradient follows the residue for a small spike, q for a large one, and passes from one to the other in between."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow.training.descent import Descent, train
from gradrank.flow.training.trackers import Alignments, Loss
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.problems import sizes, synthetic
from gradrank.reproduce.reproduction import LRG, Data, Plot, Reproduction
from gradrank.reproduce.statistics import mean_and_error

STEPS = 80
NUS = [0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.625, 0.75]


def cell(size: list[int], nu: float, seed: int) -> dict[str, object]:
    """Return the loss and the alignments of u₁ with the residue and with q at every step."""
    draw = synthetic(size, nu=nu, activation="tanh", scaling="mf").draw(seed)
    run = train(draw, Descent(steps=STEPS), [Alignments(), Loss()])
    return {
        "residue": run.values("alignment_bulk_residue"),
        "spike": run.values("alignment_q"),
        "loss": run.values("loss"),
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over ν."""
    return {
        "training": Experiment(
            name="fig6",
            function="gradrank.reproduce.fig6:cell",
            grid={"nu": NUS},
            seeds=[0, 1, 2] if quick else list(range(6)),
            outputs={"residue": ["step"], "spike": ["step"], "loss": ["step"]},
            coordinates={"step": list(range(STEPS + 1))},
            fixed={"size": sizes(quick)},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw both alignments over ν and step, as grey maps, and the losses."""
    one = data["training"].mean("seed")

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for axes, name, label in ((left, "residue", "|⟨u₁, X_Bᵀr⟩|"), (middle, "spike", "|⟨u₁, q⟩|")):
            table = one[name].transpose("nu", "step").values
            image = axes.imshow(
                table, origin="lower", aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest"
            )
            axes.set_yticks(range(len(NUS)), [f"{nu:g}" for nu in NUS])
            axes.set_xlabel("step")
            axes.set_ylabel("ν")
            axes.set_title(label, loc="left")
        figure.colorbar(image, ax=middle)
        for nu, style in zip((0.0, 0.25, 0.5, 0.75), ("-", "--", "-.", ":"), strict=True):
            loss = one["loss"].sel(nu=nu).values
            right.plot(loss / loss[0], style, color="0.0", label=f"ν = {nu:g}")
        right.set_xlabel("step")
        right.set_title("loss over that at step 0", loc="left")
        right.legend()
        return figure

    caption = "Alignment of u₁(G_t) with the residue and with the spike, and the loss, against ν and the step; mean over seeds."
    return {"fig6": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim who is followed for small, intermediate and large ν."""
    one, source = data["training"], f"{LRG}, figure 6"
    found = [
        Claim("|⟨u₁, X_Bᵀr⟩| at step 0, ν = 0", source, *mean_and_error(one["residue"].sel(nu=0.0, step=0)), 0.95, ">")
    ]
    for nu in (0.5, 0.625, 0.75):
        late = one["spike"].sel(nu=nu, step=slice(STEPS - 20, STEPS)).mean("step")
        found.append(Claim(f"|⟨u₁, q⟩| over the last 20 steps, ν = {nu:g}", source, *mean_and_error(late), 0.95, ">"))
    middle = one.sel(nu=[0.2, 0.25, 0.3, 0.4]).mean("nu")
    gained = middle["spike"].sel(step=STEPS) - middle["spike"].sel(step=0)
    found.append(
        Claim("gain of |⟨u₁, q⟩| in training, mean over ν = 0.2 … 0.4", source, *mean_and_error(gained), 0.1, ">")
    )
    lost = middle["residue"].sel(step=STEPS) - middle["residue"].sel(step=0)
    found.append(Claim("change of |⟨u₁, X_Bᵀr⟩| in training, the same", source, *mean_and_error(lost), 0.0, "<"))
    rise = (one["loss"].diff("step") / one["loss"].isel(step=0)).sel(nu=[0.0, 0.1, 0.2]).max(["step", "nu"])
    found.append(
        Claim("largest rise of the loss in a step, over its start, ν ≤ 0.2", source, *mean_and_error(rise), 0.02, "<")
    )
    return found


FIG6 = Reproduction(
    name="fig6",
    title="Figure 6: transition with the size of the spike and with training",
    shows="small ν follows the residue, ν ≥ ½ follows q; in between the gradient turns to q while the loss stays smooth",
    cost="25 s | 4 min",
    setting="MF scaling, Tanh, MSE, α = 0, triple-index targets, gradient descent with weight normalisation, η = 1/γ. For larger ν "
    "this step is beyond what is stable along q: the loss swings in the first steps, and u₁ with it.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
