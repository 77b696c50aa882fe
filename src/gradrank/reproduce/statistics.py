"""Means over seeds with their standard errors, and what claims are made of."""

from __future__ import annotations

import math

import numpy as np
import xarray


def mean_and_error(values: xarray.DataArray) -> tuple[float, float]:
    """Return the mean of a one-dimensional array of seeds and its standard error; NaN for what is not there."""
    found = np.asarray(values.values, dtype=float).ravel()
    found = found[np.isfinite(found)]
    if found.size == 0:
        return math.nan, math.nan
    error = float(found.std(ddof=1)) / math.sqrt(found.size) if found.size > 1 else math.nan
    return float(found.mean()), error


def two_errors(scatter: float, error: float, seeds: int) -> float:
    """Return two standard errors of the difference between a mean of three seeds and one of ``seeds``, from their pooled scatter.

    ``scatter`` is the standard deviation over the three seeds, ``error`` the standard error of the other mean.
    """
    own = error**2 * seeds
    pooled = (2 * scatter**2 + (seeds - 1) * own) / (seeds + 1)
    return 2.0 * math.sqrt(pooled * (1 / 3 + 1 / seeds))


def means(values: xarray.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means over ``seed`` and their standard errors, along what is left."""
    count = values.notnull().sum("seed")
    error = values.std("seed", ddof=1) / np.sqrt(count) if values.sizes["seed"] > 1 else values.mean("seed") * math.nan
    return np.asarray(values.mean("seed").values), np.asarray(error.values)


def slope(x: np.ndarray, values: xarray.DataArray, over: str) -> tuple[float, float]:
    """Return the slope of ``values`` on x by least squares within each seed, averaged over seeds, with its standard error.

    The dimension ``over`` lies along x. Fitting each seed by itself keeps what its sizes share out of the error.
    """
    table = np.asarray(values.transpose("seed", over).values, dtype=float)
    table = table[np.isfinite(table).all(axis=1)]
    centred = x - x.mean()
    slopes = table @ centred / float(centred @ centred)
    return float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(len(slopes))) if len(slopes) > 1 else math.nan
