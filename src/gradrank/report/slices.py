"""Figures of a labelled array: one axis along x, one as curves, the others as panels; seeds as means with errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import xarray
from matplotlib.figure import Figure

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import look_up
from gradrank.report.figures import styled
from gradrank.report.series import Series, series_panel

MOST_CURVES, MOST_PANELS, MOST_FIGURES = 8, 12, 40
LOGARITHMIC = 20.0  # ratio of the largest to the smallest positive value above which an axis is logarithmic


def select(data: xarray.DataArray, chosen: Mapping[str, str]) -> xarray.DataArray:
    """Return the part of an array with the chosen values, each given as text: an axis is dropped, or one value kept.

    Raises
    ------
    InputError
        If there is no such axis or value.
    """
    for axis, text in chosen.items():
        if axis not in data.dims:
            continue
        values = {str(value): index for index, value in enumerate(data[axis].values)}
        values |= {f"{float(value):g}": index for index, value in enumerate(data[axis].values) if _is_number(value)}
        data = data.isel({axis: look_up(f"where.{axis}", text, values)})
    return data


def slices(data: xarray.DataArray, x: str | None = None, curves: str | None = None) -> dict[str, Figure]:
    """Return figures of the means over ``seed`` with standard errors, by name.

    One axis is along x (the longest one of numbers where it is not given), one makes curves (the shortest other one), the
    others make panels; an axis with too many values for that makes a figure for each of them.

    Raises
    ------
    InputError
        If an axis is not there, or there are more curves or figures than can be read.
    """
    count = data.notnull().sum("seed") if "seed" in data.dims else None
    mean = data.mean("seed") if count is not None else data
    error = data.std("seed", ddof=1) / np.sqrt(count) if count is not None and data.sizes["seed"] > 1 else None
    single = [axis for axis in mean.dims if mean.sizes[axis] == 1]
    mean, error = mean.squeeze(single, drop=True), None if error is None else error.squeeze(single, drop=True)
    axes = [str(axis) for axis in mean.dims]
    if not axes:
        raise InputError(f"report: '{data.name}' is a single number; there is nothing to draw")
    for axis in (x, curves):
        if axis is not None:
            look_up("report", axis, dict.fromkeys(axes))
    if x is not None and x == curves:
        raise InputError(f"report: '{x}' is along x already; choose another axis for the curves")
    along = x or max(axes, key=lambda axis: (_is_number(mean[axis].values[0]), mean.sizes[axis]))
    others = [axis for axis in axes if axis != along]
    split = curves or (min(others, key=lambda axis: mean.sizes[axis]) if others else None)
    if split is not None and mean.sizes[split] > MOST_CURVES:
        raise InputError(
            f"report: {mean.sizes[split]} curves along '{split}' cannot be told apart; choose with --where"
        )
    panels, pages = [axis for axis in others if axis != split], []
    while math.prod(mean.sizes[axis] for axis in panels) > MOST_PANELS:
        pages.append(max(panels, key=lambda axis: mean.sizes[axis]))
        panels.remove(pages[-1])
    if math.prod(mean.sizes[axis] for axis in pages) > MOST_FIGURES:
        raise InputError(f"report: {', '.join(pages)} make too many figures; choose values with --where")
    figures = {}
    for position in itertools.product(*(range(mean.sizes[axis]) for axis in pages)):
        chosen = dict(zip(pages, position, strict=True))
        name = "-".join([str(data.name), *(f"{axis}-{_text(mean[axis].values[i])}" for axis, i in chosen.items())])
        here, bars = mean.isel(chosen), None if error is None else error.isel(chosen)
        if not bool(here.notnull().any()):  # a part that these problems do not have
            continue
        figures[name] = styled(lambda here=here, bars=bars: _draw(here, bars, along, split, panels))  # type: ignore[misc]
    return figures


def _draw(
    mean: xarray.DataArray, error: xarray.DataArray | None, along: str, split: str | None, panels: list[str]
) -> Figure:
    points = list(itertools.product(*(range(mean.sizes[axis]) for axis in panels)))
    columns = min(3, len(points))
    rows = math.ceil(len(points) / columns)
    figure = Figure(figsize=(3.2 * columns + 0.8, 2.6 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    ticks = mean[along].values
    numeric = _is_number(ticks[0])
    x = ticks.astype(float) if numeric else np.arange(len(ticks), dtype=float)
    logarithmic = _spans(mean.values)
    for position, axes in itertools.zip_longest(points, grid.flat):
        if position is None:
            axes.set_axis_off()
            continue
        chosen = dict(zip(panels, position, strict=True))
        here = mean.isel(chosen)
        bars = None if error is None else error.isel(chosen)
        series = [
            Series(
                "" if split is None else f"{split} = {_text(mean[split].values[index])}",
                x,
                _line(here, along, split, index),
                None if bars is None else _line(bars, along, split, index),
            )
            for index in range(1 if split is None else mean.sizes[split])
        ]
        first = position == points[0]
        series_panel(axes, series, along, str(mean.name), log_x=numeric and _spans(x), log_y=logarithmic, legend=first)
        if not numeric:
            axes.set_xticks(x, [str(tick) for tick in ticks], rotation=30)
        if panels:
            axes.set_title(", ".join(f"{a} = {_text(mean[a].values[i])}" for a, i in chosen.items()), loc="left")
    return figure


def _line(data: xarray.DataArray, along: str, split: str | None, index: int) -> np.ndarray:
    one = data if split is None else data.isel({split: index})
    return np.asarray(one.transpose(along).values, dtype=float)


def _spans(values: np.ndarray) -> bool:
    """Return whether positive values span more than a factor of 20, all of them being positive."""
    finite = values[np.isfinite(values)]
    return finite.size > 0 and bool((finite > 0).all()) and float(finite.max() / finite.min()) > LOGARITHMIC


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))


def _text(value: object) -> str:
    return f"{float(value):g}" if _is_number(value) else str(value)  # type: ignore[arg-type]
