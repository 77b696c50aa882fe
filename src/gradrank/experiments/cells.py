"""What a worker does: one cell, with its threads, and an error that travels as text."""

from __future__ import annotations

import socket
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from gradrank.foundation.references import resolve


@dataclass(frozen=True, eq=False)
class Result:
    """The arrays of one cell, or the error that it ended in."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    error: str = ""
    seconds: float = float("nan")
    host: str = ""


def evaluate(
    function: str, arguments: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], threads: int
) -> Result:
    """Call the experiment's function for one cell and check that it returned what it promised.

    Errors of the function are returned, not raised: a cell that fails must not stop the others, and its message is kept.
    """
    start, host = time.perf_counter(), socket.gethostname()
    try:
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            found = resolve("experiment.function", function)(**arguments)
        arrays = {name: _array(name, found, shape) for name, shape in shapes.items()}
        return Result(arrays, seconds=time.perf_counter() - start, host=host)
    except Exception as error:  # whatever the function raises belongs to this cell
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
        message = " ".join(f"{type(error).__name__}: {error} ({where})".split())
        return Result(error=message, seconds=time.perf_counter() - start, host=host)


def _array(name: str, found: Any, shape: tuple[int, ...]) -> np.ndarray:
    if not isinstance(found, Mapping) or name not in found:
        names = ", ".join(map(str, found)) if isinstance(found, Mapping) else type(found).__name__
        raise KeyError(f"output '{name}' is missing; the function returned {names}")
    value = found[name].numpy(force=True) if isinstance(found[name], torch.Tensor) else np.asarray(found[name])
    if value.dtype.kind not in "fiub":
        raise TypeError(f"output '{name}' has the type {value.dtype}; real numbers are kept")
    if value.shape != shape:
        raise ValueError(f"output '{name}' has the shape {value.shape}, not {shape}")
    return value.astype(np.float64)
