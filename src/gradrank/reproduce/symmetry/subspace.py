"""f*(x) = ‖x_H‖: neurons turn to H or away from it, and m neurons follow the reduced flow to 1/√m."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.flow import NormTarget, norm_target_flow, particle_flow
from gradrank.foundation.random import stream
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import HAJJAR
from gradrank.reproduce.statistics import slope
from gradrank.reproduce.symmetry.width_panel import width_panel

D, P = 5, 2
TIMES = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0]
SHOWN = [0.0, 2.0, 10.0]  # of the histograms
COMPARED = 2.0
WIDTHS = [100, 200, 400, 800]
POINTS = 2000
QUADRATURE = "double quadrature of the reduced kernel"
OUTPUTS = ["loss", "mass_positive", "mass_negative", "alignment_positive", "alignment_negative"]


def reduced(d: int, p: int, seed: int) -> dict[str, object]:  # noqa: ARG001 - there is nothing random
    """Return loss, masses and alignments of the reduced flow, and its angles."""
    flow = norm_target_flow(d, p, TIMES)
    mass = flow.weights * flow.sizes**2
    return {**{name: getattr(flow, name) for name in OUTPUTS}, "angle": flow.angles, "mass": mass}


def particles(m: int, seed: int) -> dict[str, object]:
    """Return the distance of m neurons' output from the reduced flow's at t = 2, and of their alignment."""
    X = stream(0, "symmetry.subspace").standard_normal((POINTS, D))
    wide = norm_target_flow(D, P, [COMPARED])
    state = particle_flow(NormTarget(P), m, [COMPARED], d=D, seed=seed, tolerance=1e-6).states[0]
    gap = state.output(X) - wide.output(X)
    positive = state.a > 0
    squares = (state.B[positive] ** 2).sum(axis=1)
    aligned = float((state.B[positive, :P] ** 2).sum() / squares.sum())
    return {"gap": float(np.sqrt(np.mean(gap**2))), "alignment": abs(aligned - float(wide.alignment_positive[0]))}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the reduced flow for three pairs of dimensions, and particles of several widths."""
    module = "gradrank.reproduce.symmetry.subspace"
    return {
        "reduced": Experiment(
            "symmetry-subspace",
            f"{module}:reduced",
            {"d": [D] if quick else [3, D, 10], "p": [1, P]},
            [0],
            {
                **{name: ["time"] for name in OUTPUTS},
                "angle": ["time", "sign", "node"],
                "mass": ["time", "sign", "node"],
            },
            {"time": TIMES, "sign": [1, -1], "node": list(range(60))},
        ),
        "particles": Experiment(
            "symmetry-subspace-particles",
            f"{module}:particles",
            {"m": WIDTHS[:3] if quick else WIDTHS},
            list(range(4 if quick else 12)),
            {"gap": [], "alignment": []},
            {},
        ),
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw histograms of the angle, alignment and loss against time, and the error of m neurons."""
    one = data["reduced"].sel(d=D, p=P).isel(seed=0)

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        grid = figure.subplots(2, 3)
        bins = np.linspace(0, 90, 19)
        for axes, time in zip(grid[0], SHOWN, strict=True):
            for sign, style in ((1, {"color": "0.75"}), (-1, {"histtype": "step", "color": "0.0"})):
                chosen = one.sel(time=time, sign=sign)
                mass = chosen["mass"].values
                label = "a > 0" if sign > 0 else "a < 0"
                axes.hist(np.degrees(chosen["angle"]), bins=bins, weights=mass / mass.sum(), label=label, **style)
            axes.set(title=f"t = {time:g}", xlabel="angle to H (degrees)")
        grid[0, 0].set_ylabel("share of mass")
        grid[0, 0].legend()
        left, middle, right = grid[1]
        for name, dash, label in (("alignment_positive", "-", "a > 0"), ("alignment_negative", "--", "a < 0")):
            left.plot(TIMES, one[name], dash, color="0.0", label=label)
        left.set(xlabel="t", ylabel="mean cos² of the angle to H", ylim=(0, 1))
        left.legend()
        middle.plot(TIMES, one["loss"], color="0.0")
        middle.set(xlabel="t", ylabel="½E(f − f*)²", yscale="log")
        width_panel(right, data["particles"]["gap"])
        right.set_ylabel(f"$‖f_m − f_∞‖$, t = {COMPARED:g}")
        return figure

    caption = (
        f"f* = ‖x_H‖, d = {D}, dim H = {P}. Above: angles of the neurons to H, weighted by mass. Below: the reduced flow, "
        "and m neurons in R^d."
    )
    return {"symmetry-subspace": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim who turns where, the loss, and the rate of convergence in m."""
    one, nan = data["reduced"].isel(seed=0), float("nan")
    early = one.sel(time=[time for time in TIMES if time <= 5])
    rise = float(early["alignment_positive"].diff("time").min())
    fall = float(early["alignment_negative"].diff("time").max())
    widths = data["particles"]["m"].values.astype(float)
    gap = data["particles"]["gap"]
    exponent, error = slope(np.log(widths), gap.copy(data=np.log(gap.values)), "m")
    chosen = one.sel(d=D, p=P, time=COMPARED)
    return [
        Claim("least rise of cos² of neurons with a > 0, t ≤ 5, all d, p", HAJJAR, rise, nan, 0.0, ">"),
        Claim("largest rise of cos² of neurons with a < 0, t ≤ 5", HAJJAR, fall, nan, 0.0, "<"),
        Claim(f"d = {D}, p = {P}: loss at t = 2", QUADRATURE, float(chosen["loss"]), nan, 0.164989, "=", 2e-6),
        Claim("m neurons against the reduced flow: exponent of m", HAJJAR, exponent, error, -0.5, "=", 0.1),
    ]


SUBSPACE = Reproduction(
    name="symmetry-subspace",
    title="A target of a few directions: neurons turn to the subspace",
    shows="angles of the neurons to H for f* = ‖x_H‖ along the reduced flow, and the error of m neurons against it",
    cost="25 s | 3 min",
    setting="Gaussian inputs; a = ±1, b uniform on the unit sphere. The flow is reduced to the angle to H and "
    "the size of each neuron; the kernel is diagonal in Jacobi polynomials of the angle.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
