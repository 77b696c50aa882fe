"""Ways to scale a raw data matrix; the exponents of the same data depend on which is used."""

from types import MappingProxyType
from typing import Literal

import numpy as np

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import look_up

ConstantColumns = Literal["error", "zero", "drop"]

STANDARDISATIONS = MappingProxyType(
    {
        "raw": "the values as they are",
        "center": "the mean of every column removed",
        "zscore": "every column to mean 0 and variance 1 over the rows",
        "unit-range": "the smallest and largest value of the whole matrix to 0 and 1",
        "symmetric-range": "the smallest and largest value of the whole matrix to −1 and 1",
        "unit-rows": "every row divided by its Euclidean norm",
    }
)

# A column computed as the same number in different ways differs by a few units in the last place.
ROUNDING = 8 * float(np.finfo(np.float64).eps)


def standardise(X: np.ndarray, how: str, *, field: str, constant_columns: ConstantColumns = "error") -> np.ndarray:
    """Return the finite matrix X, shape (n, d), scaled in the way that ``how`` names; X itself is left as it is.

    Parameters
    ----------
    X
        Data, one row per sample.
    how
        One of `STANDARDISATIONS`.
    field
        The field of the specification that errors name.
    constant_columns
        What "zscore" does with a column that has no variance: refuse it, set it to zero or drop it (d becomes
        smaller). The other ways have no need of it.

    Raises
    ------
    InputError
        For an unknown name, constant columns under "error", a matrix of equal values under the two ranges, and rows of
        zeros under "unit-rows", which have no direction.
    """
    look_up(field, how, STANDARDISATIONS)
    if constant_columns not in ("error", "zero", "drop"):
        raise unusable(field, constant_columns, "give 'error', 'zero' or 'drop' for constant columns")
    X = np.asarray(X, dtype=np.float64)
    match how:
        case "center":
            return np.asarray(X - column_means(X))
        case "zscore":
            return _zscore(X, field, constant_columns)
        case "unit-range":
            return _unit_range(X, field)
        case "symmetric-range":
            return 2.0 * _unit_range(X, field) - 1.0
        case "unit-rows":
            return _unit_rows(X, field)
    return X


def column_means(X: np.ndarray) -> np.ndarray:
    """Return the mean of every column, shape (d,), without overflow for values near the largest float."""
    return np.asarray((X / len(X)).sum(axis=0))


def constant(X: np.ndarray) -> np.ndarray:
    """Return which columns are constant up to rounding, shape (d,) bool.

    The computed standard deviation of equal values is often not zero (their mean is rounded), so the span decides.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high)))


def _zscore(X: np.ndarray, field: str, constant_columns: ConstantColumns) -> np.ndarray:
    # Columns are first brought to size 1, where squares can neither overflow nor vanish; powers of two do not round.
    exponent = np.frexp(np.abs(X).max(axis=0))[1]
    scaled = np.ldexp(X, -exponent)
    flat = constant(scaled)
    if flat.any() and constant_columns == "error":
        first = ", ".join(str(k) for k in np.flatnonzero(flat)[:5])
        raise InputError(
            f"{field}: 'zscore' is not allowed for {int(flat.sum())} constant columns of {X.shape[1]} (column {first}"
            f"{', …' if flat.sum() > 5 else ''}, counted from 0); give constant_columns 'zero' or 'drop', or "
            "standardise 'raw'"
        )
    if flat.all() and constant_columns == "drop":
        raise InputError(f"{field}: every column is constant, none is left to use; give data that varies")
    if constant_columns == "drop":
        scaled, flat = np.ascontiguousarray(scaled[:, ~flat]), flat[~flat]
    scaled -= column_means(scaled)
    # A second scaling: the spread may be far smaller than the mean.
    spread = np.abs(scaled).max(axis=0)
    scaled /= np.where(flat, 1.0, spread)
    scaled[:, flat] = 0.0
    scaled -= column_means(scaled)  # what rounding left of the mean
    scaled /= np.where(flat, 1.0, scaled.std(axis=0))
    return np.asarray(scaled)


def _unit_range(X: np.ndarray, field: str) -> np.ndarray:
    low, high = float(X.min()), float(X.max())
    span = high - low  # Python floats: infinite, without a warning, if it overflows
    if not 0.0 < span < np.inf:
        problem = f"all values are {low:g}" if span == 0.0 else f"values from {low:g} to {high:g} span too much"
        raise InputError(f"{field}: {problem}; give data that has a range, or standardise 'raw'")
    return (X - low) / span


def _unit_rows(X: np.ndarray, field: str) -> np.ndarray:
    size = np.abs(X).max(axis=1, keepdims=True)
    zero = np.flatnonzero(size == 0.0)
    if len(zero):
        raise InputError(
            f"{field}: 'unit-rows' is not allowed for {len(zero)} rows of zeros (the first is row {zero[0]}, counted "
            "from 0); remove them, or standardise 'raw'"
        )
    scaled = X / size
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
