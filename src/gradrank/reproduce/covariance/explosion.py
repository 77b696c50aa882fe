"""Finite-time explosion of the diagonal: possible iff b = (¾φ″² + φ‴)/a² > 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.initialization import (
    ShapedSmooth,
    blow_up_time,
    explosion_probability,
    mean_field_flow,
    sample_network,
    sample_one_input,
)
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction, fixed_of
from gradrank.reproduce.sources import LNR

GROWTHS = [-0.5, 0.5, 1.0, 2.0]
STARTS = [0.5, 1.0, 2.0]
HORIZON = 25.0
LARGE = 20.0  # a network counts as exploding above: a finite one never blows up
TIMES = [0.25, 0.5, 0.75, 1.0]


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return 2xσ(x), for which φ″(0) = 1 and b = ¾/a²."""
    return 2 * x * torch.sigmoid(x)


def exact(samples: int, b: float, v0: float, seed: int) -> dict[str, object]:
    """Return the share of paths of dV = bV(V − 1)dt + √2V dB that exploded."""
    found = sample_one_input(v0, b, [HORIZON], samples, seed, step=0.01)
    return {"exploded": float(np.isfinite(found.explosion_times).mean())}


def networks(samples: int, width: int, seed: int) -> dict[str, object]:
    """Return the share above 20 at times up to one, of networks with φ = 2xσ(x) and of the exact solution."""
    layers = [round(time * width) for time in TIMES]
    V = sample_network([[1.0]], layers[-1], width, ShapedSmooth(silu), samples, seed, layers=layers)[:, :, 0, 0]
    above = (V.numpy() > LARGE).cumsum(axis=1) > 0
    one = sample_one_input(1.0, 0.75, TIMES, samples, seed + 1)
    reached = (one.values > LARGE).cumsum(axis=1) > 0
    return {"network": above.mean(axis=0), "exact": reached.mean(axis=0)}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the probability over b and V_0, and networks of two widths."""
    samples, module = (4000 if quick else 20_000), "gradrank.reproduce.covariance.explosion"
    return {
        "exact": Experiment(
            "covariance-explosion",
            f"{module}:exact",
            {"b": GROWTHS, "v0": STARTS},
            [0],
            {"exploded": []},
            {},
            {"samples": samples},
        ),
        "networks": Experiment(
            "covariance-explosion-networks",
            f"{module}:networks",
            {"width": [100, 300]},
            [0],
            {"network": ["time"], "exact": ["time"]},
            {"time": TIMES},
            {"samples": samples // 2},
        ),
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the probability against V_0, the flow without noise, and networks against the exact solution."""

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        fine = np.linspace(0.05, 3, 60)
        for b, marker, grey in zip(GROWTHS[1:], "os^", ("0.0", "0.4", "0.65"), strict=True):
            left.plot(fine, [explosion_probability(b, v) for v in fine], color=grey)
            shares = data["exact"]["exploded"].sel(b=b).isel(seed=0)
            left.plot(STARTS, shares, marker, color=grey, markersize=4, label=f"b = {b:g}")
        left.set(xlabel="$V_0$", ylabel="P(explosion)")
        left.legend()
        t = np.linspace(0, 2, 400)
        for v0, style in ((0.5, "-"), (0.9, "--"), (1.1, "-."), (2.0, ":")):
            flow = mean_field_flow(v0, 1.0, list(t))
            middle.plot(t, np.where(flow < 10, flow, np.nan), style, color="0.0", label=f"$U_0$ = {v0:g}")
        middle.set(xlabel="t", ylabel="U, b = 1, no noise", ylim=(0, 5))
        middle.legend()
        for width, marker, grey in ((100, "o", "0.6"), (300, "s", "0.0")):
            shares = data["networks"]["network"].sel(width=width).isel(seed=0)
            right.plot(TIMES, shares, marker, color=grey, markersize=4, label=f"networks, n = {width}")
        right.plot(TIMES, data["networks"]["exact"].sel(width=300).isel(seed=0), color="0.3", label="exact solution")
        right.set(xlabel="depth / width", ylabel=f"P(V has passed {LARGE:g}), b = ¾")
        right.legend()
        return figure

    caption = (
        "Explosion of the diagonal. Left: points by simulation of the exact solution, curves P(Gamma(b + 1) < bV₀)."
    )
    return {"covariance-explosion": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim the probabilities, and that networks approach them."""
    samples = int(fixed_of(data["exact"])["samples"])
    found = []
    for b in GROWTHS:
        for v0 in STARTS:
            expected = explosion_probability(b, v0)
            measured = float(data["exact"]["exploded"].sel(b=b, v0=v0).isel(seed=0))
            error = math.sqrt(max(measured * (1 - measured), 1e-9) / samples)
            found.append(
                Claim(f"b = {b:g}, V₀ = {v0:g}: share exploded", LNR, measured, error, expected, "=", 3 * error)
            )
    shares = data["networks"].sel(time=1.0).isel(seed=0)
    gap = [abs(float(shares["network"].sel(width=n)) - float(shares["exact"].sel(width=n))) for n in (100, 300)]
    found.append(Claim("φ = 2xσ(x), n = 300: |P(V > 20 by T = 1) − exact|", LNR, gap[1], float("nan"), 0.02, "<"))
    text = "flow without noise, U₀ = 2, b = 1: blow-up time"
    found.append(Claim(text, LNR, blow_up_time(2, 1), float("nan"), math.log(2), "=", 1e-12))
    return found


EXPLOSION = Reproduction(
    name="covariance-explosion",
    title="Explosion of the covariance in finite time",
    shows="the probability of explosion against b and V₀, and networks that approach it",
    cost="20 s | 2 min",
    setting="One input: dV = bV(V − 1)dt + √2V dB, from its exact solution up to t = 25. Networks with φ = "
    "2xσ(x), a = 1, b = ¾; they never blow up, and count once V has passed 20.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
