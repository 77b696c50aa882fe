"""Where results come from: versions, revision, host and time."""

from __future__ import annotations

import datetime
import os
import platform
import socket
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gradrank.version import __version__

PACKAGES = ("torch", "numpy", "scipy", "xarray", "zarr", "dask", "distributed")


def provenance() -> dict[str, Any]:
    """Return what a run depends on besides its specification, as plain data."""
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gradrank": __version__,
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "revision": git_revision(Path(__file__).parent),
        "host": socket.gethostname(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def git_revision(folder: Path) -> str | None:
    """Return the commit of the repository that holds ``folder``, with "+changes" if files differ; None without one."""
    try:
        head = _git(folder, "rev-parse", "HEAD")
        return head + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    found = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
