"""The Marchenko-Pastur law in closed form, for every aspect ratio."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from gradrank.foundation.errors import unusable
from gradrank.linalg.silverstein_equation import Complexes, Reals


class MarchenkoPastur:
    """Limiting law of the K eigenvalues of (1/m) Z Zᵀ, Z of shape (K, m) with i.i.d. entries of variance ``scale``.

    With c = K/m = ``aspect`` and unit variance, the support is [(1 − √c)², (1 + √c)²], and for c > 1 a mass of 1 − 1/c
    lies at zero (Marchenko and Pastur 1967; Bai and Silverstein 2010, section 3.1).
    """

    def __init__(self, aspect: float, scale: float = 1.0) -> None:
        if not (math.isfinite(aspect) and aspect > 0):
            raise unusable("aspect", aspect, "give a positive ratio of rows to columns")
        if not (math.isfinite(scale) and scale > 0):
            raise unusable("scale", scale, "give a positive variance")
        self.aspect, self.scale = float(aspect), float(scale)
        self._lower, self._upper = (1.0 - math.sqrt(aspect)) ** 2, (1.0 + math.sqrt(aspect)) ** 2

    @property
    def atom_at_zero(self) -> float:
        """The mass at zero, max(0, 1 − 1/c)."""
        return max(0.0, 1.0 - 1.0 / self.aspect)

    @property
    def edges(self) -> list[tuple[float, float]]:
        """The one interval (1 ∓ √c)² of the support, times the variance."""
        return [(self.scale * self._lower, self.scale * self._upper)]

    @property
    def upper_edge(self) -> float:
        """The upper end of the support, (1 + √c)² times the variance."""
        return self.scale * self._upper

    def companion_stieltjes(self, z: ArrayLike) -> Complexes:
        """Return m̃(z) = −1/w with w = ½ (1 + z − c + √(z − (1 − √c)²) √(z − (1 + √c)²)); the shape of z, Im z > 0."""
        y = np.asarray(z, dtype=np.complex128) / self.scale
        linear = 1.0 + y - self.aspect
        root = np.sqrt(y - self._lower) * np.sqrt(y - self._upper)
        agree = (np.conj(linear) * root).real >= 0
        # The product of the two roots is y: the smaller one comes from the larger, without cancellation.
        larger = (linear + np.where(agree, root, -root)) / 2.0
        return np.asarray(-1.0 / np.where(agree, larger, y / larger) / self.scale)

    def density(self, x: ArrayLike) -> Reals:
        """Return √((x₊ − x)(x − x₋)) / (2π c x), zero off the support; the shape of x, per unit of x."""
        y = np.asarray(x, dtype=np.float64) / self.scale
        inside = (y > self._lower) & (y < self._upper)
        safe = np.where(inside, y, 1.0)
        under = np.clip((self._upper - safe) * (safe - self._lower), 0.0, None)
        return np.asarray(
            np.where(inside, np.sqrt(under) / (2 * np.pi * self.aspect * safe), 0.0) / self.scale, dtype=np.float64
        )

    def cdf(self, x: ArrayLike) -> Reals:
        """Return F(x) = 1 − [(1 − c) θ + c φ − t] / (π c), the atom at zero included; the shape of x.

        θ and φ are the angles of w = s + i t and of w − 1, s = (1 + x − c)/2, t = ½ √((x₊ − x)(x − x₋)). The derivative
        is the density, as |w|² = x and |w − 1|² = c.
        """
        y = np.asarray(x, dtype=np.float64) / self.scale
        c = self.aspect
        inside = np.clip(y, self._lower, self._upper)
        s, t = (1.0 + inside - c) / 2.0, np.sqrt((self._upper - inside) * (inside - self._lower)) / 2.0
        # At s = t = 0 (c = 1, x = 0) the factor 1 − c removes the undefined angle.
        above = ((1.0 - c) * np.arctan2(t, s) + c * np.arctan2(t, s - 1.0) - t) / (np.pi * c)
        return np.asarray(np.where(y < 0, 0.0, np.clip(1.0 - above, 0.0, 1.0)), dtype=np.float64)
