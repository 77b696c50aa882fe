"""An output folder: it appears whole or not at all, and never replaces what gradrank did not write."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from gradrank.foundation.errors import GradrankError, InputError, StorageError

PAGE = "index.html"
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


def write_whole(directory: Path, overwrite: bool, write: Callable[[Path], object]) -> Path:
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
