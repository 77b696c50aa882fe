"""Checks of what a user gives to the one-step functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import above_zero, at_least_zero, whole

RATIOS = 1e-6, 1e15  # beyond, the equations lose their digits


def checked_seeds(seeds: int | Sequence[int] | np.ndarray) -> tuple[int, ...]:
    """Return the seeds 0, 1, … of a number, or those given.

    Raises
    ------
    InputError
        If there is none, or one is given twice: its copies would count as independent draws.
    """
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        return tuple(range(whole("seeds", seeds, 1)))
    found: tuple[Any, ...] = ()
    if isinstance(seeds, (Sequence, np.ndarray)) and not isinstance(seeds, str) and np.ndim(seeds) == 1:
        found = tuple(seeds)
    if not found:
        raise unusable("seeds", seeds, "give a number of at least 1 or a list of seeds")
    checked = tuple(whole("seeds", seed, 0) for seed in found)
    if len(set(checked)) < len(checked):
        raise unusable("seeds", list(checked), "give each seed once")
    return checked


def checked_ridges(ridge: Any) -> np.ndarray:
    """Return the penalties as a float64 array of shape (L,).

    Raises
    ------
    InputError
        If there is none, or one is no number, negative or not finite.
    """
    found = np.atleast_1d(real_array("ridge", ridge, "a finite number of at least 0, or a list of them"))
    if found.ndim != 1 or found.size == 0:
        raise InputError(
            "ridge: an empty or nested list is not allowed; give a number of at least 0, or a list of them"
        )
    for value in found:
        at_least_zero("ridge", float(value))
    return found


def checked_ratio(name: str, value: Any) -> float:
    """Return a ratio of sizes such as n/d, or raise an `InputError`."""
    ratio = above_zero(name, value)
    if not RATIOS[0] <= ratio <= RATIOS[1]:
        raise unusable(name, value, f"give a ratio from {RATIOS[0]:g} to {RATIOS[1]:g}")
    return ratio


def like(ridge: Any, values: np.ndarray) -> Any:
    """Return the values (L,) as they are, or a number where ``ridge`` is one."""
    return float(values[0]) if np.ndim(ridge) == 0 else values
