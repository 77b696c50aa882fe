"""Ridge risk after a step of size Θ(1): the asymptotic theory against simulation over a grid of settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.onestep.asymptotic_risk import asymptotic_risk
from gradrank.onestep.simulation import simulate
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import BA
from gradrank.reproduce.statistics import means

NOISE = 0.1**0.5
PAIRS = ["tanh/tanh", "erf/erf", "tanh/relu", "erf/tanh", "erf/relu"]
ETAS = [0.0, 0.5, 1.0, 2.0]
PSI1, PSI2 = [0.5, 1.0, 2.0, 4.0], [1.0, 2.0]
RIDGES = [1e-3, 1e-2, 1e-1, 1.0]


def cell(d: int, pair: str, eta: float, psi1: float, psi2: float, seed: int) -> dict[str, object]:
    """Return the test risk for every λ."""
    activation, teacher = pair.split("/")
    return {"risk": simulate(eta, RIDGES, psi1, psi2, activation, teacher, NOISE, d=d, seeds=[seed]).risk}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over functions, steps and ratios."""
    return {
        "risks": Experiment(
            name="onestep-grid",
            function="gradrank.reproduce.onestep.grid:cell",
            grid={
                "pair": PAIRS[:3] if quick else PAIRS,
                "eta": [0.0, 2.0] if quick else ETAS,
                "psi1": PSI1,
                "psi2": PSI2,
            },
            seeds=list(range(10)),
            outputs={"risk": ["ridge"]},
            coordinates={"ridge": RIDGES},
            fixed={"d": 200 if quick else 500},
        )
    }


def settings(data: Data) -> Iterator[dict[str, Any]]:
    """Yield every setting of the run."""
    one = data["risks"]
    for pair in one["pair"].values:
        for eta in one["eta"].values:
            for psi1 in PSI1:
                for psi2 in PSI2:
                    yield {"pair": str(pair), "eta": float(eta), "psi1": psi1, "psi2": psi2}


def compared(data: Data) -> dict[str, np.ndarray]:
    """Return theory, measured mean and standard error, and the bound ‖P_{>1} f*‖², each of shape (settings, ridges)."""
    columns: dict[str, list[np.ndarray]] = {"theory": [], "measured": [], "error": [], "bound": [], "improvement": []}
    for setting in settings(data):
        activation, teacher = setting["pair"].split("/")
        theory = asymptotic_risk(setting["eta"], RIDGES, setting["psi1"], setting["psi2"], activation, teacher, NOISE)
        values = data["risks"]["risk"].sel(setting)
        mean, error = means(values.transpose("ridge", "seed"))
        start = data["risks"]["risk"].sel({**setting, "eta": 0.0})
        gain, _ = means((start - values).transpose("ridge", "seed"))
        columns["theory"].append(np.asarray(theory.risk))
        columns["measured"].append(mean)
        columns["error"].append(error)
        columns["bound"].append(np.full(len(RIDGES), theory.linear_bound))
        columns["improvement"].append(gain if setting["eta"] > 0 else np.full(len(RIDGES), np.nan))
    return {name: np.stack(rows) for name, rows in columns.items()}


def draw(data: Data) -> dict[str, Plot]:
    """Draw measured against predicted risk, and the differences in standard errors."""
    found = compared(data)

    def panels() -> Figure:
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.errorbar(
            found["theory"].ravel(),
            found["measured"].ravel(),
            yerr=found["error"].ravel(),
            fmt="o",
            markersize=2,
            color="0.0",
            elinewidth=0.6,
            label="simulation",
        )
        span = [found["theory"].min(), found["theory"].max()]
        left.plot(span, span, color="0.6", label="equal")
        left.set(xscale="log", yscale="log", xlabel="risk, theory", ylabel="risk, simulation")
        left.legend()
        z = ((found["measured"] - found["theory"]) / found["error"]).ravel()
        right.hist(np.clip(z, -5, 5), bins=np.linspace(-5, 5, 41), density=True, color="0.75")
        fine = np.linspace(-5, 5, 200)
        right.plot(fine, np.exp(-(fine**2) / 2) / np.sqrt(2 * np.pi), color="0.0", label="N(0, 1)")
        right.set(xlabel="difference / standard error", ylabel="density")
        right.legend()
        return figure

    caption = "Test risk of every setting and λ: theory without any random draw against simulation over seeds."
    return {"onestep-grid": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim the theory cell by cell, that the step never harms, and the bound of a Θ(1) step."""
    found = compared(data)
    z = (found["measured"] - found["theory"]) / found["error"]
    relative = np.abs(found["measured"] / found["theory"] - 1)
    gains = found["improvement"][np.isfinite(found["improvement"])]
    nan = float("nan")
    return [
        Claim("share of cells within two standard errors", BA, float((np.abs(z) < 2).mean()), nan, 0.9, ">"),
        Claim("share of cells within one standard error", BA, float((np.abs(z) < 1).mean()), nan, 0.5, ">"),
        Claim("mean of |simulation/theory − 1|", BA, float(relative.mean()), nan, 0.03, "<"),
        Claim("largest |simulation/theory − 1|", BA, float(relative.max()), nan, 0.12, "<"),
        Claim("share of cells in which the step lowers the risk", BA, float((gains > 0).mean()), nan, 0.99, ">"),
        Claim(
            "least risk / ‖P_{>1}f*‖²",
            f"{BA}: a Θ(1) step stays above the best linear model",
            float((found["measured"] / found["bound"]).min()),
            nan,
            1.0,
            ">",
        ),
    ]


GRID = Reproduction(
    name="onestep-grid",
    title="One step of size Θ(1): ridge risk over a grid",
    shows="test risk after no step and a small one: theory without a random draw against simulation, 640 settings",
    cost="40 s | 15 min",
    setting="Pairs of activation and teacher (relu centred), η ∈ {0, ½, 1, 2}, n/d ∈ {½, 1, 2, 4}, m/d ∈ {1, "
    "2}, four λ; d = 500, ten seeds, label noise of variance 0.1 (quick: d = 200, three pairs, two η). Settings "
    "that differ in η only share their draws. Of ten seeds, 92 % of the means are expected within two standard errors.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
