"""Figure 2: ReLU against smooth activations: it enlarges the remainder, and so hides the residue spike."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.report.claims import Claim
from gradrank.report.figures import spectrum_panel, styled
from gradrank.reproduce.low_rank.problems import PAPER, size_of, sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error, two_errors

ACTIVATIONS = ["relu", "elu", "swish", "softplus"]
MEASURED = {"relu": (2.42, 0.24), "elu": (19.8, 2.2), "swish": (8.8, 0.6), "softplus": (17.7, 4.7)}  # paper's size


def cell(size: list[int], activation: str, seed: int) -> dict[str, object]:
    """Return all singular values of one gradient and the norms of residue spike and remainder."""
    parts = decompose(synthetic(size, nu=0.125, alpha=5 / 9, activation=activation).draw(seed))
    return {
        "singular_value": torch.linalg.svdvals(parts.gradient.dense()),
        "residue_spike": parts["residue_spike"].norm(),
        "remainder": parts["remainder"].norm(),
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over activations."""
    size = sizes(quick)
    return {
        "spectra": Experiment(
            name="fig2",
            function="gradrank.reproduce.low_rank.fig2:cell",
            grid={"activation": ACTIVATIONS},
            seeds=list(range(10)),
            outputs={"singular_value": ["index"], "residue_spike": [], "remainder": []},
            coordinates={"index": list(range(1, min(size[1:]) + 1))},
            fixed={"size": size},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the spectrum of each activation for the first seed."""
    one = data["spectra"].isel(seed=0)

    def panels() -> Figure:
        figure = Figure(figsize=(8.6, 2.4), layout="constrained")
        grid = figure.subplots(1, len(ACTIVATIONS), sharey=True)
        for axes, activation in zip(grid, ACTIVATIONS, strict=True):
            chosen = one.sel(activation=activation)
            values = chosen["singular_value"].values / float(chosen["remainder"])
            spectrum_panel(axes, values)
            ratio = float(chosen["residue_spike"] / chosen["remainder"])
            axes.axvline(ratio, color="0.0", linestyle="--", label="‖S₁‖/‖E‖")
            axes.set_title(activation, loc="left")
        grid[0].set_ylabel("count")
        grid[0].legend(loc="upper left", fontsize=7)
        figure.supxlabel("singular value / ‖E‖", fontsize=9)
        return figure

    caption = "Singular values over the norm of the remainder, ν = 1/8, α = 5/9, NTK, MSE, one seed; dashed: ‖S₁‖/‖E‖."
    return {"fig2": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim that ‖S₁‖/‖E‖ is several times smaller for ReLU than for each smooth activation."""
    one = data["spectra"]
    ratio = one["residue_spike"] / one["remainder"]
    found = []
    for smooth in ACTIVATIONS[1:]:
        mean, error = mean_and_error(ratio.sel(activation=smooth) / ratio.sel(activation="relu"))
        found.append(Claim(f"‖S₁‖/‖E‖ of {smooth} over that of ReLU", f"{LRG}, figure 2", mean, error, 2.0, ">"))
    if size_of(one) == PAPER:
        for activation, (expected, scatter) in MEASURED.items():
            mean, error = mean_and_error(ratio.sel(activation=activation))
            source = f"{LRG}, figure 2; value measured with this library"
            found.append(
                Claim(
                    f"‖S₁‖/‖E‖, {activation}",
                    source,
                    mean,
                    error,
                    expected,
                    "=",
                    two_errors(scatter, error, ratio.sizes["seed"]),
                )
            )
    return found


FIG2 = Reproduction(
    name="fig2",
    title="Figure 2: ReLU against smooth activations",
    shows="‖S₁‖/‖E‖ is several times smaller for ReLU than for ELU, Swish and Softplus",
    cost="6 s | 15 s",
    setting="ν = 1/8, α = 5/9, NTK scaling, MSE, triple-index targets, W uniform on the sphere, ten seeds.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
