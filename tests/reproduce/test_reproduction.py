"""Every figure at its quick size: cells of the promised shape, plots, claims; and a whole one from store to page."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray

from gradrank.experiments.cells import evaluate
from gradrank.experiments.cluster import Where
from gradrank.foundation.errors import InputError
from gradrank.report.claims import Claim
from gradrank.reproduce.catalogue import CATALOGUE
from gradrank.reproduce.low_rank.fig1 import outliers
from gradrank.reproduce.reproduction import citation, reproduce
from gradrank.reproduce.sources import BA
from gradrank.reproduce.statistics import mean_and_error, slope


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_cell_of_each_experiment_is_as_promised(name: str) -> None:
    for experiment in CATALOGUE[name].experiments(True).values():
        cell = next(experiment.cells())
        shapes = {output: experiment.inner_shape(output) for output in experiment.outputs}
        arguments = {**experiment.fixed, **cell.parameters, "seed": cell.seed}
        if "size" in arguments:
            arguments["size"] = [30, 40, 50]
            shapes = {output: tuple(min(s, 40) if s > 101 else s for s in shape) for output, shape in shapes.items()}
        result = evaluate(experiment.function, arguments, shapes, 1)
        assert result.error == ""


@pytest.mark.parametrize("name", CATALOGUE)
def test_both_versions_are_described(name: str) -> None:
    one = CATALOGUE[name]
    assert one.name == name
    assert "|" in one.cost
    quick, full = one.experiments(True), one.experiments(False)
    assert quick.keys() == full.keys()
    assert any(quick[key].digest != full[key].digest for key in quick)


@pytest.mark.slow
def test_a_figure_from_store_to_page(tmp_path: Path) -> None:
    one = CATALOGUE["fig3"]
    found = reproduce(one, tmp_path / "fig3", quick=True, where=Where(workers=2))
    assert found.holds
    body = json.loads((tmp_path / "fig3" / "claims.json").read_text())
    assert body["holds"] is True
    assert len(body["claims"]) == len(found.claims)
    assert {"text", "source", "measured", "standard_error", "expected", "holds"} <= set(body["claims"][0])
    assert (tmp_path / "fig3" / "fig3.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "fig3" / "fig3.pdf").read_bytes().startswith(b"%PDF")
    page = (tmp_path / "fig3" / "index.html").read_text()
    assert "Claims: 10 of 10 hold" in page
    data = xarray.open_zarr(tmp_path / "fig3" / "spectra.zarr")
    assert data["alignment"].notnull().all()
    with pytest.raises(InputError, match="holds the results of another specification"):
        reproduce(one, tmp_path / "fig3", quick=False, where=Where(workers=2))


def test_outliers_are_counted_above_the_last_wide_gap() -> None:
    bulk = np.linspace(1.0, 0.1, 50)
    assert outliers(bulk) == 0
    assert outliers(np.append([9.0, 3.0, 1.1], bulk)) == 2
    assert outliers(np.append([9.0, 8.0], bulk)) == 2


def test_pages_say_what_to_cite() -> None:
    claims = [Claim("one", f"{BA}, derived here", 1.0, 0.1, 1.0), Claim("two", "measured here", 1.0, 0.1, 1.0)]
    assert citation(claims) == f"Cite gradrank (CITATION.cff of the repository); {BA}."
    assert citation(claims[1:]) == "Cite gradrank (CITATION.cff of the repository)."


def test_slopes_and_means() -> None:
    x = np.log([1.0, 2.0, 4.0])
    rng = np.random.default_rng(0)
    values = xarray.DataArray(0.7 * x[:, None] + rng.normal(0, 0.1, (3, 40)) + rng.normal(0, 5, 40), dims=("n", "seed"))
    found, error = slope(x, values, "n")
    assert abs(found - 0.7) < 3 * error < 0.1
    mean, error = mean_and_error(xarray.DataArray([1.0, 3.0, np.nan]))
    assert (mean, error) == (2.0, 1.0)
