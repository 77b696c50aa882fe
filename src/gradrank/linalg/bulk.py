"""The bulk of a singular spectrum: Silverstein's law, or simulated Gaussian columns, on the scale of singular values."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri, stdtr

from gradrank.linalg.gaussian_columns import SampledSpectrum
from gradrank.linalg.outliers import Separation
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.tracy_widom import MEAN, VARIANCE, survival

SMOOTHING_NODES = 50


class BulkLaw(Protocol):
    """What a predicted bulk can be asked, in units of the singular values."""

    @property
    def edges(self) -> list[tuple[float, float]]:
        """The intervals that hold the bulk."""

    @property
    def upper_edge(self) -> float:
        """The upper end of the bulk."""

    def above(self, x: ArrayLike) -> Reals:
        """Return how many bulk singular values are larger than x; the shape of x."""

    def number_density(self, x: ArrayLike) -> Reals:
        """Return their number per unit of x; the shape of x."""

    def p_value(self, x: float) -> float:
        """Return the probability that the largest of them exceeds x."""


class SilversteinBulk:
    """Silverstein's law of the eigenvalues σ²/scale², without the largest, which are the outliers."""

    def __init__(self, separation: Separation, scale: float) -> None:
        self._law, self._edge_law, self._scale = separation.law, separation.edge_law, scale
        self._count = separation.count
        self._top = float(self._law.quantile(1.0 - self._count / self._law.size))  # of the bulk; the outliers lie above

    @property
    def edges(self) -> list[tuple[float, float]]:
        """The bands of the support, without those that hold an outlier or edge noise."""
        return [(self._scale * math.sqrt(a), self._scale * math.sqrt(b)) for a, b in self._edge_law.edges]

    @property
    def upper_edge(self) -> float:
        """The upper end of the support."""
        return self._scale * math.sqrt(self._edge_law.upper_edge)

    def above(self, x: ArrayLike) -> Reals:
        """Return K (1 − F(x²)) for the K eigenvalues of the law, less the outliers."""
        y, inside = self._inside(x)
        above = self._law.size * (1.0 - self._law.cdf(y**2)) - self._count
        return np.where(inside, np.maximum(above, 0.0), np.where(np.isnan(y), np.nan, 0.0))

    def number_density(self, x: ArrayLike) -> Reals:
        """Return 2 x K f(x²), zero where the outliers lie."""
        y, inside = self._inside(x)
        density = 2.0 * y * self._law.size * self._law.density(y**2) / self._scale
        return np.where(inside, density, np.where(np.isnan(y), np.nan, 0.0))

    def _inside(self, x: ArrayLike) -> tuple[Reals, NDArray[np.bool_]]:
        """Return x over the scale, zero beyond the top, where a square could leave the number range; and which are below it."""
        y = np.maximum(np.asarray(x, dtype=np.float64), 0.0) / self._scale
        inside = y < math.sqrt(self._top)
        return np.where(inside | np.isnan(y), y, 0.0), inside

    def p_value(self, x: float) -> float:
        """Return 1 − F₁((x² − E)/s), the Tracy-Widom law at the edge of the bulk."""
        centre, scale = largest_eigenvalue_law(self._edge_law)
        y = x / self._scale
        return float(survival((y * y - centre) / scale))


class SampledBulk:
    """The mean of simulated spectra, without their ``count`` largest values."""

    def __init__(self, sample: SampledSpectrum, count: int, scale: float) -> None:
        self._values, self._scale = sample.values[:, count:], scale
        tops = sample.bulk_tops**2  # in units of scale², as centre and width are: no square leaves the number range
        # The law of Tracy and Widom with the mean and the deviation of the sample.
        self._draws = len(tops)
        rounding = float(np.finfo(np.float64).eps * tops.max())
        self.width = max(float(tops.std(ddof=1)), rounding) / math.sqrt(VARIANCE)
        self.centre = float(tops.mean()) - MEAN * self.width

    @property
    def edges(self) -> list[tuple[float, float]]:
        """One interval, from the mean of the smallest value to the upper edge."""
        return [(self._scale * float(self._values[:, -1].mean()), self.upper_edge)]

    @property
    def upper_edge(self) -> float:
        """The Tracy-Widom centre of the simulated largest bulk values."""
        return self._scale * math.sqrt(self.centre)

    def above(self, x: ArrayLike) -> Reals:
        """Return the mean number of simulated bulk values above x."""
        pooled, at = np.sort(self._values, axis=None), np.asarray(x, dtype=np.float64) / self._scale
        number = pooled.size - np.searchsorted(pooled, at, side="right")
        return np.asarray(number / len(self._values), dtype=np.float64)

    def number_density(self, x: ArrayLike) -> Reals:
        """Return the slope of a monotone curve through some fifty of the mean ordered values; NaN where they are one."""
        at = np.asarray(x, dtype=np.float64) / self._scale
        positions, curve = self._curve
        if curve is None:
            return np.full(at.shape, math.nan)
        inside = (at >= positions[0]) & (at <= positions[-1])
        density = np.where(inside, curve(np.clip(at, positions[0], positions[-1])), 0.0) / self._scale
        return np.where(np.isnan(at), np.nan, density)

    def p_value(self, x: float) -> float:
        """Return 1 − F₁ of (x² − c)/s, with c and s from the simulated largest bulk values and their errors counted.

        Mean and deviation of k draws are uncertain: the deviate (x² − mean)/std is one of Student's, √(1 + 1/k) t of k − 1
        degrees of freedom, for normal values. It is turned into the normal one of the same probability before F₁ is asked.
        """
        y = x / self._scale
        deviate = ((y * y - self.centre) / self.width - MEAN) / math.sqrt(VARIANCE)
        student = stdtr(self._draws - 1, -deviate / math.sqrt(1.0 + 1.0 / self._draws))
        return float(survival(MEAN - math.sqrt(VARIANCE) * ndtri(student)))

    @cached_property
    def _curve(self) -> tuple[Reals, PchipInterpolator | None]:
        """The nodes, and how many values there are per unit; all of them lie between the first and the last node."""
        ordered = np.sort(self._values.mean(axis=0))
        chosen = np.unique(np.linspace(0, len(ordered) - 1, SMOOTHING_NODES).astype(int))
        positions, first = np.unique(ordered[chosen], return_index=True)
        if len(positions) < 2:
            return positions, None
        below = len(ordered) * chosen[first] / chosen[first[-1]]
        return positions, PchipInterpolator(positions, below).derivative()
