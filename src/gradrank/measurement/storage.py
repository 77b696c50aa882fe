"""Saving and loading measurements: a folder appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradrank.foundation.errors import InputError
from gradrank.measurement.drawing import combined_page, page, pictures
from gradrank.measurement.ensemble import ENSEMBLE_SCHEMA, Ensemble
from gradrank.measurement.labelled import arrays_of, dataset
from gradrank.measurement.record import SCHEMA, Measurement, measurement_from_parts
from gradrank.report.folder import PAGE, write_whole

BODY, ARRAYS, SEEDS = "measurement.json", "arrays.zarr", "seeds"


def save(result: Measurement | Ensemble, directory: Path, *, overwrite: bool = False) -> Path:
    """Write a result to a folder and return the path of its page; see `Measurement.save`."""
    return write_whole(directory, overwrite, lambda folder: _write(result, folder))


def write_page(
    results: Mapping[str, Measurement | Ensemble], directory: str | Path, *, overwrite: bool = False
) -> Path:
    """Write several results, a folder each, and one page with all their tables and figures; return the page's path.

    Raises
    ------
    InputError, StorageError
        As `Measurement.save`.
    """

    def write(folder: Path) -> None:
        titled = {}
        for index, (title, result) in enumerate(results.items(), start=1):
            (folder / str(index)).mkdir()
            titled[title] = (result, _write(result, folder / str(index)))
        (folder / PAGE).write_text(combined_page(titled), encoding="utf-8")

    return write_whole(Path(directory), overwrite, write)


def load(directory: str | Path) -> Measurement | Ensemble:
    """Read back what `Measurement.save` or `Ensemble.save` wrote.

    Raises
    ------
    InputError
        If the folder does not hold a complete measurement of a known schema.
    """
    if not isinstance(directory, (str, Path)):
        raise InputError(f"directory: a {type(directory).__name__} is not allowed; give a path")
    directory = Path(directory)
    body = _body(directory / BODY)
    schema = body.get("schema")
    if schema == ENSEMBLE_SCHEMA:
        folders = sorted((directory / SEEDS).iterdir(), key=lambda folder: int(folder.name))
        return Ensemble(tuple(_load_one(folder, _body(folder / BODY)) for folder in folders))
    if schema != SCHEMA:
        raise InputError(
            f"{directory / BODY}: has the schema {schema!r}; this version reads {SCHEMA} and {ENSEMBLE_SCHEMA}"
        )
    return _load_one(directory, body)


def _write(result: Measurement | Ensemble, folder: Path) -> dict[str, bytes]:
    """Write one result to an empty folder and return its figures."""
    (folder / BODY).write_text(result.to_json() + "\n", encoding="utf-8")
    if isinstance(result, Ensemble):
        for one in result.measurements:
            (folder / SEEDS / str(one.seed)).mkdir(parents=True)
            (folder / SEEDS / str(one.seed) / BODY).write_text(one.to_json() + "\n", encoding="utf-8")
            _write_arrays(one, folder / SEEDS / str(one.seed))
    else:
        _write_arrays(result, folder)
    images = pictures(result)
    for name, png in images.items():
        (folder / f"{name}.png").write_bytes(png)
    (folder / PAGE).write_text(page(result, images), encoding="utf-8")
    return images


def _write_arrays(one: Measurement, folder: Path) -> None:
    # Consolidated metadata is not part of the Zarr v3 specification.
    dataset(one).to_zarr(folder / ARRAYS, zarr_format=3, consolidated=False)


def _body(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a folder that `measure` wrote") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a folder that `measure` wrote") from None
    if not isinstance(body, dict):
        raise InputError(f"{path}: is not a measurement; give a folder that `measure` wrote")
    return body


def _load_one(folder: Path, body: dict[str, Any]) -> Measurement:
    import xarray

    try:
        with xarray.open_zarr(folder / ARRAYS, consolidated=False) as data:
            return measurement_from_parts(body, arrays_of(data.load()))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{folder / ARRAYS}: cannot be read ({error}); the folder is not complete") from None
