"""Scaling laws: slopes of the parts' norms in n, at fixed aspect ratio, against the exponents of the theory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.low_rank.problems import synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import means, slope

PARTS = ["residue_spike", "interpolant", "data_spike", "remainder"]
LABELS = {"residue_spike": "‖S₁‖", "interpolant": "‖S₁₂‖", "data_spike": "‖S₂‖", "remainder": "‖E‖"}
SIZES = [192, 384, 768, 1536]
QUICK_SIZES = [96, 192, 384, 768]
NUS = [0.125, 0.3, 0.45]
ALPHAS = [0.0, 0.5]
ACTIVATIONS = ["sigmoid", "relu"]


def cell(n: int, nu: float, alpha: float, activation: str, seed: int) -> dict[str, object]:
    """Return the norms over γ√m, and √(tr Σ̂/n) with the root mean squares of r and μ, which ‖S₁‖ follows at finite sizes."""
    size = [n, n * 4 // 3, n * 5 // 3]
    problem = synthetic(size, nu=nu, alpha=alpha, activation=activation)
    draw = problem.draw(seed)
    parts = decompose(draw)
    norms = parts.norms()
    unit = problem.network.gamma * size[2] ** 0.5
    spectrum = np.arange(1, size[1] + 1.0) ** -alpha
    factors = draw.residue.square().mean() * parts.mean_derivative.value.square().mean() * spectrum.sum() / n
    return {"norm": [norms[part] / unit for part in PARTS], "expected": factors.sqrt()}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over sizes, ν, α and activations."""
    return {
        "norms": Experiment(
            name="scaling-laws",
            function="gradrank.reproduce.low_rank.scaling_laws:cell",
            grid={"n": QUICK_SIZES if quick else SIZES, "nu": NUS, "alpha": ALPHAS, "activation": ACTIVATIONS},
            seeds=list(range(8 if quick else 20)),
            outputs={"norm": ["part"], "expected": []},
            coordinates={"part": PARTS},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the norms against n, a panel for each ν and α."""
    one = data["norms"]

    def panels(activation: str) -> Figure:
        figure = Figure(figsize=(8.6, 4.6), layout="constrained")
        grid = figure.subplots(len(ALPHAS), len(NUS), sharex=True, sharey=True, squeeze=False)
        for row, alpha in enumerate(ALPHAS):
            for column, nu in enumerate(NUS):
                norms = one["norm"].sel(nu=nu, alpha=alpha, activation=activation)
                curves = [Series(LABELS[part], one["n"].values, *means(norms.sel(part=part))) for part in PARTS]
                axes = grid[row, column]
                series_panel(axes, curves, "", "", log_x=True, log_y=True, legend=row == column == 0)
                axes.set_title(f"ν = {nu:g}, α = {alpha:g}", loc="left", fontsize=8)
                axes.set_xticks(one["n"].values, [str(n) for n in one["n"].values])
                axes.minorticks_off()
        figure.supxlabel("n, with d = 4n/3, m = 5n/3", fontsize=9)
        figure.supylabel("norm / γ√m", fontsize=9)
        return figure

    return {
        f"scaling-laws-{activation}": Plot(
            styled(lambda activation=activation: panels(activation)),  # type: ignore[misc]
            f"Norms of the parts against the size, {activation}, NTK scaling, MSE; mean and standard error.",
        )
        for activation in ACTIVATIONS
    }


def claims(data: Data) -> Sequence[Claim]:
    """Claim the slopes: ‖S₁‖ that of √(tr Σ̂/n), ‖S₂‖ ≤ ν, and for smooth σ with small ν that of n^(2ν − ½), ‖E‖ ≤ ν."""
    one = data["norms"]
    x = np.log(one["n"].values.astype(float))
    logs, expected = (xarray.apply_ufunc(np.log, one[name]) for name in ("norm", "expected"))
    found = []
    for activation in ACTIVATIONS:
        for alpha in ALPHAS:
            for nu in NUS:
                here = logs.sel(activation=activation, alpha=alpha, nu=nu)
                where = f"{activation}, ν = {nu:g}, α = {alpha:g}"
                own = expected.sel(activation=activation, alpha=alpha, nu=nu)
                residue = slope(x, here.sel(part="residue_spike") - own, "n")
                text = f"slope of ‖S₁‖/γ√m less that of √(tr Σ̂/n) rms(r) rms(μ), {where}"
                found.append(Claim(text, f"{LRG}, section 3", *residue, 0.0, "=", 0.05))
                spike = slope(x, here.sel(part="data_spike"), "n")
                found.append(
                    Claim(f"slope of ‖S₂‖/γ√m, {where}", f"{LRG}, section 3: O(n^ν)", *spike, nu + 2 * spike[1], "<")
                )
                rest = slope(x, here.sel(part="remainder"), "n")
                found.append(
                    Claim(f"slope of ‖E‖/γ√m, {where}", f"{LRG}, section 3: O(n^ν log n ‖W‖/√m)", *rest, nu, "<")
                )
    return found


SCALING_LAWS = Reproduction(
    name="scaling-laws",
    title="Scaling laws of the parts",
    shows="log-log slopes of the parts' norms in n against the theory's exponents, over ν, α and activations",
    cost="25 s | 4 min",
    setting="d = 4n/3, m = 5n/3, NTK scaling, MSE, triple-index targets. Slopes are least-squares fits to the logarithms of each "
    "seed, averaged. ‖S₁‖ is compared with √(tr Σ̂/n), whose slope at these sizes is not yet −α/2, times the root mean squares of "
    "r and of the expected derivatives: for α > 0 the inputs shrink with d, and both with them.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
