"""Which spike one step learns on spiked, anisotropic data, and what that buys a ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.onestep.one_step import OneStep
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.statistics import mean_and_error, means

NUS = [0.0, 0.125, 0.25, 0.375, 0.5]
QUICK_NUS = [0.0, 0.25, 0.5]
ALPHAS = [0.0, 5 / 9]
RIDGES = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]
STEPS = {"η = 2": (2.0, 0.0), "η = √m": (1.0, 0.5)}
TARGETS: dict[str, dict[str, Any]] = {
    "elsewhere": {"links": ["tanh"], "directions": ["orthogonal"]},
    "elsewhere, not centred": {"links": ["sigmoid"], "directions": ["orthogonal"]},
    "along q": {"links": ["tanh"], "directions": ["aligned"], "cosine": 0.7},
}
DIRECTIONS = {"q": "q", "bulk_residue": "$X_B^T r$", "target_1": "target"}
SOURCE = "measured with this library"


def cell(size: list[int], nu: float, alpha: float, target: str, step: str, seed: int) -> dict[str, object]:
    """Return risks before and after the step, of the linear model, and the directions of W₁'s first singular vector."""
    n, d, m = size
    eta, exponent = STEPS[step]
    problem = Problem(
        inputs=SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha),
        targets={"kind": "multi-index", **TARGETS[target]},
        network=TwoLayer(m=m, activation="tanh", scaling="mf", inner="gaussian"),
    )
    found = OneStep(problem, eta, exponent).run(RIDGES, seed)
    return {
        "risk": np.stack([found.risk_before, found.risk, found.risk_linear]) / found.null_risk,
        "alignment": [found.alignments[name][0] for name in DIRECTIONS],
        "singular_value": found.singular_values[0],
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over ν, α, where the target lies, and the step."""
    return {
        "risks": Experiment(
            name="onestep-spiked-data",
            function="gradrank.reproduce.onestep.spiked_data:cell",
            grid={"nu": QUICK_NUS if quick else NUS, "alpha": ALPHAS, "target": list(TARGETS), "step": list(STEPS)},
            seeds=list(range(4 if quick else 10)),
            outputs={"risk": ["model", "ridge"], "alignment": ["direction"], "singular_value": []},
            coordinates={
                "model": ["before", "after", "linear"],
                "ridge": RIDGES,
                "direction": list(DIRECTIONS),
            },
            fixed={"size": [600, 300, 400] if quick else [1500, 750, 1000]},
        )
    }


def best(data: Data) -> xarray.DataArray:
    """Return the risk at the best penalty of each draw, relative to the best constant."""
    return data["risks"]["risk"].min("ridge")


def draw(data: Data) -> dict[str, Plot]:
    """Draw the directions of the learned spike, and the risks, against ν."""
    one, risk = data["risks"], best(data)
    nus = one["nu"].values

    def panels(alpha: float) -> Figure:
        figure = Figure(figsize=(9.8, 4.6), layout="constrained")
        grid = figure.subplots(2, len(TARGETS), sharex=True, sharey="row")
        for column, target in enumerate(TARGETS):
            chosen: dict[str, Any] = {"alpha": alpha, "target": target}
            upper, lower = grid[0, column], grid[1, column]
            for (name, label), marker, grey in zip(DIRECTIONS.items(), "so^", ("0.0", "0.45", "0.7"), strict=True):
                mean, error = means(
                    one["alignment"].sel(**chosen, step="η = √m", direction=name).transpose("nu", "seed")
                )
                upper.errorbar(nus, mean, yerr=error, marker=marker, color=grey, markersize=4, capsize=2, label=label)
            lines = [
                ("before", "η = 2", "--", "0.5", "random features"),
                ("linear", "η = 2", ":", "0.5", "linear model"),
            ]
            lines += [("after", "η = 2", "-", "0.55", "after η = 2"), ("after", "η = √m", "-", "0.0", "after η = √m")]
            for model, step, style, grey, label in lines:
                mean, error = means(risk.sel(**chosen, step=step, model=model).transpose("nu", "seed"))
                lower.errorbar(nus, mean, yerr=error, linestyle=style, color=grey, marker=".", capsize=2, label=label)
            lower.set_yscale("log")
            upper.set_title(f"target {target}", loc="left", fontsize=9)
            lower.set_xlabel("ν")
        grid[0, 0].set_ylabel("|cosine| with $u_1$ of $W_1$, η = √m")
        grid[1, 0].set_ylabel("risk / best constant")
        for row in grid:
            row[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure

    caption = (
        "α = {:.2g}. Above: what the step's spike points along. Below: risk at the best λ. Means and standard errors."
    )
    return {
        f"onestep-spiked-data-{name}": Plot(styled(lambda alpha=alpha: panels(alpha)), caption.format(alpha))  # type: ignore[misc]
        for name, alpha in zip(("flat", "decaying"), ALPHAS, strict=True)
    }


def claims(data: Data) -> Sequence[Claim]:
    """Claim where the spike turns, and where that helps and harms."""
    alignment, risk = data["risks"]["alignment"], best(data)
    large: dict[str, Any] = {"step": "η = √m", "alpha": 0.0}

    def gain(target: str, nu: float, alpha: float = 0.0, step: str = "η = √m") -> tuple[float, float]:
        chosen = risk.sel(target=target, nu=nu, alpha=alpha, step=step)
        return mean_and_error(chosen.sel(model="after") / chosen.sel(model="before"))

    def along(target: str, nu: float, direction: str) -> tuple[float, float]:
        return mean_and_error(alignment.sel(**large, target=target, nu=nu, direction=direction))

    change = risk.sel(target="elsewhere", alpha=0.0, step="η = √m")
    ratio = change.sel(model="after") / change.sel(model="before")
    towards = alignment.sel(**large, nu=0.5, direction="q")
    turned = mean_and_error(towards.sel(target="elsewhere, not centred") - towards.sel(target="elsewhere"))
    found = [
        Claim("target elsewhere, ν = 0: |⟨u₁, X_Bᵀr⟩|", SOURCE, *along("elsewhere", 0.0, "bulk_residue"), 0.9, ">"),
        Claim("target elsewhere, ν = 0: risk after / before", SOURCE, *gain("elsewhere", 0.0), 0.75, "<"),
        Claim(
            "target elsewhere: how much of that ν = ½ takes away",
            SOURCE,
            *mean_and_error(ratio.sel(nu=0.5) - ratio.sel(nu=0.0)),
            0.1,
            ">",
        ),
        Claim("target not centred, ν = ½: |⟨u₁, q⟩| less that of the centred one", SOURCE, *turned, 0.1, ">"),
        Claim("target not centred, ν = ½: risk after / before", SOURCE, *gain("elsewhere, not centred", 0.5), 1.0, ">"),
    ]
    for step in STEPS:
        for alpha in ALPHAS:
            text = f"target along q, ν = ½, α = {alpha:.2g}, {step}: risk after / before"
            found.append(Claim(text, SOURCE, *gain("along q", 0.5, alpha, step), 0.5, "<"))
    chosen = risk.sel(target="along q", nu=0.5, alpha=0.0, step="η = √m")
    beaten = mean_and_error(chosen.sel(model="after") / chosen.sel(model="linear"))
    found.append(Claim("target along q, ν = ½: risk after / linear model", SOURCE, *beaten, 0.25, "<"))
    return found


SPIKED_DATA = Reproduction(
    name="onestep-spiked-data",
    title="One step on spiked data: which spike is learned, and what it buys",
    shows="the learned spike turns from the residue to q as ν grows: a target along q gains, labels with a mean lose",
    cost="20 s | 6 min",
    setting="Inputs with a spike n^ν along q and a bulk λ_k = k^(−α). Targets: tanh(bᵀx) + 0.1 ε with b orthogonal to q, or at a "
    "cosine of 0.7 with it; sigmoid(bᵀx) + 0.1 ε, b orthogonal, whose mean alone makes zᵀr large. tanh, N(0, I/d) inner weights, "
    "output scale 1/m. One step, then ridge regression with an intercept on fresh samples, as many as the step has, at the best of "
    "five λ; risks without label noise, over that of the best constant.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
