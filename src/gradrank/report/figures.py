"""Static figures from names and arrays. No global state: every function returns a `matplotlib.figure.Figure`."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context

STYLE = "gradrank.mplstyle"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
T = TypeVar("T")


def styled(draw: Callable[[], T]) -> T:
    """Run ``draw`` under the house style and restore the user's settings afterwards."""
    with as_file(files("gradrank.report") / STYLE) as path, context(path):
        return draw()


def png(figure: Figure) -> bytes:
    """Render a figure as PNG."""
    buffer = io.BytesIO()
    styled(lambda: figure.savefig(buffer, format="png", metadata={"Software": None}))
    return buffer.getvalue()


def pdf(figure: Figure) -> bytes:
    """Render a figure as PDF, the same bytes at any time."""
    buffer = io.BytesIO()
    styled(lambda: figure.savefig(buffer, format="pdf", metadata={"CreationDate": None}))
    return buffer.getvalue()


@dataclass(frozen=True, eq=False)
class Expectation:
    """A predicted spectrum: a curve of the number density, the bulk's upper edge, and the outliers beside the measured."""

    curve: np.ndarray  # (2, points) singular values and their number per unit
    edge: float
    outliers: Sequence[float]
    measured: Sequence[float]  # measured values above the edge


def singular_value_panel(
    axes: Axes,
    values: np.ndarray,
    marks: Mapping[str, float],
    leading: int,
    *,
    complete: bool,
    expected: Expectation | None = None,
) -> None:
    """Draw the histogram of singular values on a logarithmic axis, the ``leading`` ones as ticks, ``marks`` as lines.

    A predicted spectrum is drawn over it as expected counts, its outliers as open triangles; then the ticks are the measured
    values above the predicted edge. Where only the leading values
    are known (``complete`` is False) they are drawn alone, against their rank.
    """
    positive = values[values > values.max(initial=0.0) * 1e-14]
    if positive.size == 0:
        axes.text(0.5, 0.5, "the gradient is zero", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    shown = {name: value for name, value in marks.items() if value > positive[0] * 1e-6}
    span = [positive[-1], positive[0], *shown.values()]
    axes.set_xscale("log")
    if complete:
        bins = np.geomspace(min(positive), max(positive) * 1.0001, 70).tolist()
        axes.hist(positive, bins=bins, color="0.8", edgecolor="0.55", linewidth=0.3)
        if expected is not None:
            half = (bins[1] / bins[0]) ** 0.5
            counts = expected.curve[1] * expected.curve[0] * (half - 1 / half)
            axes.plot(expected.curve[0], counts, color="0.0", linewidth=1.2, label="predicted counts")
        axes.set_ylabel("count")
        axes.set_yscale("symlog", linthresh=2)
        axes.set_ylim(0, None)
        most = axes.get_ylim()[1]
        ticks = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5) if step * 10**power <= most)]
        axes.set_yticks(ticks, [str(tick) for tick in ticks], minor=False)
        axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        top = positive[:leading] if expected is None else np.array(expected.measured)
        label = "leading values" if expected is None else "measured outliers"
        if top.size:
            axes.plot(top, np.zeros_like(top), "|", color="0.0", markersize=11, clip_on=False, label=label)
        if expected is not None and len(expected.outliers):
            heights = np.full(len(expected.outliers), 1.6)
            axes.plot(expected.outliers, heights, "v", color="0.0", fillstyle="none", label="predicted outliers")
    else:
        axes.plot(positive, np.arange(1, positive.size + 1), "o", color="0.2", markersize=4, label="leading values")
        axes.set_ylabel("rank")
        axes.invert_yaxis()
    if expected is not None:
        axes.axvline(expected.edge, color="0.0", linewidth=0.6, label="predicted edge")
    for (name, value), line in zip(shown.items(), LINES * 3, strict=False):
        axes.axvline(value, linestyle=line, color="0.25", label=name)
    axes.set_xlim(min(span) / 1.3, max(span) * 1.3)
    axes.set_xlabel("singular value")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)


def spectrum_panel(axes: Axes, values: np.ndarray, leading: int = 4) -> None:
    """Draw the histogram of descending values on a logarithmic axis, the leading ones as ticks; zeros are left out."""
    shown = values[values > values[0] * 1e-4]
    bins = np.geomspace(shown[-1] * 0.999, shown[0] * 1.1, 60).tolist()
    axes.hist(shown, bins=bins, color="0.75", edgecolor="0.5", linewidth=0.3)
    axes.plot(shown[:leading], np.zeros(len(shown[:leading])), "|", color="0.0", markersize=12, clip_on=False)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=2)


def alignment_panel(
    axes: Axes, rows: Mapping[str, Sequence[float]], columns: Sequence[str], chance: float, title: str
) -> None:
    """Draw |cosines| as a grey table: a row for each direction, a column for each vector; those near chance in italics."""
    table = np.array([list(values) for values in rows.values()], dtype=float).reshape(len(rows), len(columns))
    axes.imshow(np.nan_to_num(table), vmin=0, vmax=1, aspect="auto", cmap="Greys")
    for (row, column), value in np.ndenumerate(table):
        text = "–" if np.isnan(value) else f"{value:.2f}"
        near_chance = not value > 3 * chance
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=7,
            color="white" if value > 0.55 else "0.1",
            style="italic" if near_chance else "normal",
            alpha=0.6 if near_chance else 1.0,
        )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xticks(range(len(columns)), list(columns))
    axes.tick_params(length=0)
    axes.set_title(f"{title} (chance {chance:.3f})", loc="left")
    for spine in axes.spines.values():
        spine.set_visible(False)


def interval_panel(axes: Axes, rows: Mapping[str, tuple[float, float]], label: str) -> None:
    """Draw means with standard errors on a logarithmic axis, one row each."""
    shown = {name: pair for name, pair in rows.items() if pair[0] > 0}
    places = np.arange(len(shown))[::-1]
    means = np.array([pair[0] for pair in shown.values()])
    errors = np.nan_to_num(np.array([pair[1] for pair in shown.values()]))
    axes.errorbar(means, places, xerr=np.minimum(errors, 0.999 * means), fmt="o", color="0.0", markersize=4, capsize=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.set_yticks(places, list(shown))
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.set_xlabel(label)
