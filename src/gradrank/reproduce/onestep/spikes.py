"""Spikes in the features after a step of size m^s: how many, against the exponent s."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from gradrank.experiments.experiment import Experiment
from gradrank.onestep.spike_simulation import simulate_feature_spikes
from gradrank.onestep.spike_theory import feature_spikes
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import MONIRI
from gradrank.reproduce.statistics import mean_and_error, means, slope

EXPONENTS = [1 / 6, 0.3, 0.361]
CLAIMED = EXPONENTS[:2]  # at the third, √(2e) sin is far from its limit at any n that fits
ORDERS = [1, 2, 3]
NAMES = ["sine", "cubic"]


def sine(z: torch.Tensor) -> torch.Tensor:
    """Return √(2e) sin(z + π/4), all of whose Hermite coefficients are ±1."""
    return torch.sin(z + math.pi / 4) * math.sqrt(2 * math.e)


def cubic(z: torch.Tensor) -> torch.Tensor:
    """Return He₁ + He₂/2 + He₃/6, for which E σ′ = E σ″ = E σ‴ = 1."""
    return z + (z * z - 1) / 2 + (z**3 - 3 * z) / 6


def teacher(z: torch.Tensor) -> torch.Tensor:
    """Return tanh 2z over its standard deviation."""
    return torch.tanh(2 * z) / 0.79703  # E tanh²(2z) = 0.63526


FUNCTIONS = {"sine": sine, "cubic": cubic}


def cell(activation: str, n: int, s: float, seed: int) -> dict[str, object]:
    """Return the count, the leading singular values over the noise edge, and the strengths of the first spikes."""
    found = simulate_feature_spikes(s, FUNCTIONS[activation], teacher, n=n, seeds=[seed])
    return {
        "count": found.counts[0],
        "value": found.singular_values[0] / found.edges[0],
        "strength": found.strengths[0, : len(ORDERS)],
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over activation, n and s."""
    return {
        "spikes": Experiment(
            name="onestep-spikes",
            function="gradrank.reproduce.onestep.spikes:cell",
            grid={"activation": NAMES, "n": [500, 1000, 2000] if quick else [1000, 2000, 4000, 8000], "s": EXPONENTS},
            seeds=list(range(4)),
            outputs={"count": [], "value": ["index"], "strength": ["order"]},
            coordinates={"index": list(range(1, 13)), "order": ORDERS},
            fixed={},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the leading singular values over the edge, and the strengths against n."""
    one = data["spikes"]
    sizes = one["n"].values

    def panels() -> Figure:
        figure = Figure(figsize=(8.6, 4.4), layout="constrained")
        grid = figure.subplots(2, len(EXPONENTS), sharey="row")
        for column, s in enumerate(EXPONENTS):
            upper, lower = grid[0, column], grid[1, column]
            for name, marker, grey in (("sine", "o", "0.0"), ("cubic", "s", "0.55")):
                mean, error = means(one["value"].sel(activation=name, n=sizes[-1], s=s).transpose("index", "seed"))
                upper.errorbar(one["index"].values, mean, yerr=error, fmt=marker, color=grey, markersize=4, label=name)
            upper.axhline(1.0, linestyle=":", color="0.4")
            upper.set(yscale="log", title=f"s = {s:.3g}: {feature_spikes(s, sine).count} expected")
            upper.set_xlabel("index")
            upper.yaxis.set_minor_formatter(NullFormatter())
            for order, marker, grey in zip(ORDERS, "os^", ("0.0", "0.4", "0.7"), strict=True):
                mean, error = means(one["strength"].sel(activation="cubic", s=s, order=order).transpose("n", "seed"))
                lower.errorbar(sizes, mean, yerr=error, fmt=marker, color=grey, markersize=4, label=f"k = {order}")
                lower.plot(sizes, [predicted(int(n), s, order) for n in sizes], color=grey)
            lower.set(xscale="log", yscale="log", xlabel="n")
            lower.set_xticks(sizes, [str(n) for n in sizes], minor=False)
            lower.xaxis.set_minor_formatter(NullFormatter())
        grid[0, 0].set_ylabel("singular value / edge")
        grid[1, 0].set_ylabel("strength, cubic")
        grid[0, 0].legend()
        grid[1, -1].legend(loc="lower right")
        return figure

    caption = (
        f"Above: leading singular values of the features over the noise edge, n = {sizes[-1]}. Below: strength "
        f"of the k-th spike; lines: θ₁^k m^(−(k−1)/2), θ₁ = n^s."
    )
    return {"onestep-spikes": Plot(styled(panels), caption)}


def predicted(n: int, s: float, order: int) -> float:
    """Return θ₁^k m^(−(k−1)/2) for m = n/2, the strength of a spike with E σ⁽ᵏ⁾ = 1."""
    return float(n ** (order * s) * (n / 2) ** (-(order - 1) / 2))


def claims(data: Data) -> Sequence[Claim]:
    """Claim the number of spikes at the largest n, and how their strengths grow."""
    one = data["spikes"]
    sizes = one["n"].values
    found = []
    for s in CLAIMED:
        mean, error = mean_and_error(one["count"].sel(activation="sine", n=sizes[-1], s=s))
        text = f"sine, θ₁ = n^{s:.3g}, n = {sizes[-1]}: spikes in the features"
        found.append(Claim(text, MONIRI, mean, error, feature_spikes(s, sine).count, "=", 0.25))
    for order in ORDERS[:2]:
        strengths = one["strength"].sel(activation="cubic", s=0.3, order=order).map_blocks(np.log)
        found_slope, error = slope(np.log(sizes.astype(float)), strengths, "n")
        text = f"cubic, s = 0.3: exponent of n in the strength of spike {order}"
        found.append(Claim(text, MONIRI, found_slope, error, order * 0.3 - (order - 1) / 2, "=", 0.1))
    return found


SPIKES = Reproduction(
    name="onestep-spikes",
    title="One step of size m^s: the spikes in the features",
    shows="how many spikes the features hold against the exponent s of the step, and how strong each is",
    cost="15 s | 5 min",
    setting="d = n/4, m = n/2, W₀ with unit rows, y = tanh(2βᵀx) standardised; activations √(2e) sin(z + π/4) "
    "and He₁ + He₂/2 + He₃/6. Singular values count above 1.02 times the largest of the features without their "
    "signal (Hermite polynomials of the spike's coordinate, powers of the outer weights). The cubic is slow to "
    "reach its limit: no claim on its counts.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
