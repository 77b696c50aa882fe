"""β table: how the residue's alignment with the spike scores decays with the dimension, in 192 scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.residue_alignment import residue_alignment
from gradrank.gradient.split import spike_split
from gradrank.problem.activations import activation as activation_of
from gradrank.problem.losses import loss as loss_of
from gradrank.problem.network import SCALINGS
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.low_rank.problems import synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG

ACTIVATIONS = ["sigmoid", "tanh", "relu", "elu", "swish", "softplus"]
LOSSES = ["mse", "logistic", "huber", "log-cosh"]
NUS = [0.0, 0.125, 0.3, 0.45]
SIZES = [125, 250, 500, 1000, 2000]
QUICK_SIZES = [64, 128, 256, 512]
SEEDS, QUICK_SEEDS = 200, 40


def cell(d: int, nu: float, seed: int, sizes: list[int]) -> dict[str, object]:
    """Return ln(|zᵀr|/(√n‖r‖)) for every activation, loss and scaling, at one draw of inputs, targets and weights.

    Every size has seeds of its own: draws of two sizes with the same seed would share their random numbers.
    """
    size = [d * 3 // 4, d, d * 5 // 4]
    draw = synthetic(size, nu=nu).draw(seed * len(sizes) + sizes.index(d))
    z, a = spike_split(draw).scores, draw.network.a
    found = np.empty((len(ACTIVATIONS), len(LOSSES), len(SCALINGS)))
    for i, name in enumerate(ACTIVATIONS):
        sums = torch.cat([activation_of(name).value(rows) @ a for rows in draw.row_chunks(draw.preactivations)])
        for j, loss in enumerate(LOSSES):
            for k, scale in enumerate(SCALINGS.values()):
                residue = loss_of(loss).residue(scale(size[2]) * sums, draw.y)
                found[i, j, k] = math.log(residue_alignment(z, residue))
    return {"log_alignment": found}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over d and ν; a cell holds the other 48 scenarios."""
    sizes = QUICK_SIZES if quick else SIZES
    return {
        "alignments": Experiment(
            name="beta-table",
            function="gradrank.reproduce.low_rank.beta_table:cell",
            grid={"d": sizes, "nu": NUS},
            seeds=list(range(QUICK_SEEDS if quick else SEEDS)),
            outputs={"log_alignment": ["activation", "loss", "scaling"]},
            coordinates={"activation": ACTIVATIONS, "loss": LOSSES, "scaling": list(SCALINGS)},
            fixed={"sizes": sizes},
        )
    }


def betas(logs: xarray.DataArray) -> tuple[xarray.DataArray, xarray.DataArray]:
    """Return β = −2 × slope of the mean logarithm on ln d, and its standard error from the scatter of the seeds."""
    x = np.log(logs["d"].values.astype(float))
    weight = xarray.DataArray((x - x.mean()) / float(((x - x.mean()) ** 2).sum()), dims="d", coords={"d": logs["d"]})
    variance = logs.var("seed", ddof=1) / logs.notnull().sum("seed")
    return -2.0 * (weight * logs.mean("seed")).sum("d"), 2.0 * (weight**2 * variance).sum("d") ** 0.5


def draw(data: Data) -> dict[str, Plot]:
    """Draw β of every scenario, a panel for each loss and scaling."""
    beta, error = betas(data["alignments"]["log_alignment"])

    def panels() -> Figure:
        figure = Figure(figsize=(8.8, 4.6), layout="constrained")
        grid = figure.subplots(len(SCALINGS), len(LOSSES), sharex=True, sharey=True, squeeze=False)
        for row, scaling in enumerate(SCALINGS):
            for column, loss in enumerate(LOSSES):
                curves = []
                for index, name in enumerate(ACTIVATIONS):
                    chosen = {"loss": loss, "scaling": scaling, "activation": name}
                    shift = 0.006 * (index - 2.5)
                    curves.append(
                        Series(name, np.array(NUS) + shift, beta.sel(chosen).values, error.sel(chosen).values)
                    )
                axes = grid[row, column]
                series_panel(axes, curves, "", "", legend=row == column == 0)
                axes.set_title(f"{loss}, {scaling.upper()}", loc="left", fontsize=8)
        grid[0, 0].legend(fontsize=6)
        figure.supxlabel("ν", fontsize=9)
        figure.supylabel("β", fontsize=9)
        return figure

    return {
        "beta-table": Plot(styled(panels), "β with standard errors, in 192 scenarios; α = 0, triple-index targets.")
    }


def claims(data: Data) -> Sequence[Claim]:
    """Claim what independent scores would give at ν = 0, and that stronger spikes are followed more closely."""
    logs = data["alignments"]["log_alignment"]
    beta, _ = betas(logs)
    found = []
    source = f"{LRG}, section 2; scores and residue independent at ν = 0 but for terms of order d^(−½)"
    for scaling in SCALINGS:
        means_of_seeds = _over_scenarios(logs, scaling, 0.0)
        found.append(
            Claim(f"mean β of 24 scenarios at ν = 0, {scaling.upper()}", source, *means_of_seeds, 1.0, "=", 0.1)
        )
        change = _over_scenarios(logs, scaling, 0.45)
        drop = means_of_seeds[0] - change[0]
        error = math.hypot(means_of_seeds[1], change[1])
        text = f"mean β at ν = 0 less that at ν = 0.45, {scaling.upper()}"
        found.append(Claim(text, f"{LRG}, section 2: E z r = ζ qᵀv", drop, error, 2 * error, ">"))
    found.append(Claim("scenarios with β ≤ 0", f"{LRG}, section 2", float((beta <= 0).sum()), math.nan, 10, "<"))
    return found


def _over_scenarios(logs: xarray.DataArray, scaling: str, nu: float) -> tuple[float, float]:
    """Return the mean β over activations and losses, whose draws are shared: the error is that of their mean."""
    mean = logs.sel(scaling=scaling, nu=nu).mean(["activation", "loss"])
    beta, error = betas(mean)
    return float(beta), float(error)


BETA_TABLE = Reproduction(
    name="beta-table",
    title="The exponent β in 192 scenarios",
    shows="β of the residue's alignment with the spike scores: 6 activations × 4 losses × 4 ν × 2 scalings",
    cost="25 s | 12 min",
    setting="n, d, m = (¾, 1, 5/4) d, α = 0, triple-index targets; one draw of inputs, targets and weights serves all activations, "
    "losses and scalings. β = −2 × slope of the mean ln(|zᵀr|/(√n‖r‖)) on ln d; a single draw's logarithm scatters by 1.1.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
