"""Spike of the weights after one step: top singular value and overlap with the teacher, theory against simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.figure import Figure

from gradrank.experiments.experiment import Experiment
from gradrank.onestep.spike_simulation import simulate_weight_spike
from gradrank.onestep.spike_theory import SpikeTheory, spike_theory
from gradrank.report.claims import Claim
from gradrank.report.figures import styled
from gradrank.reproduce.reproduction import Data, Plot, Reproduction, fixed_of
from gradrank.reproduce.sources import BA
from gradrank.reproduce.statistics import mean_and_error, means

MULTIPLES = [0.0, 0.5, 0.9, 1.1, 1.5, 2.0, 3.0]  # of the threshold's η
NEAR = (0.85, 1.2)  # multiples at which finite sizes approach the limit too slowly to be compared with it


@dataclass(frozen=True)
class Case:
    """A pair of functions with its ratios and label noise."""

    activation: str
    teacher: str
    psi1: float
    psi2: float
    noise: float

    def theory(self, eta: float) -> SpikeTheory:
        """Return the prediction for a step η."""
        return spike_theory(eta, self.psi1, self.psi2, self.activation, self.teacher, self.noise)

    @property
    def critical(self) -> float:
        """The η at which θ₁ = ψ₂^¼: θ₁ is proportional to η."""
        return float(self.psi2**0.25) / self.theory(1.0).theta1


CASES = {
    "tanh / tanh, ψ = (2, 1)": Case("tanh", "tanh", 2.0, 1.0, 0.1**0.5),
    "erf / relu, ψ = (2, 2)": Case("erf", "relu", 2.0, 2.0, 0.1**0.5),
    "tanh / erf, ψ = (4, ½)": Case("tanh", "erf", 4.0, 0.5, 0.5),
}


def cell(d: int, case: str, multiple: float, seed: int) -> dict[str, object]:
    """Return the top singular value of W₁ and its overlap with the teacher."""
    chosen = CASES[case]
    found = simulate_weight_spike(multiple * chosen.critical, **asdict(chosen), d=d, seeds=[seed])
    return {"singular_value": found.singular_values[0], "overlap": found.overlaps[0]}


def experiments(quick: bool) -> dict[str, Experiment]:
    """Return the grid over cases and steps."""
    return {
        "spikes": Experiment(
            name="onestep-alignment",
            function="gradrank.reproduce.onestep.alignment:cell",
            grid={"case": list(CASES), "multiple": MULTIPLES},
            seeds=list(range(6 if quick else 12)),
            outputs={"singular_value": [], "overlap": []},
            coordinates={},
            fixed={"d": 400 if quick else 1200},
        )
    }


def draw(data: Data) -> dict[str, Plot]:
    """Draw both against η over its threshold: curves of the theory, points of the simulation."""
    one = data["spikes"]

    def panels() -> Figure:
        figure = Figure(figsize=(8.6, 4.4), layout="constrained")
        grid = figure.subplots(2, len(CASES), sharex=True)
        fine = np.linspace(0, max(MULTIPLES), 200)
        for column, (name, case) in enumerate(CASES.items()):
            theory = [case.theory(multiple * case.critical) for multiple in fine]
            curves = ([t.singular_value for t in theory], [t.overlap for t in theory])
            for axes, output, curve in zip(grid[:, column], ("singular_value", "overlap"), curves, strict=True):
                axes.plot(fine, curve, color="0.5", label="theory")
                mean, error = means(one[output].sel(case=name).transpose("multiple", "seed"))
                axes.errorbar(
                    MULTIPLES, mean, yerr=error, fmt="o", color="0.0", markersize=3, capsize=2, label="simulation"
                )
            grid[0, column].set_title(name, loc="left", fontsize=9)
            grid[1, column].set_xlabel("η over its threshold")
            grid[1, column].set_ylim(bottom=0)
        grid[0, 0].set_ylabel("$s_1(W_1)$")
        grid[1, 0].set_ylabel("$\\langle u_1, \\beta\\rangle^2$")
        grid[1, 0].legend()
        return figure

    caption = "Largest singular value of W₁ and the squared overlap of its vector with the teacher; means and standard errors."
    return {"onestep-alignment": Plot(styled(panels), caption)}


def claims(data: Data) -> Sequence[Claim]:
    """Claim the theory away from the threshold, and that there is no spike below."""
    one = data["spikes"]
    full = fixed_of(one)["d"] >= 1000
    found = []
    for name, case in CASES.items():
        for multiple in [m for m in MULTIPLES if m and not NEAR[0] <= m <= NEAR[1]]:
            theory, chosen = case.theory(multiple * case.critical), {"case": name, "multiple": multiple}
            mean, error = mean_and_error(one["singular_value"].sel(chosen))
            band = (0.02 if full else 0.04) * theory.singular_value
            text = f"{name}, η = {multiple:g} × threshold"
            found.append(Claim(f"{text}: s₁(W₁)", BA, mean, error, theory.singular_value, "=", band))
            mean, error = mean_and_error(one["overlap"].sel(chosen))
            found.append(Claim(f"{text}: ⟨u₁, β⟩²", BA, mean, error, theory.overlap, "=", 0.03))
    return found


ALIGNMENT = Reproduction(
    name="onestep-alignment",
    title="One step: the spike of the inner weights",
    shows="top singular value of W₁ and its overlap with the teacher against η, theory and simulation",
    cost="15 s | 4 min",
    setting="Gaussian inputs, y = f*(βᵀx) + noise; one step of size η = Θ(1) on n₀ = ψ₁d samples, N(0, 1/d) "
    "inner and Gaussian outer weights. d = 1200 (400 in the quick version). Close to the threshold finite sizes "
    "approach the limit slowly: no claims there.",
    experiments=experiments,
    draw=draw,
    claims=claims,
)
