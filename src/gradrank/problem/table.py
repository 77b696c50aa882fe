"""The rows of a data matrix with their labels, as they were read."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Table:
    """Raw values of a data set: one row per sample, nothing scaled, the rows in the order of the source."""

    X: np.ndarray  # (n, d) float64
    y: np.ndarray | None  # (n,) float labels, or class labels as integers or strings; None where there are none
    sha256: str | None  # of the bytes of the file the rows were read from; None where there is no single file
