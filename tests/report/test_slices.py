"""Slices of labelled arrays as figures."""

import numpy as np
import pytest
import xarray

from gradrank.foundation.errors import InputError
from gradrank.report.slices import select, slices


def data(**sizes: int) -> xarray.DataArray:
    shape = tuple(sizes.values())
    values = 1.0 + np.arange(np.prod(shape), dtype=float).reshape(shape)
    coordinates = {axis: np.arange(size) / 4 for axis, size in sizes.items() if axis != "kind"}
    if "kind" in sizes:
        coordinates["kind"] = np.array([f"k{i}" for i in range(sizes["kind"])])
    return xarray.DataArray(values, dims=tuple(sizes), coords=coordinates, name="y")


def test_means_and_errors_are_drawn() -> None:
    one = data(x=5, kind=2, seed=4)
    (figure,) = slices(one).values()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "x"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["kind = k0", "kind = k1"]
    lines = [container.lines[0].get_ydata() for container in axes.containers]
    assert lines[0] == pytest.approx(one.sel(kind="k0").mean("seed").values)
    low, high = axes.containers[0].lines[2][0].get_segments()[0][:, 1]
    expected = one.isel(x=0, kind=0).values.std(ddof=1) / 2
    assert (high - low) / 2 == pytest.approx(expected)


def test_panels_and_figures_for_what_is_left() -> None:
    assert len(slices(data(x=5, kind=2, a=3, seed=2))["y"].axes) == 3
    many = slices(data(x=9, kind=2, a=7, b=4, seed=2))
    assert len(many) == 7
    assert "y-a-0.25" in many


def test_what_is_not_there_is_left_out() -> None:
    one = data(x=9, kind=2, a=7, b=4, seed=2)
    one.loc[{"a": 0.5}] = np.nan
    assert len(slices(one)) == 6


def test_choices() -> None:
    one = data(x=5, kind=2, seed=2)
    assert select(one, {"kind": "k1"}).dims == ("x", "seed")
    assert select(one, {"x": "0.25"}).values.tolist() == one.isel(x=1).values.tolist()
    figure = slices(one, x="kind", curves="x")["y"]
    assert figure.axes[0].get_xlabel() == "kind"
    for call, message in (
        (lambda: select(one, {"kind": "k9"}), "where.kind: 'k9' is not allowed"),
        (lambda: slices(one, x="z"), "report: 'z' is not allowed"),
        (lambda: slices(data(seed=3)), "is a single number"),
        (lambda: slices(data(x=9, kind=9)), "9 curves along 'kind' cannot be told apart"),
    ):
        with pytest.raises(InputError, match=message):
            call()
