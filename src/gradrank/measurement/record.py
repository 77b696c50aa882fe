"""`Measurement`: everything that was measured on one draw, with what can be trusted and what cannot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.gradient.regime import Condition, Regime
from gradrank.measurement.strict_json import dumps, strict
from gradrank.problem.problem import Problem

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

SCHEMA = "gradrank.measurement/2"
BETA_NOTE = "one draw's value, −2 log(|zᵀr|/(√n‖r‖))/log d; not an estimate of the exponent"


@dataclass(frozen=True, eq=False)
class Measurement:
    """The low-rank structure of one gradient. Numbers that cannot be trusted are NaN here and null in JSON, see `status`."""

    problem: Problem | None  # None where it held a function or an array and was loaded from a file
    description: dict[str, Any]  # of the problem, in plain data
    seed: int
    shape: tuple[int, int, int]  # (n, d, m)
    norms: dict[str, float]  # "gradient" and every part: spectral norms
    shares: dict[str, float]  # part -> ⟨part, G⟩_F/‖G‖_F², adding to one; empty for a gradient of zeros
    singular_values: np.ndarray  # (K,) descending: all of them, or the leading ones
    full_spectrum: bool  # whether singular_values holds all min(d, m)
    left_vectors: np.ndarray  # (d, k) leading left singular vectors
    right_vectors: np.ndarray  # (m, k)
    residuals: np.ndarray  # (k,) residual norm of each leading triplet
    converged: bool
    left_alignments: dict[str, np.ndarray]  # direction of R^d -> (k,) |cosines|
    right_alignments: dict[str, np.ndarray]  # direction of R^m -> (k,)
    part_alignments: dict[str, dict[str, float]]  # rank-one part -> "left", "right": |cosine| with u₁ and v₁
    chance: dict[str, float]  # "left", "right": |cosine| of random directions
    beta: float
    regime: Regime
    spectrum_prediction: dict[str, Any] | None  # edge, outliers beside the measured ones, KS distance; None if withheld
    prediction_curve: np.ndarray  # (2, points) singular values and their predicted number per unit; (2, 0) if withheld
    spikes: dict[str, Any] | None  # count, null, level, p_values, assumption
    exponents: dict[str, Any] | None  # ν and α of the inputs with standard errors
    reconstruction_error: float
    split: dict[str, Any]  # kind, strength ζ
    centring: dict[str, Any]  # kind, error of μ_j
    seconds: float
    environment: dict[str, str]  # versions, device, dtype
    status: dict[str, str] = field(default_factory=dict)  # dotted name -> why it is withheld or doubtful

    @property
    def ratios(self) -> dict[str, float]:
        """Each norm over the norm of the remainder; empty where the remainder is zero to rounding."""
        if "ratios" in self.status:
            return {}
        return {name: norm / self.norms["remainder"] for name, norm in self.norms.items()}

    @property
    def k(self) -> int:
        """The number of leading triplets that were computed with their vectors."""
        return int(self.residuals.size)

    @property
    def alignments(self) -> dict[str, dict[str, float]]:
        """Leading vector ("u1", … left; "v1", … right) -> direction -> |cosine|."""
        sides = (("u", self.left_alignments), ("v", self.right_alignments))
        return {
            f"{letter}{index + 1}": {name: float(values[index]) for name, values in table.items()}
            for letter, table in sides
            for index in range(self.k)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain data with every withheld number as None and its reason under ``status``."""
        status = dict(self.status)
        body = {
            "schema": SCHEMA,
            "problem": self.description,
            "seed": self.seed,
            "shape": dict(zip(("n", "d", "m"), self.shape, strict=True)),
            "norms": self.norms,
            "ratios": self.ratios or None,
            "shares": self.shares or None,
            "singular_values": self.singular_values.tolist(),
            "full_spectrum": self.full_spectrum,
            "residuals": self.residuals.tolist(),
            "converged": self.converged,
            "alignments": self.alignments,
            "part_alignments": self.part_alignments,
            "chance": self.chance,
            "beta": self.beta,
            "beta_note": BETA_NOTE,
            "regime": asdict(self.regime),
            "spectrum_prediction": self.spectrum_prediction,
            "spikes": self.spikes,
            "exponents": self.exponents,
            "reconstruction_error": self.reconstruction_error,
            "split": self.split,
            "centring": self.centring,
            "seconds": self.seconds,
            "environment": self.environment,
        }
        plain = strict(body, status)
        return {**plain, "status": status or {"measurement": "ok"}}

    def to_json(self) -> str:
        """Return a strict JSON string; the keys are those of `to_dict`."""
        return dumps(self.to_dict())

    def to_xarray(self) -> xarray.Dataset:
        """Return the arrays with named dimensions; the scalars and the problem are in the attributes, as JSON."""
        from gradrank.measurement.labelled import dataset

        return dataset(self)

    def plot(self) -> Figure:
        """Return a figure: the histogram of singular values with the spikes marked, and the alignments."""
        from gradrank.measurement.drawing import overview

        return overview(self)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``measurement.json``, ``arrays.zarr``, figures and ``index.html``; return the page's path.

        Everything is written beside the folder and moved into place at the end: an interrupted call leaves nothing.

        Raises
        ------
        InputError
            If the folder holds something and ``overwrite`` is not given.
        StorageError
            If the disk refuses.
        """
        from gradrank.measurement.storage import save

        return save(self, Path(directory), overwrite=overwrite)


def measurement_from_parts(body: dict[str, Any], arrays: dict[str, Any]) -> Measurement:
    """Rebuild a measurement from the JSON body and the stored arrays."""
    try:
        problem = Problem.from_mapping(body["problem"]) if not body["status"].get("problem") else None
    except ValueError:
        problem = None
    regime = dict(body["regime"])
    regime["conditions"] = tuple(Condition(**condition) for condition in regime["conditions"])
    status = {key: reason for key, reason in body["status"].items() if key != "measurement"}

    def number(value: float | None) -> float:
        return float("nan") if value is None else float(value)

    return Measurement(
        problem=problem,
        description=body["problem"],
        seed=body["seed"],
        shape=(body["shape"]["n"], body["shape"]["d"], body["shape"]["m"]),
        norms={name: number(value) for name, value in body["norms"].items()},
        shares=body["shares"] or {},
        singular_values=arrays["singular_values"],
        full_spectrum=body["full_spectrum"],
        left_vectors=arrays["left_vectors"],
        right_vectors=arrays["right_vectors"],
        residuals=arrays["residuals"],
        converged=body["converged"],
        left_alignments=arrays["left_alignments"],
        right_alignments=arrays["right_alignments"],
        part_alignments={
            name: {side: number(value) for side, value in table.items()}
            for name, table in body["part_alignments"].items()
        },
        chance=body["chance"],
        beta=number(body["beta"]),
        regime=Regime(**regime),
        spectrum_prediction=body["spectrum_prediction"],
        prediction_curve=arrays["prediction_curve"],
        spikes=body["spikes"],
        exponents=body["exponents"],
        reconstruction_error=number(body["reconstruction_error"]),
        split=body["split"],
        centring=body["centring"],
        seconds=body["seconds"],
        environment=body["environment"],
        status=status,
    )
