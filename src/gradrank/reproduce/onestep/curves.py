"""Ridge risk against samples and against λ, and its improvement with η: no step, η = Θ(1), η = Θ(√m)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from gradrank.experiments.experiment import Experiment
from gradrank.onestep.asymptotic_risk import asymptotic_risk
from gradrank.onestep.large_step import large_step_risk
from gradrank.onestep.simulation import simulate
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction, fixed_of
from gradrank.reproduce.sources import BA
from gradrank.reproduce.statistics import mean_and_error, means

STEPS = {"η = 0": (0.0, 0.0), "η = 2": (2.0, 0.0), "η = 2√m": (2.0, 0.5)}
LOOKS = {"η = 0": ("s", "0.7"), "η = 2": ("^", "0.4"), "η = 2√m": ("o", "0.0")}
PSI2, FUNCTION = 2.0, "erf"
PSI1 = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
QUICK_PSI1 = [0.5, 1.0, 2.0, 4.0, 8.0]
RIDGE = 0.03  # of the curves against ψ₁
RIDGES = [1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0]
ETAS = [0.5, 1.0, 1.5, 2.0, 3.0]
NOISE = 0.1**0.5  # of the curves against η
APART = 1000  # between the seeds of two settings that are to be independent
PAIRS = ["tanh/tanh", "erf/erf", "tanh/relu"]


def risks(d: int, step: str, psi1: float, seed: int) -> dict[str, object]:
    """Return the risk for every λ, without label noise in the training set; draws are shared by the steps only."""
    eta, exponent = STEPS[step]
    own = seed + APART * PSI1.index(psi1)
    found = simulate(eta, RIDGES, psi1, PSI2, FUNCTION, FUNCTION, 0.0, d=d, exponent=exponent, seeds=[own])
    return {"risk": found.risk}


def improvements(d: int, pair: str, eta: float, seed: int) -> dict[str, object]:
    """Return the risk without a step less that with one, on the same draws."""
    activation, teacher = pair.split("/")
    before, after = (
        simulate(value, 0.01, 2.0, 1.0, activation, teacher, NOISE, d=d, seeds=[seed]).risk[0] for value in (0.0, eta)
    )
    return {"improvement": before - after}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over steps and samples, and the one over η."""
    d, seeds = (250, list(range(6))) if quick else (500, list(range(10)))
    return {
        "risks": Experiment(
            name="onestep-curves",
            function="gradrank.reproduce.onestep.curves:risks",
            grid={"step": list(STEPS), "psi1": QUICK_PSI1 if quick else PSI1},
            seeds=seeds,
            outputs={"risk": ["ridge"]},
            coordinates={"ridge": RIDGES},
            fixed={"d": d},
        ),
        "improvements": Experiment(
            name="onestep-improvement",
            function="gradrank.reproduce.onestep.curves:improvements",
            grid={"pair": PAIRS, "eta": ETAS},
            seeds=seeds,
            outputs={"improvement": []},
            coordinates={},
            fixed={"d": d},
        ),
    }


def theory(step: str, ridges: Sequence[float], psi1: float, d: int) -> np.ndarray:
    """Return the predicted risk for every λ; for the large step with the leading correction for m = ψ₂d neurons."""
    eta, exponent = STEPS[step]
    if exponent > 0:
        found = large_step_risk(eta, ridges, psi1, PSI2, FUNCTION, FUNCTION, 0.0, width=round(PSI2 * d))
        return np.asarray(found.risk)
    return np.asarray(asymptotic_risk(eta, ridges, psi1, PSI2, FUNCTION, FUNCTION, 0.0).risk)


def bound() -> float:
    """Return ‖P_{>1} f*‖², the risk of the best linear model."""
    return float(asymptotic_risk(0.0, 1.0, 1.0, PSI2, FUNCTION, FUNCTION, 0.0).linear_bound)


def draw(data: Data) -> dict[str, Plot]:
    """Draw curves of the theory and points of the simulation."""
    one, gains = data["risks"], data["improvements"]
    d, psi1 = int(fixed_of(one)["d"]), [float(x) for x in one["psi1"].values]

    def against(
        axes: Axes, x: Sequence[float], values: xarray.DataArray, fine: np.ndarray, curve: Callable[[str], np.ndarray]
    ) -> None:
        for step, (marker, grey) in LOOKS.items():
            mean, error = means(values.sel(step=step))
            axes.errorbar(x, mean, yerr=error, fmt=marker, color=grey, markersize=4, capsize=2, label=step)
            axes.plot(fine, curve(step), color=grey)
        axes.axhline(bound(), linestyle=":", color="0.3")
        axes.set(xscale="log", yscale="log")

    def panels() -> Figure:
        figure = Figure(figsize=(9.2, 3.1), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        fine = np.geomspace(PSI1[0], PSI1[-1], 30)
        values = one["risk"].sel(ridge=RIDGE).transpose("step", "psi1", "seed")
        against(left, psi1, values, fine, lambda step: np.array([theory(step, [RIDGE], psi, d)[0] for psi in fine]))
        left.set(xlabel="$ψ_1 = n/d$", ylabel="test risk", title=f"λ = {RIDGE:g}")
        left.set_xticks([0.5, 1, 2, 4, 8], ["½", "1", "2", "4", "8"])
        left.xaxis.set_minor_formatter(NullFormatter())
        left.text(PSI1[0], 1.04 * bound(), "best linear model")
        left.legend()
        fine_ridges = np.geomspace(RIDGES[0], RIDGES[-1], 30)
        values = one["risk"].sel(psi1=PSI1[-1]).transpose("step", "ridge", "seed")
        against(middle, RIDGES, values, fine_ridges, lambda step: theory(step, list(fine_ridges), PSI1[-1], d))
        middle.set(xlabel="λ", title=f"$ψ_1$ = {PSI1[-1]:g}")
        etas = np.linspace(0, max(ETAS), 50)
        for pair, marker, grey in zip(PAIRS, "os^", ("0.0", "0.4", "0.7"), strict=True):
            mean, error = means(gains["improvement"].sel(pair=pair).transpose("eta", "seed"))
            right.errorbar(ETAS, mean, yerr=error, fmt=marker, color=grey, markersize=4, capsize=2, label=pair)
            right.plot(etas, [improvement(pair, float(eta)) for eta in etas], color=grey)
        right.set(xlabel="η", ylabel="improvement δ(η)", title="$ψ$ = (2, 1), λ = 0.01")
        right.legend()
        return figure

    caption = (
        f"Test risk against samples and λ for {FUNCTION}/{FUNCTION}, m = 2d, n₀ = n, no label noise, d = {d}; "
        f"right: what a step of size η takes off. Curves: theory without a random draw; points: simulation, "
        f"means and standard errors."
    )
    return {"onestep-curves": Plot(styled(panels), caption)}


def improvement(pair: str, eta: float) -> float:
    """Return the predicted δ(η)."""
    activation, teacher = pair.split("/")
    return float(np.ravel(asymptotic_risk(eta, 0.01, 2.0, 1.0, activation, teacher, NOISE).improvement)[0])


def claims(data: Data) -> Sequence[Claim]:
    """Claim the theory along the curves, the improvement, and who beats the best linear model."""
    one, gains = data["risks"], data["improvements"]["improvement"]
    d = int(fixed_of(one)["d"])
    ratios = [float(x) for x in one["psi1"].values]
    found = []
    for step, (_, exponent) in STEPS.items():
        measured = one["risk"].sel(step=step).mean("seed").transpose("psi1", "ridge").values
        predicted = np.stack([theory(step, RIDGES, psi1, d) for psi1 in ratios])
        deviation = float(np.abs(measured / predicted - 1).mean())
        source = f"{BA}, derived here" if exponent else BA
        text = f"{step}: mean of |simulation/theory − 1| over samples and λ"
        found.append(Claim(text, source, deviation, float("nan"), 0.03 if d >= 500 else 0.05, "<"))
    for pair in PAIRS:
        mean, error = mean_and_error(gains.sel(pair=pair, eta=2.0))
        found.append(Claim(f"δ(2), {pair}", BA, mean, error, improvement(pair, 2.0), "="))
    least = one["risk"].sel(psi1=PSI1[-1]).mean("seed").min("ridge")
    for step, (_, exponent) in STEPS.items():
        text = f"{step}, ψ₁ = {PSI1[-1]:g}, best λ: risk / best linear model"
        value = float(least.sel(step=step)) / bound()
        found.append(Claim(text, BA, value, float("nan"), 1.0, "<" if exponent else ">"))
    return found


CURVES = Reproduction(
    name="onestep-curves",
    title="One step: risk against samples and λ, and the improvement",
    shows="test risk for η = 0, Θ(1) and Θ(√m), theory and simulation; the large step beats the best linear model",
    cost="30 s | 8 min",
    setting="Gaussian inputs, y = erf(βᵀx) without noise, erf network with m = 2d, n₀ = n; ridge regression on "
    "fresh samples. The theory of the large step has its leading correction for a finite width. δ(η): label "
    "noise of variance 0.1.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
