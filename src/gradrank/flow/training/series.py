"""What trackers have recorded so far, one growing series for each name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import InputError

STEP = "step"


@dataclass
class Series:
    """The values of one quantity at the steps where it was looked at."""

    dims: tuple[str, ...]  # of one value; () for a number
    owner: int  # which tracker records it
    steps: list[int] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)

    def stacked(self) -> np.ndarray:
        """Return the values as one array, shape (S, …)."""
        return np.stack(self.values)


def append(
    series: dict[str, Series], recorded: Any, dims: Mapping[str, tuple[str, ...]], owner: int, step: int
) -> None:
    """Add what a tracker returned at a step.

    Raises
    ------
    InputError
        If it is no mapping, a name is taken by another tracker, a value is no array of numbers, or a shape has changed.
    """
    if not isinstance(recorded, Mapping):
        raise InputError(f"trackers: record returned a {type(recorded).__name__}; give a mapping of names to arrays")
    arrays = {str(name): _array(str(name), value) for name, value in recorded.items()}
    if STEP in arrays:
        raise InputError(f"trackers: '{STEP}' is the name of the steps themselves; give the quantity another name")
    for name, array in arrays.items():
        known = series.get(name)
        if known is None:
            named = dims.get(name, tuple(f"{name}_{axis}" for axis in range(array.ndim)))
            if len(named) != array.ndim:
                raise InputError(
                    f"trackers: '{name}' has the shape {array.shape}; give {len(named)} dimensions, {named}"
                )
            continue
        if known.owner != owner:
            raise InputError(f"trackers: two of them record '{name}'; leave one out, or give it another name")
        if known.values[0].shape != array.shape:
            raise InputError(
                f"trackers: '{name}' has the shape {array.shape} after {known.values[0].shape}; give one shape at all steps"
            )
    for name, array in arrays.items():
        named = dims.get(name, tuple(f"{name}_{axis}" for axis in range(array.ndim)))
        one = series.setdefault(name, Series(tuple(named), owner))
        one.steps.append(step)
        one.values.append(array)


def _array(name: str, value: Any) -> np.ndarray:
    """Return a value as an array of its own."""
    try:
        array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    except (TypeError, ValueError):  # lists of different lengths, or a type of numbers that NumPy lacks
        raise InputError(f"trackers: '{name}' is no array; give numbers or arrays of numbers") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"trackers: '{name}' has the type {array.dtype}; give numbers or arrays of numbers")
    return np.array(array, dtype=np.float64 if array.dtype.itemsize > 8 else array.dtype)
