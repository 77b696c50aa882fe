"""Curves with error bars, on linear or logarithmic axes, told apart in grey by line and marker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from gradrank.report.figures import LINES

MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
GREYS = ("0.0", "0.35", "0.55", "0.7")


@dataclass(frozen=True, eq=False)
class Series:
    """One curve; points that are not finite are left out."""

    label: str
    x: np.ndarray  # (p,) numbers
    y: np.ndarray  # (p,)
    error: np.ndarray | None = None  # (p,) half the length of the bars
    markers: bool = True


def series_panel(
    axes: Axes,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    legend: bool = True,
) -> None:
    """Draw curves with their error bars; on a logarithmic axis what is not positive is left out."""
    for index, one in enumerate(series):
        x, y = np.asarray(one.x, dtype=float), np.asarray(one.y, dtype=float)
        kept = np.isfinite(x) & np.isfinite(y)
        kept &= (x > 0) | (not log_x)
        kept &= (y > 0) | (not log_y)
        style = {
            "linestyle": LINES[index % len(LINES)],
            "marker": MARKERS[index % len(MARKERS)] if one.markers else "",
            "color": GREYS[index % len(GREYS)],
            "markersize": 3.5,
            "label": one.label,
        }
        if one.error is None:
            axes.plot(x[kept], y[kept], **style)  # type: ignore[arg-type]
            continue
        error = np.nan_to_num(np.asarray(one.error, dtype=float)[kept])
        below = np.minimum(error, 0.999 * y[kept]) if log_y else error
        axes.errorbar(x[kept], y[kept], yerr=np.stack([below, error]), capsize=2, elinewidth=0.7, **style)  # type: ignore[arg-type]
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if legend and any(one.label for one in series):
        axes.legend()
