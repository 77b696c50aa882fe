"""Checks of the arrays that a user gives; what is wrong is said in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable


def real_array(name: str, value: Any, wanted: str) -> np.ndarray:
    """Return finite real numbers as a float64 array: of an array, a tensor on any device, or (nested) lists of numbers.

    Raises
    ------
    InputError
        If it holds anything else: text, truth values, complex numbers, lists of different lengths, NaN; the message
        has the name and what is wanted.
    """
    try:
        array = _of_tensor(value) if isinstance(value, torch.Tensor) else np.asarray(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: lists of different lengths are not allowed; give {wanted}") from None
    if array.dtype.kind == "O" and _only_numbers(array):  # whole numbers beyond 64 bits, or scalars of other libraries
        array = _as_floats(name, array, wanted)
    if array.dtype.kind not in "fiu":
        raise unusable(name, value, f"give {wanted}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        if array.size == 1:
            raise unusable(name, value, f"give {wanted}")
        raise InputError(f"{name}: an entry is NaN or infinite; give {wanted}")
    return array


def _of_tensor(tensor: torch.Tensor) -> np.ndarray:
    dense = tensor.detach().to_dense().cpu()
    return np.asarray((dense.double() if dense.is_floating_point() else dense).numpy())


def _as_floats(name: str, array: np.ndarray, wanted: str) -> np.ndarray:
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InputError(f"{name}: an entry is larger than a float can hold; give {wanted}") from None


def _only_numbers(array: np.ndarray) -> bool:
    return array.size > 0 and all(
        isinstance(entry, (int, float)) and not isinstance(entry, bool) for entry in array.flat
    )
