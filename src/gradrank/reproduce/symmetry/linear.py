"""Odd targets: the network is a linear predictor, and its excess risk falls exponentially."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow import (
    CorrelatedRisk,
    LinearTarget,
    Particles,
    excess_risk,
    initial_particles,
    linear_predictor_flow,
    particle_flow,
    rates,
)
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import HAJJAR
from gradrank.reproduce.statistics import slope
from gradrank.reproduce.symmetry.width_panel import width_panel

W_STAR = np.array([1.0, -0.5, 0.8])
COVARIANCE = np.diag([2.0, 1.0, 0.5])
S0 = 1 + 1 / 3
TIMES = [float(t) for t in np.linspace(0, 16, 33)]
WIDTHS = [100, 200, 400, 800]


def _risk() -> CorrelatedRisk:
    return CorrelatedRisk(LinearTarget(np.sqrt(COVARIANCE) @ W_STAR), COVARIANCE)


def axes_flow(seed: int, sigma: float) -> dict[str, object]:  # noqa: ARG001 - there is nothing random
    """Return loss and predictor of the 4d neurons ±σ(1, ±e_i), which reproduce infinite width."""
    eye = sigma * np.eye(3)
    start = Particles(sigma * np.repeat([1.0, -1.0], 6), np.concatenate([eye, -eye, eye, -eye]))
    flow = particle_flow(_risk(), start, TIMES, tolerance=1e-11)
    return {"loss": flow.loss, "predictor": np.stack([state.predictor() for state in flow.states])}


def free_flow(m: int, seed: int) -> dict[str, object]:
    """Return the distance of the predictor of m independent neurons from that of infinite width at t = 2."""
    flow = particle_flow(_risk(), initial_particles(m, 3, seed=seed), [2.0])
    wide = linear_predictor_flow(W_STAR, COVARIANCE, S0, [2.0])[0]
    return {"distance": float(np.linalg.norm(flow.states[0].predictor() - wide))}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the flow of few neurons, and of many independent ones."""
    module = "gradrank.reproduce.symmetry.linear"
    return {
        "axes": Experiment(
            "symmetry-linear",
            f"{module}:axes_flow",
            {"sigma": [1.0]},
            [0],
            {"loss": ["time"], "predictor": ["time", "coordinate"]},
            {"time": TIMES, "coordinate": [1, 2, 3]},
        ),
        "free": Experiment(
            "symmetry-linear-free",
            f"{module}:free_flow",
            {"m": WIDTHS[:3] if quick else WIDTHS},
            list(range(10 if quick else 40)),
            {"distance": []},
            {},
        ),
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the excess risk with its bounds, the predictor, and the distance against m."""
    loss = data["axes"]["loss"].isel(sigma=0, seed=0).values
    predictor = data["axes"]["predictor"].isel(sigma=0, seed=0)
    bound, asymptotic = rates(W_STAR, COVARIANCE, S0)

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        t = np.array(TIMES)
        left.plot(t, loss, color="0.0", label="loss")
        left.plot(t, loss[0] * np.exp(-bound * t), ":", color="0.4", label="guaranteed")
        left.plot(t, loss[-1] * np.exp(-asymptotic * (t - t[-1])), "--", color="0.6", label="asymptotic rate")
        left.set(yscale="log", xlabel="t", ylabel="½E(f − f*)²", ylim=(loss[-1] / 3, 3 * loss[0]))
        left.legend()
        for column, style in enumerate(("-", "--", "-.")):
            middle.plot(t, predictor.values[:, column], style, color="0.0", label=f"$w_{column + 1}$")
            middle.axhline(W_STAR[column], color="0.7", linewidth=0.7)
        middle.set(xlabel="t", ylabel="linear predictor w(t)", xlim=(0, 8))
        middle.legend()
        width_panel(right, data["free"]["distance"])
        right.set_ylabel("$‖w_m − w_∞‖$, t = 2")
        return figure

    caption = (
        "Odd target: twelve neurons that reproduce infinite width (left, middle), and independent neurons (right)."
    )
    return {"symmetry-linear": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim the reduction, the rates, and the error of finite widths."""
    loss = data["axes"]["loss"].isel(sigma=0, seed=0).values
    found = data["axes"]["predictor"].isel(sigma=0, seed=0).values
    expected = linear_predictor_flow(W_STAR, COVARIANCE, S0, TIMES)
    nan, t = float("nan"), np.array(TIMES)
    bound, asymptotic = rates(W_STAR, COVARIANCE, S0)
    late = (t >= 10) & (t <= 14)
    measured = -float(np.polyfit(t[late], np.log(loss[late]), 1)[0])
    excess = float((loss / (loss[0] * np.exp(-bound * t))).max())
    widths = data["free"]["m"].values.astype(float)
    distance = data["free"]["distance"]
    exponent, error = slope(np.log(widths), distance.copy(data=np.log(distance.values)), "m")
    return [
        Claim(
            "twelve neurons: largest |w − w_∞| over time", HAJJAR, float(np.abs(found - expected).max()), nan, 1e-8, "<"
        ),
        Claim(
            "largest |loss − ½(w* − w)ᵀC(w* − w)|",
            HAJJAR,
            float(np.abs(loss - excess_risk(expected, W_STAR, COVARIANCE)).max()),
            nan,
            1e-8,
            "<",
        ),
        Claim("decay rate of the loss, t = 10 … 14", HAJJAR, measured, nan, asymptotic, "=", 0.05 * asymptotic),
        Claim("largest loss over Δ(0)exp(−½S₀λ_min t)", HAJJAR, excess, nan, 1 + 1e-9, "<"),
        Claim("independent neurons: exponent of m in ‖w_m − w_∞‖", HAJJAR, exponent, error, -0.5, "=", 0.1),
    ]


LINEAR = Reproduction(
    name="symmetry-linear",
    title="Odd targets: a linear predictor with exponential convergence",
    shows="loss and linear predictor of an odd target, with the predicted rate, and the error of m neurons",
    cost="10 s | 1 min",
    setting="Gaussian inputs with covariance diag(2, 1, ½), w* = (1, −½, 0.8), σ = 1. The equation w′ = "
    "H(w)C(w* − w) is closed in w.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
