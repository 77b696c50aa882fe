"""The correlation of two inputs at depth: networks of growing width against the SDE, shaped against unshaped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy.stats import ks_2samp

from gradrank.experiments.experiment import Experiment
from gradrank.initialization import (
    ShapedReLU,
    ShapedSmooth,
    collapse,
    correlation_moments,
    sample_network,
    sample_sde,
)
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction, fixed_of
from gradrank.reproduce.sources import LNR

RHO0, TIME = 0.3, 1.0
START = [[1.0, RHO0], [RHO0, 1.0]]
WIDTHS = [50, 100, 200]
PATHS, STEPS = 12, 100


def with_even_part(x: torch.Tensor) -> torch.Tensor:
    """Return tanh x + ½ tanh² x, for which φ″(0) = 1."""
    return torch.tanh(x) + 0.5 * torch.tanh(x) ** 2


SHAPINGS: dict[str, ShapedReLU | ShapedSmooth] = {
    "shaped ReLU (0, −1)": ShapedReLU(0, -1),
    "shaped tanh": ShapedSmooth("tanh"),
    "tanh + ½ tanh²": ShapedSmooth(with_even_part),
}


def _correlation(V: torch.Tensor) -> np.ndarray:
    return (V[..., 0, 1] / (V[..., 0, 0] * V[..., 1, 1]).sqrt()).numpy()


def network(samples: int, shaping: str, width: int, seed: int) -> dict[str, object]:
    """Return ρ and log V¹¹ of networks as deep as wide."""
    V = sample_network(START, round(TIME * width), width, SHAPINGS[shaping], samples, seed)
    return {"correlation": _correlation(V), "size": V[:, 0, 0].log().numpy()}


def equation(samples: int, shaping: str, width: int, seed: int) -> dict[str, object]:
    """Return the same of the SDE, with the corrections for that width."""
    V = sample_sde(START, TIME, SHAPINGS[shaping], samples, seed + 1000, width=width)
    return {"correlation": _correlation(V), "size": V[:, 0, 0].log().numpy()}


def paths(samples: int, rho0: float, seed: int) -> dict[str, object]:
    """Return ρ along the layers of shaped networks, of unshaped ones, and along the SDE."""
    width, start = STEPS, [[1.0, rho0], [rho0, 1.0]]
    shaped = sample_network(start, width, width, ShapedReLU(0, -1), samples, seed, layers=range(width + 1))
    root = width**0.5  # c_± = √n(s_± − 1): s₊ = 1, s₋ = 0 is the ReLU
    plain = sample_network(start, width, width, ShapedReLU(0, -root), samples, seed, layers=range(width + 1))
    times = [k / width for k in range(width + 1)]
    sde = sample_sde(start, TIME, ShapedReLU(0, -1), samples, seed, at=times)
    return {"path": np.stack([_correlation(V) for V in (shaped, plain, sde)])}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return networks and the SDE for three shapings and three widths, and a few paths."""
    samples = 2000 if quick else 10_000
    module = "gradrank.reproduce.covariance.correlation"
    grid: dict[str, list[str] | list[int]] = {"shaping": list(SHAPINGS), "width": WIDTHS}
    coordinates = {"sample": list(range(samples))}
    outputs = {"correlation": ["sample"], "size": ["sample"]}
    return {
        **{
            name: Experiment(
                f"covariance-{name}", f"{module}:{name}", grid, [0], outputs, coordinates, {"samples": samples}
            )
            for name in ("network", "equation")
        },
        "paths": Experiment(
            "covariance-paths",
            f"{module}:paths",
            {"rho0": [RHO0]},
            [0],
            {"path": ["kind", "sample", "layer"]},
            {"kind": ["shaped", "unshaped", "sde"], "layer": list(range(STEPS + 1)), "sample": list(range(PATHS))},
            {"samples": PATHS},
        ),
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw paths, and densities of ρ_T."""
    lines = data["paths"]["path"].isel(rho0=0, seed=0)

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 4.6), layout="constrained")
        grid = figure.subplots(2, 3)
        t = np.arange(STEPS + 1) / STEPS
        titles = {"shaped": "shaped ReLU, n = d = 100", "sde": "SDE", "unshaped": "ReLU, n = d = 100"}
        for axes, (kind, title) in zip(grid[0], titles.items(), strict=True):
            for sample in range(PATHS):
                axes.plot(t, lines.sel(kind=kind, sample=sample), color="0.35", linewidth=0.7)
            axes.set(title=title, xlabel="depth / width", ylim=(-1, 1.02))
        grid[0, 0].set_ylabel("correlation ρ")
        bins = np.linspace(-1, 1, 41)
        for axes, name in zip(grid[1], SHAPINGS, strict=True):
            chosen = {"shaping": name, "width": WIDTHS[-1]}
            found = data["network"]["correlation"].sel(chosen).isel(seed=0)
            axes.hist(found, bins=bins, density=True, color="0.8", label=f"networks, n = {WIDTHS[-1]}")
            other = data["equation"]["correlation"].sel(chosen).isel(seed=0)
            axes.hist(other, bins=bins, density=True, histtype="step", color="0.0", label="SDE")
            axes.set(title=name, xlabel="ρ at depth = width")
        grid[1, 0].set_ylabel("density")
        grid[1, 0].legend(loc="upper left")
        return figure

    caption = (
        "Above: the correlation of two inputs along the layers, ρ₀ = 0.3. Below: its distribution at depth = width."
    )
    return {"covariance-correlation": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim that networks and SDE have one law at the largest width, and the collapse without shaping."""
    samples = int(fixed_of(data["network"])["samples"])
    # Six tests at a level of 5 % together (Bonferroni): √(−log(0.05/12)/2) = 1.656 for each.
    critical = 1.656 * (2 / samples) ** 0.5
    found = []
    for name in SHAPINGS:
        chosen = {"shaping": name, "width": WIDTHS[-1]}
        for output, word in (("correlation", "ρ"), ("size", "log V¹¹")):
            x, y = (data[which][output].sel(chosen).isel(seed=0).values for which in ("network", "equation"))
            distance = float(ks_2samp(x, y).statistic)
            text = f"{name}, n = {WIDTHS[-1]}: KS distance of {word} to the SDE (95 % point of six tests)"
            found.append(Claim(text, LNR, distance, float("nan"), critical, "<"))
    relu = data["equation"]["correlation"].sel(shaping="shaped ReLU (0, −1)", width=WIDTHS[-1]).isel(seed=0).values
    law = correlation_moments(RHO0, TIME, 0, -1, width=WIDTHS[-1])
    error = float(relu.std(ddof=1) / samples**0.5)
    mean, source = float(relu.mean()), f"{LNR}; Fokker-Planck"
    found.append(Claim("shaped ReLU: E ρ_T of the SDE's samples", source, mean, error, law.mean, "=", 0.002))
    last = 1 - data["paths"]["path"].sel(kind="unshaped", layer=STEPS).isel(rho0=0, seed=0).values
    text = "unshaped ReLU: mean of 1 − ρ after 100 layers"
    found.append(Claim(text, LNR, float(last.mean()), float("nan"), 0.1, "<"))
    limit = collapse(RHO0, STEPS)
    found.append(Claim("the same at infinite width", LNR, limit, float("nan"), 0.00351767, "=", 1e-8))
    return found


CORRELATION = Reproduction(
    name="covariance-correlation",
    title="The correlation of two inputs at depth",
    shows="paths and densities of the correlation: shaped networks follow the SDE, unshaped ones collapse",
    cost="15 s | 3 min",
    setting="Two inputs with ρ₀ = 0.3 and V = 1, depth = width (T = 1). Networks are drawn exactly in law, row "
    "by row; the SDE by steps of 1/100 that keep the cone, with the corrections for the width: (c₊ − c₋)²c for ReLU, "
    "and the variance of a layer of finite width.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
