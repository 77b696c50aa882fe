"""What a sweep can record of each measurement: names, dimensions and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.measurement.measure import measure
from gradrank.measurement.record import Measurement
from gradrank.problem.problem import Problem
from gradrank.problem.targets import MultiIndex

PARTS = (
    "gradient",
    "residue_spike",
    "interpolant",
    "data_spike",
    "jacobian_spike",
    "jacobian_remainder",
    "weight_decay",
    "remainder",
)
Shape = Mapping[str, Sequence[str | int]]  # dimension -> its values
Take = Callable[[Measurement, Shape], Mapping[str, Any]]


@dataclass(frozen=True)
class Recorder:
    """Some numbers of a measurement; what it does not have is NaN."""

    description: str
    outputs: Mapping[str, tuple[str, ...]]  # name -> dimensions
    take: Take
    predicts: bool = False  # whether it needs the predicted spectrum


def _by_part(name: str, table: Callable[[Measurement], Mapping[str, float]]) -> Take:
    return lambda one, shape: {name: [table(one).get(str(part), np.nan) for part in shape["part"]]}


def _alignments(one: Measurement, shape: Shape) -> dict[str, Any]:
    found = [one.left_alignments.get(str(name), np.empty(0)) for name in shape["direction"]]
    return {"alignment": [_leading(values, shape) for values in found]}


def _leading(values: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the first k values; NaN where there are fewer."""
    found = np.full(len(shape["index"]), np.nan)
    some = np.asarray(values)[: len(found)]
    found[: len(some)] = some
    return found


def _prediction(one: Measurement, _: Shape) -> dict[str, Any]:
    found = one.spectrum_prediction or {}
    outliers = found.get("outliers")
    return {
        "ks": _number(found.get("ks")),
        "edge": _number(found.get("edge")),
        "outliers": np.nan if outliers is None else len(outliers),
    }


def _exponents(one: Measurement, _: Shape) -> dict[str, Any]:
    names = ("nu", "nu_error", "alpha", "alpha_error")
    return {f"fitted_{name}": _number((one.exponents or {}).get(name)) for name in names}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


RECORDERS = {
    "norms": Recorder(
        "spectral norms of the gradient and of its parts", {"norm": ("part",)}, _by_part("norm", lambda one: one.norms)
    ),
    "shares": Recorder(
        "shares of the parts in ‖G‖_F²", {"share": ("part",)}, _by_part("share", lambda one: one.shares)
    ),
    "singular_values": Recorder(
        "the k leading singular values",
        {"singular_value": ("index",)},
        lambda one, shape: {"singular_value": _leading(one.singular_values, shape)},
    ),
    "alignments": Recorder(
        "|cosines| of the k leading left singular vectors with the named directions, and of random ones",
        {"alignment": ("direction", "index"), "chance": ()},
        lambda one, shape: {**_alignments(one, shape), "chance": one.chance["left"]},
    ),
    "beta": Recorder("β of the draw", {"beta": ()}, lambda one, _: {"beta": one.beta}),
    "prediction": Recorder(
        "predicted spectrum: Kolmogorov-Smirnov distance, edge and number of outliers",
        {"ks": (), "edge": (), "outliers": ()},
        _prediction,
        predicts=True,
    ),
    "spikes": Recorder(
        "number of spikes with a p-value below 0.01",
        {"spikes": ()},
        lambda one, _: {"spikes": _number((one.spikes or {}).get("count"))},
        predicts=True,
    ),
    "exponents": Recorder(
        "ν and α estimated from the inputs, with standard errors",
        {f"fitted_{name}": () for name in ("nu", "nu_error", "alpha", "alpha_error")},
        _exponents,
        predicts=True,
    ),
}


def dimensions(problems: Sequence[Problem], k: int) -> dict[str, list[str | int]]:
    """Return the dimensions that recorders may use, with their values for these problems."""
    links = max((len(p.targets.links) for p in problems if isinstance(p.targets, MultiIndex)), default=0)
    directions = ["q", "bulk_residue", "bulk_labels", *(f"target_{index + 1}" for index in range(links))]
    return {"part": list(PARTS), "index": list(range(1, k + 1)), "direction": list(directions)}


def record(problem: Problem, seed: int, names: Sequence[str], shape: Shape) -> dict[str, np.ndarray]:
    """Measure one draw and return what the recorders of these names take from it."""
    predicts = any(RECORDERS[name].predicts for name in names)
    one = measure(
        problem,
        seed,
        k=len(shape["index"]),
        spectrum="full" if predicts else "top",
        prediction="on" if predicts else "off",
    )
    found: dict[str, np.ndarray] = {}
    for name in names:
        found.update({output: np.asarray(value) for output, value in RECORDERS[name].take(one, shape).items()})
    return found
