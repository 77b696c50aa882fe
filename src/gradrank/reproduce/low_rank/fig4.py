"""Figure 4: mean-field against NTK scaling: the first gradient follows the residue, and only under MF also the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.problem.targets import MultiIndex
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.low_rank.problems import sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error

SCALINGS = ["ntk", "mf"]
DIRECTIONS = {"bulk_residue": "$X_B^T r$", "bulk_labels": "$X_B^T y$", "target_1": "ω"}


def cell(size: list[int], scaling: str, seed: int) -> dict[str, object]:
    """Return |⟨u₁, ·⟩| for the directions of the residue, the labels and the target."""
    target = MultiIndex(links=("sigmoid",))
    problem = synthetic(size, direction="none", activation="relu", scaling=scaling, targets=target)
    found = decompose(problem.draw(seed)).alignments(k=1)
    return {"alignment": [found.left[name][0] for name in DIRECTIONS], "chance": found.chance_left}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return both scalings over many draws."""
    return {
        "draws": Experiment(
            name="fig4",
            function="gradrank.reproduce.low_rank.fig4:cell",
            grid={"scaling": SCALINGS},
            seeds=list(range(100 if quick else 500)),
            outputs={"alignment": ["direction"], "chance": []},
            coordinates={"direction": list(DIRECTIONS)},
            fixed={"size": sizes(quick)},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw means with the quartiles of the draws."""
    one = data["draws"]

    def panel() -> Figure:
        figure = Figure(figsize=(5.2, 3.0))
        axes = figure.subplots()
        for shift, scaling, marker, grey in ((-0.12, "ntk", "o", "0.0"), (0.12, "mf", "s", "0.5")):
            values = one["alignment"].sel(scaling=scaling)
            mean = values.mean("seed").values
            low, high = values.quantile([0.25, 0.75], dim="seed").transpose("quantile", "direction").values
            x = np.arange(len(DIRECTIONS)) + shift
            bars = np.stack([mean - low, high - mean]).clip(min=0.0)
            axes.errorbar(x, mean, yerr=bars, fmt=marker, color=grey, capsize=4, label=scaling.upper())
        chance = float(one["chance"].mean())
        axes.axhline(chance, linestyle=":", color="0.4", label=f"chance ({chance:.3f})")
        axes.set_xticks(range(len(DIRECTIONS)), list(DIRECTIONS.values()))
        axes.set_ylabel("|cosine| with $u_1$")
        axes.set_ylim(0, 1.03)
        axes.legend(loc="lower left")
        return figure

    caption = f"Alignment of u₁ of the first gradient over {one.sizes['seed']} draws: mean, 25 and 75 per cent."
    return {"fig4": Plot(styled(panel), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim that NTK follows the residue and not the labels, and MF both."""
    values = data["draws"]["alignment"]
    found = []
    for scaling, direction, expected, relation in (
        ("ntk", "bulk_residue", 0.98, ">"),
        ("mf", "bulk_residue", 0.98, ">"),
        ("mf", "bulk_labels", 0.98, ">"),
        ("ntk", "bulk_labels", 0.9, "<"),
    ):
        mean, error = mean_and_error(values.sel(scaling=scaling, direction=direction))
        text = f"mean |cosine| of u₁ with {direction.replace('_', ' ')}, {scaling.upper()}"
        found.append(Claim(text, f"{LRG}, figure 4", mean, error, expected, relation))  # type: ignore[arg-type]
    gap = values.sel(direction="target_1", scaling="mf") - values.sel(direction="target_1", scaling="ntk")
    mean, error = mean_and_error(gap)
    found.append(
        Claim(
            "alignment with ω under MF, less that under NTK, of the same draw",
            f"{LRG}, figure 4",
            mean,
            error,
            2 * error,
            ">",
        )
    )
    return found


FIG4 = Reproduction(
    name="fig4",
    title="Figure 4: mean-field and NTK scaling at initialisation",
    shows="the first gradient follows the residue under both scalings, the labels and the target under MF only",
    cost="12 s | 2 min",
    setting="Isotropic inputs without a spike, ReLU, MSE, y = sigmoid(ωᵀx) + 0.1 ε, W uniform on the sphere.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
