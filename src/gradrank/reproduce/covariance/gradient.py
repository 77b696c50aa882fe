"""What depth does to the first gradient (ours): correlated features bring the data spike forward, shaping keeps it down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.initialization import ShapedReLU
from gradrank.initialization.features_at_depth import features_at_depth
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.statistics import mean_and_error, means

KINDS = ["shaped", "unshaped"]
DEPTHS = [0, 2, 5, 10, 20, 50]
PARTS = {"residue_spike": "‖S₁‖ / ‖E‖", "interpolant": "‖S₁₂‖ / ‖E‖", "data_spike": "‖S₂‖ / ‖E‖"}


def cell(n: int, d: int, width: int, kind: str, depth: int, seed: int) -> dict[str, object]:
    """Return the parts' norms over the remainder's, the mean correlation of the features, and |⟨u₁, q⟩|."""
    shaping = ShapedReLU(0, -1) if kind == "shaped" else ShapedReLU(0, -(width**0.5))
    X = features_at_depth(n, d, depth, width, shaping, seed)
    problem = Problem(
        inputs=ArrayInputs(X=X), targets="triple-index", network=TwoLayer(m=d, activation="tanh"), loss="mse"
    )
    parts = decompose(problem.draw(seed))
    norms = parts.norms()
    unit = X / X.norm(dim=1, keepdim=True)
    mean = float((unit.sum(dim=0).square().sum() - n) / (n * (n - 1)))
    return {
        "ratio": [norms[part] / norms["remainder"] for part in PARTS],
        "correlation": mean,
        "alignment": parts.alignments(k=1).left["q"][0],
    }


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over depth for shaped and plain ReLU."""
    return {
        "gradients": Experiment(
            "covariance-gradient",
            "gradrank.reproduce.covariance.gradient:cell",
            {"kind": KINDS, "depth": DEPTHS},
            list(range(4 if quick else 10)),
            {"ratio": ["part"], "correlation": [], "alignment": []},
            {"part": list(PARTS)},
            {"n": 200, "d": 300, "width": 200} if quick else {"n": 400, "d": 600, "width": 400},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw correlation, alignment and parts against depth."""
    one = data["gradients"]

    def panels() -> Figure:
        figure = Figure(figsize=(9.0, 3.0), layout="constrained")
        x = np.array(DEPTHS) + 1.0
        left, middle, right = figure.subplots(1, 3)
        for axes, output, label in (
            (left, "correlation", "mean correlation of two rows"),
            (middle, "alignment", "|cosine| of $u_1$ with q"),
        ):
            curves = [Series(kind, x, *means(one[output].sel(kind=kind).transpose("depth", "seed"))) for kind in KINDS]
            series_panel(axes, curves, "depth + 1", label, log_x=True)
        curves = [
            Series(f"{name}, {kind}", x, *means(one["ratio"].sel(kind=kind, part=part).transpose("depth", "seed")))
            for part, name in list(PARTS.items())[::2]
            for kind in KINDS
        ]
        series_panel(right, curves, "depth + 1", "norm over the remainder's", log_x=True, log_y=True)
        right.set_ylim(bottom=right.get_ylim()[0] / 10)  # room for the legend
        return figure

    caption = "Features of random inputs at depth, and the first gradient on them; means and standard errors."
    return {"covariance-gradient": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim the collapse, and that the gradient follows it."""
    one, source, deep = data["gradients"], "measured with this library", DEPTHS[-1]
    found = []
    for kind, relation, bound in (("unshaped", ">", 0.9), ("shaped", "<", 0.2)):
        mean, error = mean_and_error(one["correlation"].sel(kind=kind, depth=deep))
        found.append(Claim(f"{kind}: mean correlation at depth {deep}", source, mean, error, bound, relation))  # type: ignore[arg-type]
    mean, error = mean_and_error(one["alignment"].sel(kind="unshaped", depth=deep))
    found.append(Claim(f"unshaped: |⟨u₁, q⟩| at depth {deep}", source, mean, error, 0.99, ">"))
    ratio = one["ratio"].sel(part="residue_spike", depth=deep)
    change = mean_and_error(ratio.sel(kind="unshaped") / ratio.sel(kind="shaped"))
    found.append(Claim(f"residue spike at depth {deep}: ‖S₁‖/‖E‖, unshaped over shaped", source, *change, 1.0, "<"))
    return found


GRADIENT = Reproduction(
    name="covariance-gradient",
    title="What depth does to the first gradient",
    shows="correlation collapse gives the features a data spike, which the first gradient follows; shaping prevents it",
    cost="15 s | 2 min",
    setting="Independent Gaussian inputs go through random ReLU layers, shaped (0, −1) or plain; random linear "
    "features of the last layer are the inputs of a two-layer network (tanh, NTK scaling, triple-index target "
    "of the features), whose first gradient is decomposed by the empirical split.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
