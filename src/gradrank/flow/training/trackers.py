"""Trackers: what is recorded along a run, each on a schedule of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch

from gradrank.flow.training.principal_angles import mean_principal_angle
from gradrank.flow.training.schedule import ALWAYS, Schedule
from gradrank.flow.training.state import State
from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError, unusable
from gradrank.gradient.alignments import chance_level, cosines
from gradrank.gradient.centring import mean_derivative
from gradrank.gradient.decomposition import decompose
from gradrank.gradient.directions import left_directions
from gradrank.gradient.factored_gradient import backpropagated_signal
from gradrank.gradient.residue_alignment import draw_beta, residue_alignment
from gradrank.linalg.operators import Dense


@runtime_checkable
class Tracker(Protocol):
    """Something recorded along a run. Write your own with these three; a dataclass is checked against a checkpoint."""

    @property
    def schedule(self) -> Schedule:
        """When to look."""

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the dimensions of each recorded quantity that is not a number."""

    def record(self, state: State) -> Mapping[str, Any]:
        """Return numbers or arrays by name, of the same names and shapes at every step. The state is not to be changed."""


@dataclass(frozen=True)
class Loss:
    """``loss``: (1/n) Σ ℓ(f(x_i), y_i) over the samples trained on, without the regularisers."""

    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def record(self, state: State) -> dict[str, Any]:
        """Return the loss."""
        return {"loss": float(state.draw.loss.value(state.draw.outputs, state.draw.y).mean())}


@dataclass(frozen=True)
class HeldOutLoss:
    """``test_loss``: the mean loss over the samples given to `train` as ``test``."""

    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def record(self, state: State) -> dict[str, Any]:
        """Return the loss over the test samples."""
        test = state.test
        if test is None:
            raise InputError("test: HeldOutLoss needs samples that are kept apart; give train(…, test=draw)")
        return {"test_loss": float(test.loss.value(test.outputs, test.y).mean())}


@dataclass(frozen=True)
class TopSingularValues:
    """The k largest singular values of G_t with their vectors and residuals.

    ``singular_values`` (k,), ``residuals`` (k,) as in `Spectrum`; ``left_vectors`` (k, d) and ``right_vectors`` (k, m), of
    which the signs of each pair are free, NaN for a gradient of zeros.
    """

    k: int = 2
    vectors: bool = True
    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "singular_values": ("index",),
        "residuals": ("index",),
        "left_vectors": ("index", "input"),
        "right_vectors": ("index", "neuron"),
    }

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise unusable("k", self.k, "give a whole number of at least 1")

    def record(self, state: State) -> dict[str, Any]:
        """Return values, residuals and, unless ``vectors`` is False, both sets of vectors."""
        spectrum = state.leading(self.k)
        recorded: dict[str, Any] = {"singular_values": spectrum.values, "residuals": spectrum.residuals}
        if self.vectors:
            left, right = spectrum.vectors()
            unknown = math.nan if spectrum.status == "zero" else 1.0
            recorded |= {"left_vectors": left.T * unknown, "right_vectors": right.T * unknown}
        return recorded


@dataclass(frozen=True, eq=False)
class Alignments:
    """|⟨u₁, b⟩|/‖b‖ of the leading left singular vector of G_t with named directions b of the input space.

    ``alignment_q`` (where there is a spike), ``alignment_bulk_residue`` X_Bᵀr_t, ``alignment_bulk_labels`` X_Bᵀy,
    ``alignment_target_1``, …, ``alignment_start`` (u₁ of G_0), and one for each direction given; beside them
    ``alignment_chance``, √(2/(πd)). NaN where a direction or the gradient is zero.
    """

    directions: Mapping[str, torch.Tensor] = field(default_factory=dict)
    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.directions, Mapping):
            raise unusable("directions", type(self.directions).__name__, "give a mapping of names to vectors of R^d")

    def record(self, state: State) -> dict[str, Any]:
        """Return one cosine for each direction, and the chance level."""
        spectrum = state.leading(1)
        u = spectrum.vectors()[0]
        d = len(u)
        named = left_directions(state.draw, state.split) | {"start": state.start.leading_direction}
        for name, given in self.directions.items():
            if name in named or name == "chance":
                raise InputError(f"directions: '{name}' is recorded already; give the direction another name")
            direction = torch.from_numpy(real_array(f"directions: '{name}'", given, f"a vector of length {d}")).to(u)
            if direction.shape != (d,):
                raise InputError(
                    f"directions: '{name}' has the shape {tuple(direction.shape)}; give a vector of length d = {d}"
                )
            named[name] = direction
        unknown = math.nan if spectrum.status == "zero" else 1.0
        recorded = {f"alignment_{name}": float(cosines(u, b)) * unknown for name, b in named.items()}
        return recorded | {"alignment_chance": chance_level(d)}


@dataclass(frozen=True)
class Parts:
    """Spectral norms and shares of the gradient's named parts with the present weights.

    ``norm_gradient``, ``norm_residue_spike``, … and ``share_residue_spike``, …, ⟨part, G⟩_F/‖G‖_F², which add to one (NaN for a
    gradient of zeros); the names are those of `decompose`, and so are the split and the centring.
    """

    split: str = "auto"
    centring: str = "auto"
    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def record(self, state: State) -> dict[str, Any]:
        """Return the norm and the share of each part."""
        parts = decompose(state.draw, split=self.split, centring=self.centring)
        shares = parts.shares() or dict.fromkeys(parts, math.nan)
        norms = {f"norm_{name}": norm for name, norm in parts.norms().items()}
        return norms | {f"share_{name}": share for name, share in shares.items()}


@dataclass(frozen=True)
class Regime:
    """The quantities that LRG, section 3, tells the regimes apart by, with the present weights.

    ``residue_norm`` ‖r‖/√n, ``residue_alignment`` |zᵀr|/(√n‖r‖), ``beta`` of this draw, ``mean_derivative`` (1/m) Σ|μ_j|,
    ``weight_norm`` ‖W‖ and ``weight_alignment`` √(mean (w_jᵀq)²), which independent rows on the sphere have at 1/√d. What
    needs a spike is NaN where there is none.
    """

    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def record(self, state: State) -> dict[str, Any]:
        """Return the six quantities."""
        draw, split = state.draw, state.split
        kind = "population" if split.kind == "oracle" else "empirical"
        mean = mean_derivative(draw, kind, backpropagated_signal(draw)[1]).value
        beta, _ = draw_beta(split, draw.residue)
        alignment, weights = math.nan, math.nan
        if split.has_spike:
            alignment = residue_alignment(split.scores, draw.residue)
            weights = float((state.W @ split.direction).double().square().mean().sqrt())
        return {
            "residue_norm": float(torch.linalg.vector_norm(draw.residue, dtype=torch.float64)) / len(draw.y) ** 0.5,
            "residue_alignment": alignment,
            "beta": math.nan if beta is None else beta,
            "mean_derivative": float(mean.abs().mean()),
            "weight_norm": Dense(state.W).norm(),
            "weight_alignment": weights,
        }


@dataclass(frozen=True, eq=False)
class PrincipalAngles:
    """``principal_angle``: the mean angle, in degrees, between the column spaces of W_t and of another W, or of W_0.

    Costs three dense factorisations of W: give it a sparse schedule. ``name`` tells several of them apart.
    """

    reference: torch.Tensor | np.ndarray | str = "start"
    name: str = "principal_angle"
    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __post_init__(self) -> None:
        if isinstance(self.reference, str) and self.reference != "start":
            raise unusable("reference", self.reference, "give 'start' or a weight matrix (m, d)")

    def record(self, state: State) -> dict[str, Any]:
        """Return the mean angle."""
        reference = state.start.draw.network.W if isinstance(self.reference, str) else self.reference
        return {self.name: mean_principal_angle(state.W, reference)}


@dataclass(frozen=True)
class StableRank:
    """``stable_rank``: ‖G_t‖_F²/σ₁², NaN for a gradient of zeros."""

    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def record(self, state: State) -> dict[str, Any]:
        """Return the stable rank of the gradient."""
        largest = float(state.leading(1).values[0])
        if largest == 0.0:
            return {"stable_rank": math.nan}
        return {"stable_rank": float((state.gradient / largest).square().sum(dtype=torch.float64))}


@dataclass(frozen=True)
class Weights:
    """``weights`` (m, d): W_t itself, for comparing runs; give it a sparse schedule."""

    schedule: Schedule = ALWAYS
    dims: ClassVar[dict[str, tuple[str, ...]]] = {"weights": ("neuron", "input")}

    def record(self, state: State) -> dict[str, Any]:
        """Return the weights."""
        return {"weights": state.W}
