"""A predicted spectrum beside a measured one: the distance of the laws, and the outliers."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike

from gradrank.foundation.errors import InputError
from gradrank.linalg.spectrum import Spectrum

if TYPE_CHECKING:
    from gradrank.gradient.spectrum_prediction import SpectrumPrediction

MAX_SHOWN = 20  # measured outliers that are listed, unless more are predicted


@dataclass(frozen=True)
class OutlierPair:
    """A predicted outlier and the measured singular value of the same rank."""

    predicted: float | None  # None where only the measured value stands above the bulk
    measured: float
    difference: float | None  # measured/predicted − 1


@dataclass(frozen=True)
class SpectrumComparison:
    """How far measured singular values are from the predicted law."""

    ks: float | None  # Kolmogorov-Smirnov distance; None where not all singular values are given
    outliers: tuple[OutlierPair, ...]
    edge: float  # predicted
    measured_outliers: int  # measured values that exceed the edge with a p-value below 0.01
    status: str = "ok"


def compare(prediction: SpectrumPrediction, spectrum: Spectrum | ArrayLike | torch.Tensor) -> SpectrumComparison:
    """Compare a prediction with singular values in any order.

    The Kolmogorov-Smirnov distance is sup |F − F̂| over the ``prediction.size`` leading values, F̂ the empirical distribution
    function; it cannot be smaller than half a step, 1/(2 size).

    Raises
    ------
    InputError
        If the values are negative, not finite or none.
    """
    values = _descending(spectrum)
    size = prediction.size
    # The p-value grows from the largest value to the smallest.
    outside = bisect.bisect_left(values, True, key=lambda value: prediction.edge_p_value(float(value)) >= 0.01)
    shown = max(min(outside, MAX_SHOWN), len(prediction.outliers))
    pairs = tuple(
        OutlierPair(predicted, measured, None if predicted is None else measured / predicted - 1.0)
        for index, measured in enumerate(values[:shown].tolist())
        for predicted in [prediction.outliers[index].value if index < len(prediction.outliers) else None]
    )
    if len(values) < size:
        reason = f"only {len(values)} of {size} singular values are given: no distance"
        return SpectrumComparison(None, pairs, prediction.upper_edge, outside, reason)
    return SpectrumComparison(_ks(prediction, values[:size]), pairs, prediction.upper_edge, outside, prediction.status)


def _ks(prediction: SpectrumPrediction, values: np.ndarray) -> float:
    """Return the largest distance of the two distribution functions, from the right and from the left of every step."""
    increasing = np.where(values > prediction.resolution, values, 0.0)[::-1]
    steps = np.concatenate([increasing, [outlier.value for outlier in prediction.outliers]])
    distances = []
    for at in (steps, np.nextafter(steps, -np.inf)):
        empirical = np.searchsorted(increasing, at, side="right") / len(values)
        distances.append(np.abs(prediction.cdf(at) - empirical).max())
    return float(max(distances))


def _descending(spectrum: Spectrum | ArrayLike | torch.Tensor) -> np.ndarray:
    raw = spectrum.values if isinstance(spectrum, Spectrum) else spectrum
    if isinstance(raw, torch.Tensor):
        raw = (raw.double() if raw.is_floating_point() else raw).detach().cpu().numpy()
    try:
        array = np.asarray(raw)
    except ValueError:
        raise InputError(
            "spectrum: lists of different lengths are not allowed; give singular values of shape (k,)"
        ) from None
    if array.ndim != 1 or not array.size or array.dtype.kind not in "fiu":
        raise InputError(f"spectrum: shape {array.shape} is not allowed; give singular values of shape (k,)")
    values = np.sort(array.astype(np.float64))[::-1]
    if not np.isfinite(values).all() or values[-1] < 0:
        raise InputError("spectrum: a value is negative or not finite; give singular values")
    return values
