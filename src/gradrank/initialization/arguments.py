"""Checks of what a user gives to the samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError
from gradrank.foundation.numbers import above_zero

ROUNDING, SINGLE = 1e-12, 1e-6  # of correlations: asymmetry and negative eigenvalues below it are rounding


def covariance(v0: Any, field: str = "v0") -> torch.Tensor:
    """Return a symmetric positive semidefinite matrix with a positive diagonal, shape (p, p) float64.

    Raises
    ------
    InputError
        If it is none; the message says what is wrong.
    """
    array = real_array(field, v0, "a symmetric matrix of finite numbers")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise InputError(f"{field}: the shape {array.shape} is not allowed; give a square matrix (p, p)")
    if not (np.diag(array) > 0).all():
        raise InputError(f"{field}: a diagonal entry is not above 0; give the covariance of inputs that are not zero")
    for entry in np.diag(array):
        above_zero(field, float(entry))
    root = np.sqrt(np.diag(array))
    correlations = array / root[:, None] / root
    rounding = SINGLE if getattr(v0, "dtype", None) in (torch.float32, np.float32) else ROUNDING
    if np.abs(correlations - correlations.T).max() > rounding:
        raise InputError(f"{field}: is not symmetric; give a covariance matrix")
    smallest = float(np.linalg.eigvalsh((correlations + correlations.T) / 2)[0])
    if smallest < -rounding * len(array):
        raise InputError(
            f"{field}: is not positive semidefinite (smallest eigenvalue {smallest:.3g} of the correlations); "
            "give a covariance matrix"
        )
    return torch.from_numpy(np.ascontiguousarray((array + array.T) / 2, dtype=np.float64))


def cholesky(V: torch.Tensor) -> torch.Tensor:
    """Return L with L Lᵀ = V for positive semidefinite V (…, p, p), in closed form for p ≤ 2; NaN where V is not finite."""
    p = V.shape[-1]
    if p > 2:  # of the correlations, so that inputs of any size keep their digits
        root = torch.diagonal(V, dim1=-2, dim2=-1).clamp(min=0).sqrt()
        unit = torch.where(root > 0, root, 1.0)
        one = torch.eye(p, dtype=V.dtype, device=V.device)
        correlations = V / unit[..., :, None] / unit[..., None, :]
        sound = torch.isfinite(correlations).all(-1).all(-1)[..., None, None]
        correlations = torch.where(sound, correlations, one)
        found, info = torch.linalg.cholesky_ex(correlations + 1e-14 * one)
        found = found if not bool(info.any()) else _by_eigenvectors(correlations)
        return torch.where(sound, root[..., :, None] * found, torch.nan)
    L = torch.zeros_like(V)
    L[..., 0, 0] = V[..., 0, 0].clamp(min=0).sqrt()
    if p == 2:
        L[..., 1, 0] = V[..., 1, 0] / L[..., 0, 0].clamp(min=torch.finfo(V.dtype).tiny)
        L[..., 1, 1] = (V[..., 1, 1] - L[..., 1, 0] ** 2).clamp(min=0).sqrt()
    return L


def _by_eigenvectors(V: torch.Tensor) -> torch.Tensor:
    """Return a root of V that need not be triangular: any L with L Lᵀ = V does for a sampler."""
    values, vectors = torch.linalg.eigh(V)
    root: torch.Tensor = vectors * values.clamp(min=0).sqrt()[..., None, :]
    return root
