"""Saving and loading measurements: a folder appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradrank.foundation.errors import InputError, StorageError
from gradrank.measurement.drawing import combined_page, page, pictures
from gradrank.measurement.ensemble import ENSEMBLE_SCHEMA, Ensemble
from gradrank.measurement.labelled import arrays_of, dataset
from gradrank.measurement.record import SCHEMA, Measurement, measurement_from_parts

BODY, ARRAYS, PAGE, SEEDS = "measurement.json", "arrays.zarr", "index.html", "seeds"


def check_writable(directory: Path, *, overwrite: bool) -> None:
    """Refuse a folder that could not be written to at the end, before anything is computed.

    Raises
    ------
    InputError
        If the path is a file, or a folder that holds something and ``overwrite`` is not given.
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"output: '{directory}' is a file; give the name of a folder")
    try:
        occupied = directory.is_dir() and any(directory.iterdir())
    except OSError as error:
        raise StorageError(f"output: '{directory}' cannot be read ({error.strerror})") from None
    if occupied and not overwrite:
        raise InputError(f"output: '{directory}' is not empty; give another folder, or --overwrite (overwrite=True)")


def save(result: Measurement | Ensemble, directory: Path, *, overwrite: bool = False) -> Path:
    """Write a result to a folder and return the path of its page; see `Measurement.save`."""
    return _whole(directory, overwrite, lambda folder: _write(result, folder))


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

    return _whole(Path(directory), overwrite, write)


def _whole(directory: Path, overwrite: bool, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a folder beside ``directory``, then move it into place; return the page's path."""
    check_writable(directory, overwrite=overwrite)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", suffix=".partial", dir=directory.parent))
    except OSError as error:
        raise StorageError(f"output: '{directory}' cannot be written ({error.strerror})") from None
    try:
        write(partial)
        partial.chmod(0o777 & ~_umask())
        _move_into_place(partial, directory)
    except OSError as error:
        raise StorageError(f"output: '{directory}' cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return directory / PAGE


def load(directory: str | Path) -> Measurement | Ensemble:
    """Read back what `Measurement.save` or `Ensemble.save` wrote.

    Raises
    ------
    InputError
        If the folder does not hold a complete measurement of a known schema.
    """
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


def _move_into_place(partial: Path, directory: Path) -> None:
    """Rename the finished folder; into an occupied one, replace only the entries that are written here."""
    if not directory.exists() or not any(directory.iterdir()):
        partial.replace(directory)
        return
    for entry in partial.iterdir():
        old = directory / entry.name
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        entry.replace(old)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


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
