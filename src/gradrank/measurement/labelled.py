"""Measurements as xarray datasets with named dimensions, and back."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray

from gradrank.measurement.record import Measurement
from gradrank.measurement.strict_json import dumps


def dataset(one: Measurement, *, vectors: bool = True) -> xarray.Dataset:
    """Return one measurement: dimensions part, index (of a singular value), vector (of a leading triplet), direction."""
    parts, left, right = (_text(names) for names in (one.norms, one.left_alignments, one.right_alignments))
    variables: dict[str, Any] = {
        "norm": ("part", np.array([one.norms[name] for name in parts])),
        "share": ("part", np.array([one.shares.get(name, np.nan) for name in parts])),
        "singular_value": ("index", one.singular_values),
        "residual": ("vector", one.residuals),
        "left_alignment": (("left_direction", "vector"), _rows(one.left_alignments, one.k)),
        "right_alignment": (("right_direction", "vector"), _rows(one.right_alignments, one.k)),
        "beta": ((), one.beta),
        "predicted_density": (("quantity", "point"), one.prediction_curve),
    }
    if vectors:
        variables["left_vector"] = (("input", "vector"), one.left_vectors)
        variables["right_vector"] = (("neuron", "vector"), one.right_vectors)
    coordinates = {
        "part": parts,
        "left_direction": left,
        "quantity": _text(("singular_value", "number_density")),
        "right_direction": right,
        "vector": np.arange(1, one.k + 1),
        "index": np.arange(1, one.singular_values.size + 1),
    }
    body = one.to_dict()
    kept = {
        key: body[key] for key in body if key not in ("singular_values", "alignments", "norms", "shares", "residuals")
    }
    return xarray.Dataset(variables, coordinates, {"measurement": dumps(kept)})


def stacked(measurements: Sequence[Measurement]) -> xarray.Dataset:
    """Return several seeds of one problem along a dimension ``seed``."""
    seeds = xarray.DataArray([one.seed for one in measurements], dims="seed", name="seed")
    return xarray.concat(
        [dataset(one, vectors=False) for one in measurements], dim=seeds, join="outer", combine_attrs="drop_conflicts"
    )


def arrays_of(data: xarray.Dataset) -> dict[str, Any]:
    """Return the arrays of a measurement from its dataset."""
    return {
        "singular_values": data["singular_value"].values,
        "residuals": data["residual"].values,
        "prediction_curve": data["predicted_density"].values,
        "left_vectors": data["left_vector"].values,
        "right_vectors": data["right_vector"].values,
        "left_alignments": _table(data, "left_direction", "left_alignment"),
        "right_alignments": _table(data, "right_direction", "right_alignment"),
    }


def _text(names: Iterable[str]) -> np.ndarray:
    """Return names in NumPy's variable-length strings, which Zarr v3 specifies; fixed-length ones it does not."""
    return np.array(list(names), dtype=np.dtypes.StringDType())


def _rows(table: dict[str, np.ndarray], k: int) -> np.ndarray:
    return np.array(list(table.values())) if table else np.zeros((0, k))


def _table(data: xarray.Dataset, direction: str, variable: str) -> dict[str, np.ndarray]:
    names = [str(name) for name in data[direction].values]
    return dict(zip(names, data[variable].values, strict=True))
