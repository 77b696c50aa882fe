"""Checks of what a user gives to the one-step functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import whole


def checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds 0, 1, … of a number, or those given."""
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        return tuple(range(whole("seeds", seeds, 1)))
    found = tuple(seeds) if isinstance(seeds, (Sequence, np.ndarray)) and not isinstance(seeds, str) else ()
    if not found:
        raise unusable("seeds", seeds, "give a number of at least 1 or a list of seeds")
    return tuple(whole("seeds", seed, 0) for seed in found)


def checked_ridges(ridge: float | Sequence[float] | np.ndarray | torch.Tensor) -> np.ndarray:
    """Return the penalties as a float64 array of shape (L,).

    Raises
    ------
    InputError
        If there is none, or one is negative or not finite.
    """
    try:
        found = np.atleast_1d(np.asarray(ridge, dtype=np.float64))
    except (TypeError, ValueError):
        raise unusable("ridge", ridge, "give a number of at least 0, or a list of them") from None
    if found.ndim != 1 or found.size == 0:
        raise InputError(
            "ridge: an empty or nested list is not allowed; give a number of at least 0, or a list of them"
        )
    bad = found[~(np.isfinite(found) & (found >= 0))]
    if bad.size:
        raise unusable("ridge", float(bad[0]), "give finite numbers of at least 0")
    return found


def like(ridge: Any, values: np.ndarray) -> Any:
    """Return the values (L,) as they are, or a number where ``ridge`` is one."""
    return float(values[0]) if np.ndim(ridge) == 0 else values
