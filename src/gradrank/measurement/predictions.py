"""What theory says of a measured draw: the predicted spectrum, the spikes counted against it, and the data's exponents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.gradient.exponents import Exponents, estimate_exponents
from gradrank.gradient.spectrum_prediction import SpectrumPrediction, predict_spectrum
from gradrank.gradient.spike_count import count_spikes
from gradrank.problem.draw import Draw

NOT_ASKED_FOR = "not asked for"
CURVE_POINTS = 160
FAR, FAR_PER_VALUE = (
    0.02,
    3.0,
)  # distance from the predicted law, and times 1/size, beyond which it is not that of the draw
WINDOW = 1.08  # the drawn density is averaged from x/1.08 to 1.08 x


@dataclass(frozen=True, eq=False)
class Predictions:
    """Plain data, as it goes into JSON; None where withheld, with the reason in ``status``."""

    spectrum: dict[str, Any] | None = None
    curve: np.ndarray = field(
        default_factory=lambda: np.zeros((2, 0))
    )  # singular values and their predicted number density
    spikes: dict[str, Any] | None = None
    exponents: dict[str, Any] | None = None
    nu: float | None = None  # estimated, where it is not withheld
    alpha: float | None = None
    status: dict[str, str] = field(default_factory=dict)


def not_asked_for(reason: str) -> Predictions:
    """Return no predictions, for one reason."""
    return Predictions(status=dict.fromkeys(("spectrum_prediction", "spikes", "exponents"), reason))


def predictions(draw: Draw, values: torch.Tensor) -> Predictions:
    """Return what theory says of a draw with measured singular values, in descending order; with all of them, their distance."""
    status: dict[str, str] = {}
    spectrum, curve, prediction = None, np.zeros((2, 0)), None
    try:
        prediction = predict_spectrum(draw)
        spectrum, curve = _spectrum(prediction, values), _curve(prediction)
        reasons = [prediction.status] if prediction.status != "ok" else []
        if spectrum["ks"] is not None and spectrum["ks"] > FAR + FAR_PER_VALUE / prediction.size:
            reasons.append(f"the measured spectrum is off by {spectrum['ks']:.2f}: it is not the predicted law's")
            status["spikes"] = (
                "withheld: the predicted law, which they would be counted against, is not that of this draw"
            )
        if reasons:
            status["spectrum_prediction"] = "; ".join(reasons)
    except (InputError, ConvergenceError) as error:
        status["spectrum_prediction"] = str(error)
    spikes = None if "spikes" in status else _spikes(draw, prediction, values, status)
    found = _exponents(draw, status)
    return Predictions(
        spectrum=spectrum,
        curve=curve,
        spikes=spikes,
        exponents=None if found is None else found.to_dict(),
        nu=None if found is None else found.nu,
        alpha=None if found is None else found.alpha,
        status=status,
    )


def _spectrum(prediction: SpectrumPrediction, values: torch.Tensor) -> dict[str, Any]:
    """Return edge, outliers beside the measured values, and the distance of the laws."""
    compared = prediction.compare(values)
    outliers = []
    for index, pair in enumerate(compared.outliers):
        known = prediction.outliers[index] if index < len(prediction.outliers) else None
        outliers.append(
            {
                "predicted": pair.predicted,
                "measured": pair.measured,
                "difference": pair.difference,
                "overlap": None if known is None or np.isnan(known.overlap) else known.overlap,
                "alignments": {} if known is None or np.isnan(known.overlap) else dict(known.alignments),
            }
        )
    return {
        "edge": prediction.upper_edge,
        "outliers": outliers,
        "ks": compared.ks,
        "size": prediction.size,
        "method": prediction.method,
        "kernel_error": prediction.kernel_error,
    }


def _curve(prediction: SpectrumPrediction) -> np.ndarray:
    """Return points of the predicted number density on a logarithmic grid over the bulk, shape (2, points).

    Averaged over a window of the width of a histogram's bin: the law of a finite population has a band of its own for each
    eigenvalue that stands apart, which a curve would show as a comb.
    """
    upper = prediction.upper_edge
    lower = max(min(edge for edge, _ in prediction.edges), upper * 1e-6)
    x = np.geomspace(lower / WINDOW, upper * WINDOW, CURVE_POINTS)
    left, right = x / WINDOW, x * WINDOW
    inside = prediction.bulk.above(left) - prediction.bulk.above(right)
    return np.array([x, inside / (right - left)])


def _spikes(
    draw: Draw, prediction: SpectrumPrediction | None, values: torch.Tensor, status: dict[str, str]
) -> dict[str, Any] | None:
    """Return the counted spikes: against the predicted law, or where there is none against the factors of the gradient."""
    try:
        found = count_spikes(draw, prediction=prediction, values=values)
    except (InputError, ConvergenceError) as error:
        status["spikes"] = str(error)
        return None
    if found.status != "ok":
        status["spikes"] = found.status
    return found.to_dict()


def _exponents(draw: Draw, status: dict[str, str]) -> Exponents | None:
    """Return the exponents of the inputs."""
    try:
        return estimate_exponents(draw.X)
    except (InputError, ConvergenceError) as error:
        status["exponents"] = str(error)
        return None
