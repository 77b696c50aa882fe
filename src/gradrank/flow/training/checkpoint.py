"""Checkpoints of a run: one file, whole or not at all, that only the same specification goes on from."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

from gradrank.flow.training.series import Series
from gradrank.foundation.errors import InputError, StorageError

FORMAT = 1
PARTIAL = ".partial"


@dataclass
class Checkpoint:
    """Everything that a run needs to go on with the same bits."""

    step: int  # of ``position``; nothing is recorded at this step yet, unless the run has ended
    position: torch.Tensor
    velocity: torch.Tensor | None
    block: torch.Tensor | None  # start of the next singular vectors
    sound: torch.Tensor  # the last weights that were looked at and found finite
    sound_step: int
    series: dict[str, Series]
    ended: bool
    status: str


def save(path: Path, checkpoint: Checkpoint, identity: Mapping[str, str]) -> None:
    """Write the file beside its place and rename it, so that a run killed meanwhile leaves the last one.

    Raises
    ------
    StorageError
        If the disk refuses it.
    """
    series = {
        name: {
            "dims": list(one.dims),
            "owner": one.owner,
            "steps": list(one.steps),
            "values": torch.from_numpy(one.stacked()),
        }
        for name, one in checkpoint.series.items()
    }
    body = {**vars(checkpoint), "series": series, "identity": dict(identity), "format": FORMAT}
    partial = path.with_name(f"{_beginning(path)}{os.getpid()}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            torch.save(body, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise StorageError(f"checkpoint: '{path}' cannot be written ({reason})") from None
    finally:
        partial.unlink(missing_ok=True)


def load(path: Path, identity: Mapping[str, str]) -> Checkpoint | None:
    """Return the checkpoint, or None where there is no file.

    Raises
    ------
    InputError
        If the file is no checkpoint, or one of another specification: the first difference is named.
    """
    if not path.exists():
        return None
    try:
        body = torch.load(path, map_location="cpu", weights_only=True) if zipfile.is_zipfile(path) else None
    except OSError as error:
        raise InputError(f"checkpoint: '{path}' cannot be read ({error.strerror}); give another file") from None
    except Exception:  # torch reports a damaged or foreign archive in any way
        raise _foreign(path) from None
    if not isinstance(body, dict) or body.get("format") != FORMAT or not isinstance(body.get("identity"), dict):
        raise _foreign(path)
    theirs = body["identity"]
    for name in (*identity, *theirs):
        if theirs.get(name) != identity.get(name):
            there, here = theirs.get(name, "nothing"), identity.get(name, "nothing")
            raise InputError(
                f"checkpoint: '{path}' is of another specification ({name}: {there} there, {here} here); give another file"
            )
    series = {name: _series(stored) for name, stored in body["series"].items()}
    fields = ("step", "position", "velocity", "block", "sound", "sound_step", "ended", "status")
    return Checkpoint(series=series, **{name: body[name] for name in fields})


def _series(stored: Mapping[str, Any]) -> Series:
    values = list(stored["values"].numpy())
    return Series(tuple(stored["dims"]), stored["owner"], list(stored["steps"]), values)


def _foreign(path: Path) -> InputError:
    return InputError(f"checkpoint: '{path}' is no checkpoint of a run; give another file")


def _beginning(path: Path) -> str:
    """Return how the name of a file begins that is not whole yet; the number of its process follows."""
    return f".{path.name[:80]}-"


def prepare(path: Path) -> None:
    """Refuse a path that could not be written at the end, before anything is computed, and clear what a killed run left."""
    try:
        folder = path.is_dir()
        path.exists()
    except (OSError, ValueError) as error:  # a name that is too long, or that holds a NUL
        raise InputError(f"checkpoint: {str(path)[:60]!r} is no name of a file ({error}); give another") from None
    if folder:
        raise InputError(f"checkpoint: '{path}' is a folder; give the name of a file")
    if not path.resolve().parent.is_dir():
        raise InputError(f"checkpoint: the folder of '{path}' is not there; give a path in a folder that is")
    for entry in path.resolve().parent.iterdir():
        owner = entry.name.removeprefix(_beginning(path)).removesuffix(PARTIAL)
        ours = entry.name == f"{_beginning(path)}{owner}{PARTIAL}" and owner.isdigit()
        if ours and not psutil.pid_exists(int(owner)):
            entry.unlink(missing_ok=True)
