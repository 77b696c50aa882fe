"""Figure 7: input noise brings the residue spike forward, a Jacobian penalty drowns it in a spike of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.low_rank.problems import PAPER, size_of, sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error, means, two_errors

PARTS = ["residue_spike", "interpolant", "data_spike", "jacobian_spike", "jacobian_remainder", "remainder"]
LABELS = {
    "residue_spike": "‖S₁‖",
    "data_spike": "‖S₂‖",
    "jacobian_spike": "λ‖S₃‖",
    "jacobian_remainder": "λ‖E₂‖",
    "remainder": "‖E‖",
}
NOISE = [0.0, 0.05, 0.25, 1.0, 4.0]
PENALTY = [0.0, 1.0, 10.0, 100.0, 1000.0]
NOISE_RESIDUE = [(0.66, 0.08), (2.63, 0.17), (6.66, 0.39), (8.09, 0.41), (8.31, 0.79)]  # ‖S₁‖/‖E‖, mean and scatter
NOISE_DATA = [(4.50, 0.26), (4.31, 0.18), (2.61, 0.09), (0.81, 0.08), (0.28, 0.01)]  # ‖S₂‖/‖E‖


def noise(size: list[int], input_noise: float, seed: int) -> dict[str, object]:
    """Return the norms of the parts under noise on the inputs."""
    problem = synthetic(size, nu=0.125, alpha=8 / 9, activation="relu", input_noise=input_noise)
    return {"norm": _norms(decompose(problem.draw(seed)))}


def penalty(size: list[int], jacobian: float, seed: int) -> dict[str, object]:
    """Return the norms of the parts under a Jacobian penalty, and |⟨u₂, X_Bᵀr⟩|."""
    parts = decompose(synthetic(size, nu=0.375, jacobian=jacobian).draw(seed))
    return {"norm": _norms(parts), "second": parts.alignments(k=2).left["bulk_residue"][1]}


def _norms(parts: Decomposition) -> list[float]:
    found = parts.norms()
    return [found.get(name, np.nan) for name in PARTS]


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return a grid over the noise and one over the penalty."""
    seeds = list(range(10 if quick else 20))
    shared = {"seeds": seeds, "coordinates": {"part": PARTS}, "fixed": {"size": sizes(quick)}}
    module = "gradrank.reproduce.low_rank.fig7"
    return {
        "noise": Experiment("fig7-noise", f"{module}:noise", {"input_noise": NOISE}, outputs={"norm": ["part"]}, **shared),  # type: ignore[arg-type]
        "penalty": Experiment(
            "fig7-penalty", f"{module}:penalty", {"jacobian": PENALTY}, outputs={"norm": ["part"], "second": []}, **shared  # type: ignore[arg-type]
        ),
    }  # fmt: skip


def draw(data: Data) -> dict[str, Plot]:
    """Draw the norms against the noise and against the penalty."""

    def panels() -> Figure:
        figure = Figure(figsize=(8.4, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes, name, axis, label in (
            (left, "noise", "input_noise", "variance τ² of the input noise"),
            (right, "penalty", "jacobian", "Jacobian penalty λ"),
        ):
            norms = data[name]["norm"]
            parts = ["residue_spike", "data_spike", "remainder"] + (PARTS[3:5] if name == "penalty" else [])
            x = norms[axis].values
            place = np.where(x > 0, x, x[1] / 10)  # zero at the left end
            curves = [Series(LABELS[part], place, *means(norms.sel(part=part))) for part in parts]
            series_panel(axes, curves, label, "spectral norm", log_x=True, log_y=True)
            axes.set_xticks(place, [f"{value:g}" for value in x])
            axes.minorticks_off()
        return figure

    caption = (
        "Norms of the parts, mean and standard error. Left: ν = 1/8, α = 8/9, ReLU; right: ν = 3/8, α = 0, Sigmoid."
    )
    return {"fig7": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim how the ratios move, and at the paper's size their values."""
    source, noisy = f"{LRG}, figure 7 and section 4", data["noise"]["norm"]
    residue, spike = (noisy.sel(part=part) / noisy.sel(part="remainder") for part in ("residue_spike", "data_spike"))
    found = [
        Claim("‖S₁‖/‖E‖ at τ² = 4 over τ² = 0", source, *_change(residue), 4.0, ">"),
        Claim("‖S₂‖/‖E‖ at τ² = 4 over τ² = 0", source, *_change(spike), 0.25, "<"),
    ]
    norms = data["penalty"]["norm"]
    moved = norms.sel(part="residue_spike", jacobian=1000.0) / norms.sel(part="residue_spike", jacobian=0.0)
    found.append(Claim("‖S₁‖ at λ = 1000 over λ = 0", source, *mean_and_error(moved), 1.0, "=", 1e-9))
    for part, label in (("jacobian_spike", "λ‖S₃‖"), ("jacobian_remainder", "λ‖E₂‖")):
        grows = norms.sel(part=part, jacobian=1000.0) / norms.sel(part=part, jacobian=10.0)
        found.append(Claim(f"{label} at λ = 1000 over λ = 10", source, *mean_and_error(grows), 100.0, "=", 1e-6))
    second = data["penalty"]["second"]
    found.append(Claim("|⟨u₂, X_Bᵀr⟩| at λ = 1", source, *mean_and_error(second.sel(jacobian=1.0)), 0.8, ">"))
    found.append(Claim("|⟨u₂, X_Bᵀr⟩| at λ = 1000", source, *mean_and_error(second.sel(jacobian=1000.0)), 0.2, "<"))
    if size_of(data["noise"]) == PAPER:
        found += _measured_before(residue, spike, norms)
    return found


def _measured_before(residue: xarray.DataArray, spike: xarray.DataArray, norms: xarray.DataArray) -> list[Claim]:
    """Compare with values of three seeds at the paper's size, within two standard errors of the difference."""
    jacobian = norms.sel(jacobian=1.0)
    rows = [
        *(
            (f"‖S₁‖/‖E‖ at τ² = {x:g}", residue.sel(input_noise=x), *y)
            for x, y in zip(NOISE, NOISE_RESIDUE, strict=True)
        ),
        *((f"‖S₂‖/‖E‖ at τ² = {x:g}", spike.sel(input_noise=x), *y) for x, y in zip(NOISE, NOISE_DATA, strict=True)),
        ("‖S₁‖ under a Jacobian penalty", jacobian.sel(part="residue_spike"), 0.382, 0.044),
        ("‖E₂‖", jacobian.sel(part="jacobian_remainder"), 0.144, 0.007),
    ]
    found = []
    for text, values, expected, scatter in rows:
        mean, error = mean_and_error(values)
        source = f"{LRG}, figure 7; value of 3 seeds measured with this library"
        found.append(Claim(text, source, mean, error, expected, "=", two_errors(scatter, error, values.sizes["seed"])))
    mean, error = mean_and_error(jacobian.sel(part="jacobian_spike"))
    found.append(Claim("‖S₃‖", f"{LRG}, section 4; Gaussian quadrature", mean, error, 1.486))
    return found


def _change(ratio: xarray.DataArray) -> tuple[float, float]:
    return mean_and_error(ratio.sel(input_noise=4.0) / ratio.sel(input_noise=0.0))


FIG7 = Reproduction(
    name="fig7",
    title="Figure 7: regularisers",
    shows="input noise brings the residue spike forward; a Jacobian penalty drowns it in a spike of its own",
    cost="10 s | 45 s",
    setting="NTK scaling, MSE, triple-index targets, labels from the clean inputs; twenty seeds (ten in the quick version).",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
