"""Figure 8: real data. Where the data spike wins, noise brings the residue spike back; where not, a Jacobian penalty brings it.

Two data sets take the two roles. Those of the paper are used where the user has them: see `fig8`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.gradient.decomposition import decompose
from gradrank.problem.data_sets import load_data_set
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import DataSetInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction
from gradrank.reproduce.sources import LRG
from gradrank.reproduce.statistics import mean_and_error

ACTIVATIONS = ["sigmoid", "tanh", "relu"]
DIRECTIONS = {"q": "q", "bulk_residue": "$X_B^T r$"}
SOURCE = f"{LRG}, figure 8"
STAND_IN = "photo-embeddings"


@dataclass(frozen=True)
class Role:
    """A data set in one of the two roles of the figure."""

    label: str
    name: str  # of the data set
    standardise: str
    folder: str | None = None
    source: str = SOURCE  # of the claims
    about: str = ""  # for the figure's setting
    least_residue: float = 0.85  # alignment with the residue, of data that the residue spike should win

    def inputs(self) -> dict[str, str]:
        """Return the fields of `DataSetInputs`."""
        named = {"name": self.name, "standardise": self.standardise}
        return named if self.folder is None else {**named, "folder": self.folder}


MNIST_SAMPLE = Role(
    "mnist", "mnist-5k", "symmetric-range", about="5000 MNIST images (every one of the training set) scaled to [−1, 1]"
)
DIGITS = Role(
    "digits",
    "digits",
    "zscore",
    source=f"{SOURCE}; digits in the place of the embeddings",
    about="scikit-learn's digits, standardised, in the place of CIFAR-10 embeddings, whose spike is small too",
)


def cell(n: int, m: int, cases: dict[str, Any], case: str, activation: str, seed: int) -> dict[str, object]:
    """Return |⟨u₁, ·⟩| for the leading direction q of the data and for the residue, one class against the others."""
    problem = Problem(
        inputs=DataSetInputs(n=n, **cases[case]["inputs"]),
        targets="one-vs-rest",
        network=TwoLayer(m=m, activation=activation),
        regularisers=Regularisers(**cases[case]["regularisers"]),
    )
    found = decompose(problem.draw(seed)).alignments(k=1)
    return {"alignment": [found.left[name][0] for name in DIRECTIONS], "chance": found.chance_left}


def _cases(strong: Role, weak: Role) -> dict[str, Any]:
    """Return the four panels: each role without and with the regulariser that turns it."""
    none: dict[str, float] = {}
    return {
        strong.label: {"inputs": strong.inputs(), "regularisers": none},
        f"{strong.label}, τ² = 100": {"inputs": strong.inputs(), "regularisers": {"input_noise": 100.0}},
        weak.label: {"inputs": weak.inputs(), "regularisers": none},
        f"{weak.label}, λ = 1e5": {"inputs": weak.inputs(), "regularisers": {"jacobian": 1e5}},
    }


def _experiments(strong: Role, weak: Role, quick: bool) -> dict[str, Experiment]:
    cases = _cases(strong, weak)
    return {
        "alignments": Experiment(
            name="fig8",
            function="gradrank.reproduce.low_rank.fig8:cell",
            grid={"case": list(cases), "activation": ACTIVATIONS},
            seeds=list(range(4 if quick else 10)),
            outputs={"alignment": ["direction"], "chance": []},
            coordinates={"direction": list(DIRECTIONS)},
            fixed={"n": 400 if quick else 750, "m": 600 if quick else 1250, "cases": cases},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw the alignments: a panel for each case."""
    one = data["alignments"]
    cases = [str(case) for case in one["case"].values]

    def panels() -> Figure:
        figure = Figure(figsize=(8.8, 2.6), layout="constrained")
        for axes, case in zip(figure.subplots(1, len(cases), sharey=True), cases, strict=True):
            for shift, direction, marker, grey in ((-0.1, "q", "s", "0.5"), (0.1, "bulk_residue", "o", "0.0")):
                pairs = [
                    mean_and_error(one["alignment"].sel(case=case, activation=a, direction=direction))
                    for a in ACTIVATIONS
                ]
                x = np.arange(len(ACTIVATIONS)) + shift
                mean, error = np.array(pairs).T
                axes.errorbar(
                    x, mean, yerr=error, fmt=marker, color=grey, capsize=3, markersize=4, label=DIRECTIONS[direction]
                )
            axes.axhline(float(one["chance"].sel(case=case).mean()), linestyle=":", color="0.4", label="chance")
            axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS)
            axes.set_title(case, loc="left", fontsize=8)
            axes.set_ylim(0, 1.05)
            if case == cases[0]:
                axes.set_ylabel("|cosine| with $u_1$")
                axes.legend(loc="center left")
        return figure

    caption = "Alignment of u₁ with the leading direction q of the data and with the residue; mean and standard error."
    return {"fig8": Plot(styled(panels), caption)}


def _claims(strong: Role, weak: Role, data: Data) -> Sequence[Claim]:
    """Claim who wins in each case."""
    values = data["alignments"]["alignment"]
    plain, noisy, small, penalised = _cases(strong, weak)

    def mean(case: str, direction: str, activation: str) -> tuple[float, float]:
        return mean_and_error(values.sel(case=case, direction=direction, activation=activation))

    found = [
        Claim(f"{plain}: |⟨u₁, q⟩|, {activation}", strong.source, *mean(plain, "q", activation), 0.9, ">")
        for activation in ACTIVATIONS
    ]
    for activation in ACTIVATIONS:
        chosen = values.sel(direction="bulk_residue", activation=activation)
        rise = mean_and_error(chosen.sel(case=noisy) - chosen.sel(case=plain))
        found.append(Claim(f"{plain}: what noise adds to |⟨u₁, X_Bᵀr⟩|, {activation}", strong.source, *rise, 0.2, ">"))
    for activation in ACTIVATIONS:
        aligned = mean(small, "bulk_residue", activation)
        found.append(Claim(f"{small}: |⟨u₁, X_Bᵀr⟩|, {activation}", weak.source, *aligned, weak.least_residue, ">"))
    text = f"{small} under a Jacobian penalty: |⟨u₁, q⟩|, sigmoid"
    found.append(Claim(text, weak.source, *mean(penalised, "q", "sigmoid"), 0.8, ">"))
    return found


def fig8(mnist: Path | None = None, embeddings: str | None = None) -> Reproduction:
    """Return the figure for the data that are there.

    Parameters
    ----------
    mnist
        Folder of MNIST's idx files; else a sample of MNIST that a package holds.
    embeddings
        Folder that holds cifar10-resnet18.npz (``scripts/cifar10_embeddings.py`` computes it), or "photo-embeddings"
        for the stand-in of the project; else scikit-learn's digits.

    Raises
    ------
    InputError
        If the data are not there.
    """
    strong, weak = MNIST_SAMPLE, DIGITS
    if mnist is not None:
        about = "MNIST's 60,000 training images scaled to [−1, 1]"
        strong = Role("mnist", "mnist", "symmetric-range", _found("mnist", mnist), about=about)
    if embeddings == STAND_IN:
        _found(STAND_IN, None)
        source = f"{SOURCE}; embeddings of photographs in the place of CIFAR-10's"
        about = "EfficientNet-Lite0 embeddings of patches of ten photographs, standardised, in the place of CIFAR-10 embeddings"
        weak = Role("photos", STAND_IN, "zscore", source=source, about=about, least_residue=2**-0.5)
    elif embeddings is not None:
        folder = _found("cifar10-embeddings", Path(embeddings))
        about = "ResNet-18 embeddings of CIFAR-10's training images, standardised"
        weak = Role("cifar10", "cifar10-embeddings", "zscore", folder, about=about, least_residue=2**-0.5)
    return Reproduction(
        name="fig8",
        title="Figure 8: real data",
        shows="MNIST follows its leading direction, and the residue under strong noise; standardised digits the reverse",
        cost="10 s | 20 s",
        setting=f"{strong.about}, and {weak.about}; one class against the others, NTK scaling, MSE. q is the data's leading "
        "right singular vector. The penalty acts through σ″: it does nothing to ReLU, and little to the odd tanh.",
        experiments=partial(_experiments, strong, weak),
        draw=draw,
        claims=partial(_claims, strong, weak),
    )


def _found(name: str, folder: Path | None) -> str:
    """Return the folder, absolute, once the data set can be read from it."""
    field = "embeddings" if "embeddings" in name else name
    load_data_set(name, folder, field)
    return "" if folder is None else str(folder.resolve())
