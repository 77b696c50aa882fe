"""Principal angles between the column spaces of two weight matrices."""

import math

import numpy as np
import torch
from scipy.linalg import subspace_angles

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError


def mean_principal_angle(A: torch.Tensor | np.ndarray, B: torch.Tensor | np.ndarray) -> float:
    """Return the mean principal angle, in degrees, between the column spaces of A and B, both (m, d) with m > d.

    For m ≤ d both column spaces are all of R^m and there is nothing to compare (LRG, section 3.4).

    Raises
    ------
    InputError
        If the shapes differ or m ≤ d.
    """
    first, second = (
        real_array(name, matrix, "a weight matrix (m, d)") for name, matrix in (("W", A), ("reference", B))
    )
    if first.ndim != 2 or first.shape != second.shape:
        raise InputError(f"reference: the shape {second.shape} is not allowed; give that of the weights, {first.shape}")
    m, d = first.shape
    if m <= d:
        raise InputError(
            f"network.m: {m} is not allowed; column spaces of R^m are compared, which needs m above d = {d}"
        )
    return math.degrees(float(np.mean(subspace_angles(first, second))))
