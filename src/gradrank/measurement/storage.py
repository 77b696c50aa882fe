"""Saving and loading measurements: a folder appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradrank.foundation.errors import GradrankError, InputError, StorageError
from gradrank.measurement.drawing import combined_page, page, pictures
from gradrank.measurement.ensemble import ENSEMBLE_SCHEMA, Ensemble
from gradrank.measurement.labelled import arrays_of, dataset
from gradrank.measurement.record import SCHEMA, Measurement, measurement_from_parts

BODY, ARRAYS, PAGE, SEEDS = "measurement.json", "arrays.zarr", "index.html", "seeds"
CONTENTS = ".gradrank-contents"  # names what a result consists of: only that is ever replaced


def check_writable(directory: Path, *, overwrite: bool) -> Path:
    """Refuse a folder that could not be written at the end, before anything is computed; return its resolved path.

    Raises
    ------
    InputError
        If the path is a file or lies under one, or the folder holds something: without ``overwrite`` anything, with it
        anything but an earlier result.
    StorageError
        If the disk refuses a folder there.
    """
    try:
        target = directory.resolve()
        if target.exists() and not target.is_dir():
            raise InputError(f"output: '{directory}' is a file; give the name of a folder")
        present = {entry.name for entry in target.iterdir()} if target.is_dir() else set()
        _check_contents(directory, target, present, overwrite=overwrite)
        parent = next(folder for folder in (target.parent, *target.parents) if folder.exists())
        if not parent.is_dir():
            raise InputError(f"output: '{directory}' lies under the file '{parent}'; give another folder")
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-"[:100], dir=parent):
            return target
    except OSError as error:
        if isinstance(error, GradrankError):
            raise
        raise StorageError(f"output: '{directory}' cannot be written ({error.strerror})") from None


def _check_contents(directory: Path, target: Path, present: set[str], *, overwrite: bool) -> None:
    if not present:
        return
    if not overwrite:
        raise InputError(f"output: '{directory}' is not empty; give another folder, or --overwrite (overwrite=True)")
    manifest = target / CONTENTS
    known = {CONTENTS, *manifest.read_text(encoding="utf-8").splitlines()} if manifest.is_file() else set()
    if foreign := sorted(present - known):
        raise InputError(
            f"output: '{directory}' holds '{foreign[0]}', which is no part of an earlier result; give another folder"
        )


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
    target = check_writable(directory, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-"[:100], suffix=".partial", dir=target.parent))
    except OSError as error:
        raise StorageError(f"output: '{directory}' cannot be written ({error.strerror})") from None
    try:
        write(partial)
        names = sorted(entry.name for entry in partial.iterdir())
        (partial / CONTENTS).write_text("\n".join(names) + "\n", encoding="utf-8")
        partial.chmod(0o777 & ~_umask())
        _move_into_place(partial, target)
    except OSError as error:
        raise StorageError(f"output: '{directory}' cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target / PAGE


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


def _move_into_place(partial: Path, target: Path) -> None:
    """Rename the finished folder to ``target``; an earlier result there is set aside first and removed afterwards."""
    if not target.exists():
        partial.replace(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-"[:100], suffix=".old", dir=target.parent))
    target.replace(aside)
    try:
        partial.replace(target)
    except BaseException:
        aside.replace(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


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
