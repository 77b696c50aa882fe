"""The Tracy-Widom law of real symmetric matrices: where the largest eigenvalue of a noise lies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import airy

from gradrank.foundation.errors import unusable

Reals = NDArray[np.float64]

MEAN = -1.2065335745820
VARIANCE = 1.6077810345810

NODES = 64
EXPONENT = 60.0  # the kernel is cut where it has fallen by exp(−2/3 · 60) = 4e-18
LOWEST = -14.0  # F₁ is below 1e-49 here
HIGHEST = 100.0  # 1 − F₁ is below 1e-290 here
BLOCK = 256  # determinants evaluated at once


def cdf(s: ArrayLike) -> Reals:
    """Return F₁(s), the limiting distribution function of the largest eigenvalue of a real noise matrix; the shape of s.

    F₁(s) = det(1 − B_s) on L²(0, ∞), B_s(x, y) = Ai(x + y + s) (Ferrari and Spohn 2005), by Gauss-Legendre quadrature
    of the determinant, which converges exponentially (Bornemann 2010). Absolute error below 1e-13.
    """
    return np.asarray(np.exp(_log_cdf(s)))


def survival(s: ArrayLike) -> Reals:
    """Return 1 − F₁(s) with a small relative error however small it is (zero beyond s = 100); the shape of s.

    log det(1 − B) = Σ log(1 − λ) over the eigenvalues of the symmetric kernel: nothing cancels in the right tail, where
    1 − F₁(s) → ½ ∫ₛ Ai.
    """
    return np.asarray(np.abs(np.expm1(_log_cdf(s))))


def quantile(p: float) -> float:
    """Return s with F₁(s) = p, for 0 < p < 1; 0.9793 at 95 % and 2.0234 at 99 %. Raises InputError for other p."""
    if not 0.0 < p < 1.0:
        raise unusable("p", p, "give a probability between 0 and 1")
    return float(brentq(lambda s: float(cdf(s)) - p if p < 0.5 else (1.0 - p) - float(survival(s)), LOWEST, 100.0))


def _log_cdf(s: ArrayLike) -> Reals:
    """Return log F₁(s); the shape of s, NaN where s is."""
    points = np.asarray(s, dtype=np.float64)
    flat = points.reshape(-1)
    out = np.where(flat > HIGHEST, 0.0, np.where(np.isnan(flat), math.nan, -math.inf))
    proper = np.flatnonzero((flat > LOWEST) & (flat <= HIGHEST))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    for start in range(0, len(proper), BLOCK):
        part = proper[start : start + BLOCK]
        at = flat[part]
        # Ai(t) falls as exp(−⅔ t^1.5): beyond this length the kernel is negligible against its value at 0 (or at −s).
        length = (np.maximum(at, 0.0) ** 1.5 + EXPONENT) ** (2 / 3) - at
        x = length[:, None] * (nodes + 1.0) / 2.0
        root = np.sqrt(length[:, None] * weights / 2.0)
        kernel = airy(x[:, :, None] + x[:, None, :] + at[:, None, None])[0] * root[:, :, None] * root[:, None, :]
        eigenvalues = np.minimum(np.linalg.eigvalsh(kernel), 1.0)
        with np.errstate(divide="ignore"):
            out[part] = np.log1p(-eigenvalues).sum(axis=1)
    return out.reshape(points.shape)
