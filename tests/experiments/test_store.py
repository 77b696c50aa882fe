"""The store: what it holds, what it refuses, and what is left when the disk refuses."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from test_experiment import experiment

from gradrank.experiments.store import State, Store
from gradrank.foundation.errors import InputError, StorageError


def filled(path: Path) -> Store:
    with Store.open(path, experiment()) as store:
        for cell in experiment().cells():
            y = cell.parameters["a"] * np.arange(3.0) + cell.seed  # type: ignore[operator]
            store.write(cell, {"y": y, "length": np.array(len(str(cell.parameters["b"])))}, 0.25, "here")
    return Store.existing(path)


def test_xarray_opens_it_with_names_and_coordinates(tmp_path: Path) -> None:
    filled(tmp_path / "s.zarr")
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert data["y"].dims == ("a", "b", "seed", "k")
    assert list(data["b"].values) == ["x", "yy", "zzz"]
    assert list(data["seed"].values) == [3, 5]
    one = data.sel(a=1.5, b="yy", seed=5)
    assert one["y"].values.tolist() == [5.0, 6.5, 8.0]
    assert float(one["length"]) == 2.0
    assert str(one["host"].values) == "here"
    assert float(data["seconds"].min()) == 0.25
    assert (data["state"] == State.DONE).all()
    assert json.loads(data.attrs["specification"]) == experiment().specification()
    run = json.loads(data.attrs["runs"])[0]
    assert {"started", "gradrank", "packages", "revision", "host"} <= set(run)
    assert run["packages"]["zarr"] == zarr.__version__
    assert data.attrs["digest"] == experiment().digest


def test_what_is_missing_is_not_a_number(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.zarr", experiment())
    cells = list(experiment().cells())
    store.write(cells[0], {"y": np.ones(3), "length": np.array(1.0)}, 1.0, "here")
    store.write_error(cells[1], "ValueError: ä", 2.0, "there")
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert int(data["y"].notnull().sum()) == 3
    assert int((store.state() == State.DONE).sum()) == 1
    assert store.errors() == {cells[1].index: "ValueError: ä"}


def test_opening_again_keeps_the_results_and_adds_a_run(tmp_path: Path) -> None:
    filled(tmp_path / "s.zarr")
    again = Store.open(tmp_path / "s.zarr", experiment())
    assert (again.state() == State.DONE).all()
    assert len(again.runs) == 2


def test_another_specification_is_refused_with_the_difference(tmp_path: Path) -> None:
    filled(tmp_path / "s.zarr")
    with pytest.raises(InputError, match=r"holds the results of another specification: seeds is \[3, 5\], not \[3\]"):
        Store.open(tmp_path / "s.zarr", experiment(seeds=[3]))
    assert len(Store.existing(tmp_path / "s.zarr").runs) == 1


def test_what_is_not_a_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    file = tmp_path / "file"
    file.write_text("mine")
    other = tmp_path / "other.zarr"
    xarray.Dataset({"x": ("a", [1.0])}).to_zarr(other, consolidated=False)
    for path in (folder, file, other):
        with pytest.raises(InputError, match="is not a store of gradrank"):
            Store.open(path, experiment())
        with pytest.raises(InputError, match="is not a store of gradrank"):
            Store.existing(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "mine", "other.zarr"]
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]
    with pytest.raises(InputError, match="is not a store of gradrank"):
        Store.existing(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_damaged_chunks_are_named_and_their_cells_computed_again(tmp_path: Path) -> None:
    store = filled(tmp_path / "s.zarr")
    assert int(store.load()["length"].sum()) == int(xarray.open_zarr(tmp_path / "s.zarr")["length"].sum())
    chunks = sorted((tmp_path / "s.zarr" / "state" / "c").rglob("*"))
    damaged = next(path for path in chunks if path.is_file())
    os.truncate(damaged, 3)
    with Store.open(tmp_path / "s.zarr", experiment()) as again:
        states = again.state()
    assert (states == State.MISSING).sum() == 1
    assert (states == State.DONE).sum() == states.size - 1
    with pytest.raises(InputError, match=r"store: .*s\.zarr' has a damaged chunk in 'state'"):
        Store.existing(tmp_path / "s.zarr").load()
    filled(tmp_path / "s.zarr")
    assert (Store.existing(tmp_path / "s.zarr").state() == State.DONE).all()


def _attribute(name: str, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        body = json.loads((path / "zarr.json").read_text())
        body["attributes"][name] = value
        (path / "zarr.json").write_text(json.dumps(body))

    return change


def _content(file: str, text: str) -> Callable[[Path], object]:
    return lambda path: (path / file).write_text(text)


@pytest.mark.parametrize(
    "damage",
    [
        *(partial(lambda name, path: shutil.rmtree(path / name), name) for name in ("y", "state", "a")),
        *(
            _content(f"{name}/zarr.json", text)
            for name in ("y", "state", "a")
            for text in ("", "{", "[]", "{}", "null")
        ),
        _content("y/zarr.json", '{"zarr_format": 3, "node_type": "array"}'),
        *(_content("zarr.json", text) for text in ("", "{", "[]", "null")),
        *(_attribute(name, value) for name in ("specification", "dimensions", "runs") for value in ("x", None)),
        _attribute("name", None),
        _content("a/c/0", ""),
        _content("b/c/0", "no chunk"),
    ],
)
def test_a_damaged_store_is_refused_in_one_line(
    tmp_path: Path, damage: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """Not called complete, and not an exception of Zarr's; nothing else is printed."""
    path = tmp_path / "s.zarr"
    filled(path)
    damage(path)
    for opened in (lambda: Store.existing(path), lambda: Store.open(path, experiment())):
        with pytest.raises(InputError, match=r"store: '.*s\.zarr' is (damaged \(|not a store of gradrank)"):
            opened()
    assert capsys.readouterr() == ("", "")


def test_a_store_that_another_run_makes_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, replace, made = tmp_path / "s.zarr", Path.replace, []

    def late(self: Path, target: Path) -> Path:
        if not made:
            made.append(True)
            filled(path)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    assert (Store.open(path, experiment()).state() == State.DONE).all()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["s.zarr"]


def test_an_empty_folder_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "s.zarr").mkdir()
    assert Store.open(tmp_path / "s.zarr", experiment()).state().sum() == 0


def test_mixed_axes_become_names(tmp_path: Path) -> None:
    Store.open(tmp_path / "s.zarr", experiment(grid={"a": ["ntk", 0.5], "b": [1, 2.5]}))
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert list(data["a"].values) == ["ntk", "0.5"]
    assert list(data["b"].values) == [1.0, 2.5]


@pytest.mark.parametrize("code", ["ENOSPC", "EROFS", "EACCES"])
def test_a_disk_that_refuses_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    import errno

    from zarr.storage import LocalStore

    store = filled(tmp_path / "s.zarr")
    number = getattr(errno, code)

    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(LocalStore, "set", refuse)
    cell = next(experiment().cells())
    with pytest.raises(StorageError, match="cannot be written") as caught:
        store.write(cell, {"y": np.zeros(3), "length": np.array(0.0)}, 1.0, "here")
    assert os.strerror(number) in str(caught.value)


LIMITED = """
import resource, signal, sys, pathlib, numpy as np
sys.path.insert(0, {tests!r})
from test_experiment import experiment
from gradrank.experiments.store import Store
from gradrank.foundation.errors import StorageError
store = Store.open(pathlib.Path({path!r}), experiment(coordinates={{"k": list(range(5000))}}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
rng = np.random.default_rng(0)
try:
    for cell in experiment().cells():
        store.write(cell, {{"length": np.array(1.0), "y": rng.standard_normal(5000)}}, 1.0, "here")
except StorageError as error:
    print(error)
"""


@pytest.mark.skipif(
    not hasattr(resource, "RLIMIT_FSIZE") or not hasattr(signal, "SIGXFSZ"), reason="no file size limit"
)
def test_a_file_system_that_takes_no_more(tmp_path: Path) -> None:
    """The kernel refuses the bytes of the first chunk: one line, and the cell stays missing."""
    path = tmp_path / "s.zarr"
    code = LIMITED.format(tests=str(Path(__file__).parent), path=str(path))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(f"output: '{path}' cannot be written (")
    assert Store.existing(path).state().sum() == 0
