"""`Store`: the results of an experiment in one Zarr v3 group, a chunk per cell and array, written by one process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from gradrank.experiments.experiment import Cell, Experiment, Value, differences
from gradrank.experiments.provenance import provenance
from gradrank.foundation.errors import GradrankError, InputError, StorageError

if TYPE_CHECKING:
    import xarray

SCHEMA = "gradrank.experiment/1"
BUILTIN: dict[str, Any] = {"state": np.int8, "seconds": np.float64, "host": "string", "error": "string"}


class State(IntEnum):
    """Whether a cell is there. Written last: a cell that is DONE is there whole."""

    MISSING = 0
    DONE = 1
    FAILED = 2


class Store:
    """A Zarr v3 group with named dimensions, which `xarray.open_zarr` opens at its root.

    Every output has the dimensions of the grid, ``seed``, and its own; what is missing is NaN. Beside the outputs there are
    ``state`` (see `State`), ``seconds``, ``host`` and ``error`` of every cell. Zarr writes a chunk to a partial file and
    renames it, so a process that is killed leaves whole chunks; a cell counts once its state, written last, says so.
    """

    def __init__(self, path: Path, group: zarr.Group) -> None:
        self.path = path
        self._group = group
        self._arrays: dict[str, Any] = {name: group[name] for name in (*self.specification["outputs"], *BUILTIN)}
        self._unlock: Callable[[], object] = lambda: None
        self._erring: set[tuple[int, ...]] = set()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._unlock()

    @classmethod
    def open(cls, path: Path, experiment: Experiment) -> Store:
        """Open the store of an experiment for writing, or create it: whole or not at all. One process at a time may write.

        Raises
        ------
        InputError
            If the path holds something else, or the store of another specification; the difference is shown.
        StorageError
            If the disk refuses, or another run is writing.
        """
        with _disk(path):
            new = is_new(path)
            if new:
                _create(path, experiment)
            store = cls.existing(path)
            if store.specification != experiment.specification():
                found = differences(store.specification, experiment.specification())
                raise InputError(
                    f"output: '{path}' holds the results of another specification: {'; '.join(found[:4])}; "
                    "give another folder"
                )
            store._unlock = weakref.finalize(store, os.close, _lock(path))
            store._group.attrs["runs"] = json.dumps([*store.runs, provenance()])
            _consolidate(path)
            if not new:
                store._erring = store._with_an_error()
            return store

    @classmethod
    def existing(cls, path: Path) -> Store:
        """Open a store for reading what it is and holds.

        Raises
        ------
        InputError
            If there is none, or it is damaged.
        """
        try:
            group = zarr.open_group(path, mode="r+", use_consolidated=False)
            schema = group.attrs.get("schema")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, PermissionError):
                raise StorageError(f"store: '{path}' cannot be opened ({error.strerror})") from None
            schema = None
        if schema != SCHEMA:
            raise InputError(f"store: '{path}' is not a store of gradrank; give another folder")
        try:
            with warnings.catch_warnings(action="ignore"):  # of what Zarr makes of an array that it does not know
                store = cls(path, group)
                store._require_whole()
        except OSError:
            raise
        except Exception as error:  # whatever JSON, Zarr or a codec raises
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(
                f"store: '{path}' is damaged ({reason[:200]}); restore it, or give another folder"
            ) from None
        return store

    def _require_whole(self) -> None:
        """Read what there is of each kind once: attributes, coordinates, and whether every array has the shape it should."""
        coordinates: list[Any] = [self._group[name] for name in self.dimensions]
        shape = tuple(len(np.asarray(one[...])) for one in coordinates)
        outer = len(self.specification["grid"]) + 1
        for name, array in self._arrays.items():
            if array.shape[:outer] != shape[:outer]:
                raise ValueError(f"'{name}' has the shape {array.shape}")
        if not isinstance(self._group.attrs["name"], str) or not all(isinstance(one, dict) for one in self.runs):
            raise ValueError("'name' or 'runs' is of another kind")

    @property
    def specification(self) -> dict[str, Any]:
        """The specification that the store was made by."""
        return dict(json.loads(str(self._group.attrs["specification"])))

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The provenance of every run that wrote to the store."""
        return list(json.loads(str(self._group.attrs["runs"])))

    @property
    def dimensions(self) -> list[str]:
        """The names of the coordinates."""
        return list(json.loads(str(self._group.attrs["dimensions"])))

    def pending(self, experiment: Experiment) -> list[Cell]:
        """Return the cells that are not done, those that failed among them."""
        state = self.state()
        return [cell for cell in experiment.cells() if state[cell.index] != State.DONE]

    def state(self) -> np.ndarray:
        """Return the state of every cell, the shape of the grid and the seeds; of a damaged chunk, MISSING."""
        states = self._arrays["state"]
        try:
            return np.asarray(states[...])
        except OSError:
            raise
        except Exception:  # whatever a codec raises
            found = np.full(states.shape, int(State.MISSING), dtype=np.int8)
            for index in np.ndindex(states.shape):
                with suppress(Exception):
                    found[index] = states[index]
            return found

    def load(self) -> xarray.Dataset:
        """Return everything as a labelled data set.

        Raises
        ------
        InputError
            If a chunk is damaged; the message names the array.
        """
        import xarray

        with xarray.open_zarr(self.path) as opened:
            for name in opened.variables:
                try:
                    opened.variables[name].load()
                except OSError:
                    raise
                except Exception as error:  # whatever a codec raises
                    raise InputError(
                        f"store: '{self.path}' has a damaged chunk in '{name}' ({' '.join(str(error).split())}); "
                        "delete the store, or that file and the cell's file in 'state', and run again"
                    ) from None
            data: xarray.Dataset = opened.load()
        return data

    def errors(self) -> dict[tuple[int, ...], str]:
        """Return the error of every cell that failed."""
        failed = np.argwhere(self.state() == State.FAILED)
        return {tuple(map(int, index)): str(self._arrays["error"][tuple(index)]) for index in failed}

    def _with_an_error(self) -> set[tuple[int, ...]]:
        """Return the cells with a message, also of those that an earlier run could not finish."""
        texts = np.asarray(self._arrays["error"][...])
        return {tuple(map(int, index)) for index in np.argwhere(texts != "")}

    def write(self, cell: Cell, arrays: Mapping[str, np.ndarray], seconds: float, host: str) -> None:
        """Write a finished cell.

        Raises
        ------
        StorageError
            If the disk refuses; the cell then stays missing.
        """
        with _disk(self.path):
            for name, value in arrays.items():
                self._arrays[name][cell.index] = value
            if cell.index in self._erring:
                self._arrays["error"][cell.index] = ""
                self._erring.remove(cell.index)
            self._finish(cell, State.DONE, seconds, host)

    def write_error(self, cell: Cell, message: str, seconds: float, host: str) -> None:
        """Keep the error of a cell that failed."""
        with _disk(self.path):
            self._arrays["error"][cell.index] = message
            self._erring.add(cell.index)
            self._finish(cell, State.FAILED, seconds, host)

    def _finish(self, cell: Cell, state: State, seconds: float, host: str) -> None:
        self._arrays["seconds"][cell.index] = seconds
        self._arrays["host"][cell.index] = host
        self._arrays["state"][cell.index] = int(state)


def is_new(path: Path) -> bool:
    """Return whether nothing is there yet, or an empty folder."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def _lock(path: Path) -> int:
    """Lock the folder for this process; the system lets go of it when the process ends, however it ends.

    Network file systems that lock no folders are left without a lock.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        raise StorageError(
            f"output: another run is writing to '{path}'; wait for its end, or give another folder"
        ) from None
    except OSError:
        pass
    return folder


def _create(path: Path, experiment: Experiment) -> None:
    """Write an empty store beside its place and move it there."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-"[:100], dir=target.parent))
    try:
        temporary.chmod(0o755)
        _write_empty(temporary, experiment)
        if target.exists():
            target.rmdir()
        temporary.replace(target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise  # else another run has made it in the meantime: what it is, is checked next
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _write_empty(path: Path, experiment: Experiment) -> None:
    specification = experiment.specification()
    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.attrs.update(
        {
            "schema": SCHEMA,
            "name": experiment.name,
            "specification": json.dumps(specification, ensure_ascii=False),
            "digest": experiment.digest,
            "dimensions": json.dumps(list(experiment.dimensions)),
            "runs": "[]",
        }
    )
    for name, values in experiment.dimensions.items():
        _coordinate(group, name, list(values))
    outer = experiment.shape
    for name in (*experiment.outputs, *BUILTIN):
        inner = experiment.inner_shape(name) if name in experiment.outputs else ()
        dtype = BUILTIN.get(name, np.float64)
        fill: Any = {"state": int(State.MISSING), "host": "", "error": ""}.get(name, float("nan"))
        group.create_array(
            name,
            shape=(*outer, *inner),
            chunks=(*(1 for _ in outer), *inner),
            dtype=dtype,
            fill_value=fill,
            dimension_names=(*experiment.axes, *experiment.outputs.get(name, ())),
        )


def _consolidate(path: Path) -> None:
    """Copy the metadata of all arrays into the group's, where xarray looks for it first, as xarray does itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part", category=UserWarning)
        zarr.consolidate_metadata(path)


def _coordinate(group: zarr.Group, name: str, values: list[Value]) -> None:
    """Write a coordinate: whole numbers, numbers, or names (all as text where they are mixed)."""
    if all(isinstance(value, int) for value in values):
        data = np.array(values, dtype=np.int64)
    elif all(isinstance(value, (int, float)) for value in values):
        data = np.array(values, dtype=np.float64)
    else:
        data = np.array([str(value) for value in values], dtype=np.dtypes.StringDType())
    array = group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=data.shape, dimension_names=(name,))
    array[...] = data


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Turn what a disk answers into one line."""
    try:
        yield
    except OSError as error:
        if isinstance(error, GradrankError):
            raise
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOTDIR, errno.EEXIST):
            raise InputError(f"output: '{path}' is in a file, not in a folder; give another place") from None
        kept = "" if is_new(path) else "; what is done is kept"
        raise StorageError(f"output: '{path}' cannot be written ({reason}){kept}") from None
