"""Figure 1: the singular values of the gradient against the spike exponent ν, for W uniform and W aligned with the spike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.report.claims import Claim
from gradrank.report.figures import spectrum_panel, styled
from gradrank.reproduce.low_rank.problems import PAPER, size_of, sizes, synthetic
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error, two_errors

NUS = [0.0, 0.125, 0.25, 0.375]
ACTIVATIONS = ["sigmoid", "tanh", "elu", "softplus"]
LOSSES = ["mse", "logistic"]
INNER = ["sphere", "aligned"]
GAP = 1.5  # ratio of neighbouring singular values that makes the upper ones outliers
LEADING = 10


def cell(size: list[int], nu: float, activation: str, loss: str, inner: str, seed: int) -> dict[str, object]:
    """Return all singular values of one gradient and the norm of its remainder."""
    draw = synthetic(size, nu=nu, activation=activation, loss=loss, inner=inner).draw(seed)
    parts = decompose(draw)
    return {"singular_value": torch.linalg.svdvals(parts.gradient.dense()), "remainder": parts["remainder"].norm()}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over ν, activation, loss and inner weights."""
    n, d, m = sizes(quick)
    return {
        "spectra": Experiment(
            name="fig1",
            function="gradrank.reproduce.low_rank.fig1:cell",
            grid={"nu": NUS, "activation": ACTIVATIONS, "loss": LOSSES, "inner": INNER},
            seeds=[0, 1, 2],
            outputs={"singular_value": ["index"], "remainder": []},
            coordinates={"index": list(range(1, min(d, m) + 1))},
            fixed={"size": [n, d, m]},
        )
    }


def outliers(values: np.ndarray) -> int:
    """Return how many leading values stand above the last gap of a factor 1.5 within the first ten."""
    ratios = values[:LEADING] / values[1 : LEADING + 1]
    wide = np.flatnonzero(ratios > GAP)
    return int(wide[-1]) + 1 if wide.size else 0


def draw(data: Data) -> dict[str, Plot]:
    """Draw the spectra of the first seed for MSE: a row for each kind of W, a column for each ν."""
    spectra = data["spectra"]["singular_value"]

    def one(activation: str) -> Figure:
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        grid = figure.subplots(2, len(NUS), sharex=True, sharey=True, squeeze=False)
        for row, inner in enumerate(INNER):
            for column, nu in enumerate(NUS):
                axes = grid[row, column]
                values = spectra.sel(nu=nu, activation=activation, loss="mse", inner=inner).isel(seed=0).values
                spectrum_panel(axes, values)
                axes.set_title(f"W {inner}, ν = {nu:g}", loc="left", fontsize=8)
        figure.supxlabel("singular value", fontsize=9)
        figure.supylabel("count", fontsize=9)
        return figure

    return {
        f"fig1-{activation}": Plot(
            styled(lambda activation=activation: one(activation)),  # type: ignore[misc]
            f"Singular values of the first gradient, {activation}, NTK scaling, MSE, α = 0, one seed; ticks: the first four.",
        )
        for activation in ACTIVATIONS
    }


def claims(data: Data) -> Sequence[Claim]:
    """One outlier below ν = ¼, two from there on with aligned W; at the paper's size also how far they stand off."""
    one = data["spectra"]
    values, remainder = one["singular_value"], one["remainder"]
    found = []
    for loss in LOSSES:
        below = values.sel(activation="sigmoid", loss=loss, inner="sphere", nu=[0.0, 0.125])
        found.append(_count(below, 1, f"one outlier for ν < ¼, sigmoid, {loss}, W uniform"))
        above = values.sel(activation="sigmoid", loss=loss, inner="aligned", nu=[0.25, 0.375])
        found.append(_count(above, 2, f"two outliers for ¼ ≤ ν < ½, sigmoid, {loss}, W aligned"))
    if size_of(one) == PAPER:
        ratios = values.sel(activation="sigmoid", loss="mse") / remainder.sel(activation="sigmoid", loss="mse")
        wanted = [("sphere", 0.0, 1, 37.3, 3.0), ("sphere", 0.0, 2, 0.988, 0.010)]
        wanted += [
            ("aligned", 0.375, 1, 3.73, 1.26),
            ("aligned", 0.375, 2, 0.39, 0.05),
            ("aligned", 0.375, 3, 0.14, 0.04),
        ]
        for inner, nu, index, expected, scatter in wanted:
            mean, error = mean_and_error(ratios.sel(inner=inner, nu=nu, index=index))
            text = f"σ{index}/‖E‖, sigmoid, MSE, W {inner}, ν = {nu:g}"
            found.append(
                Claim(
                    text,
                    f"{LRG}, figure 1; value measured with this library",
                    mean,
                    error,
                    expected,
                    "=",
                    two_errors(scatter, error, ratios.sizes["seed"]),
                )
            )
    return found


def _count(values: xarray.DataArray, expected: int, text: str) -> Claim:
    """Claim the mean number of outliers over exponents and seeds."""
    counts = xarray.apply_ufunc(outliers, values, input_core_dims=[["index"]], vectorize=True)
    mean, error = mean_and_error(counts)
    return Claim(text, f"{LRG}, figure 1 and theorem 3.1", mean, error, expected, "=", 0.34)


FIG1 = Reproduction(
    name="fig1",
    title="Figure 1: spectrum against the size of the spike",
    shows="singular values against ν: one outlier below ¼, two above with W aligned to the spike",
    cost="15 s | 1 min",
    setting="NTK scaling, triple-index targets, α = 0; W uniform on the sphere, and W + n^(−¼)1qᵀ with unit rows. The number of "
    f"outliers is counted above the last gap of a factor {GAP} among the first ten singular values.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
