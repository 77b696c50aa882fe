"""Checks of the numbers that a user gives; what is wrong is said in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradrank.foundation.errors import unusable


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``, or raise an `InputError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise unusable(name, value, f"give a whole number of at least {least}")
    return int(value)


def finite(name: str, value: Any) -> float:
    """Return a finite number, or raise an `InputError`."""
    if not _is_number(value) or not math.isfinite(value):
        raise unusable(name, value, "give a finite number")
    return float(value)


def above_zero(name: str, value: Any) -> float:
    """Return a finite number above 0, or raise an `InputError`."""
    if not _is_number(value) or not 0 < value < math.inf:
        raise unusable(name, value, "give a finite number above 0")
    return float(value)


def at_least_zero(name: str, value: Any) -> float:
    """Return a finite number of at least 0, or raise an `InputError`."""
    if not _is_number(value) or not 0 <= value < math.inf:
        raise unusable(name, value, "give a finite number of at least 0")
    return float(value)


def increasing_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return times of at least 0 in increasing order, shape (T,), or raise an `InputError`."""
    try:
        grid = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (np.diff(grid, prepend=0.0) < 0).any():
        raise unusable("times", times, "give increasing finite times of at least 0")
    return grid


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float, np.integer, np.floating))
