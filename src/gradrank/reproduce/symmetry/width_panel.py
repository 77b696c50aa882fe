"""An error against the number of neurons m, beside m^(−½)."""

from __future__ import annotations

import xarray
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from gradrank.reproduce.statistics import means


def width_panel(axes: Axes, errors: xarray.DataArray, label: str = "") -> None:
    """Draw means and standard errors over the seeds of (m, seed) values on logarithmic axes, ticks at 1, 2 and 5."""
    widths = errors["m"].values
    mean, error = means(errors.transpose("m", "seed"))
    axes.errorbar(widths, mean, yerr=error, fmt="o", color="0.0", markersize=4, label=label)
    axes.plot(widths, mean[0] * (widths / widths[0]) ** -0.5, color="0.6", label="$m^{-1/2}$")
    axes.set(xscale="log", yscale="log", xlabel="m")
    axes.set_xticks(widths, [str(m) for m in widths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend()
