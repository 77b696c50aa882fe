"""Checks of the numbers that a user gives; what is wrong is said in one line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import unusable

MOST = 2**63 - 1
LARGEST = 1e50  # in size: the formulas take powers


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``, in 64 bits, or raise an `InputError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise unusable(name, value, f"give a whole number of at least {least}")
    if value > MOST:
        raise unusable(name, int(value), f"give one of at most {MOST}")
    return int(value)


def finite(name: str, value: Any) -> float:
    """Return a finite number, or raise an `InputError`."""
    return _number(name, value, lambda x: -math.inf < x < math.inf, "give a finite number")


def above_zero(name: str, value: Any) -> float:
    """Return a finite number above 0, or raise an `InputError`."""
    return _number(name, value, lambda x: 0 < x < math.inf, "give a finite number above 0")


def at_least_zero(name: str, value: Any) -> float:
    """Return a finite number of at least 0, or raise an `InputError`."""
    return _number(name, value, lambda x: 0 <= x < math.inf, "give a finite number of at least 0")


def finite_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return times of at least 0 in any order, shape (T,), or raise an `InputError`."""
    return _times(times, "finite times of at least 0")


def increasing_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return times of at least 0 in increasing order, shape (T,), or raise an `InputError`."""
    wanted = "increasing finite times of at least 0"
    grid = _times(times, wanted)
    if (np.diff(grid) < 0).any():
        raise unusable("times", times, f"give {wanted}")
    return grid


def _times(times: Sequence[float] | np.ndarray, wanted: str) -> np.ndarray:
    grid = real_array("times", times, wanted)
    if grid.ndim != 1 or grid.size == 0 or (grid < 0).any():
        raise unusable("times", times, f"give {wanted}")
    return grid


def _number(name: str, value: Any, allowed: Callable[[Any], bool], wanted: str) -> float:
    known = not isinstance(value, bool) and isinstance(value, (int, float, np.integer, np.floating))
    if not known or not allowed(value):
        raise unusable(name, value, wanted)
    if abs(value if isinstance(value, int) else float(value)) > LARGEST:
        raise unusable(name, value, f"give one of at most {LARGEST:g}: powers of larger ones overflow")
    return float(value)
