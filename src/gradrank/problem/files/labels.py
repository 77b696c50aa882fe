"""Labels: one number or name per row of the data matrix, from the same file or from one beside it."""

from pathlib import Path

import numpy as np

from gradrank.problem.files.delimited import read_column
from gradrank.problem.files.npy import read_npy
from gradrank.problem.files.source import DataFile, data_file
from gradrank.problem.files.tensors import read_tensors

LABEL_SUFFIXES = (".npy", ".csv", ".tsv", ".txt", ".pt", ".pth")


def label_file(labels: str | None, field: str) -> DataFile | None:
    """Return the file that ``labels`` names, or None if it names no file of labels (but a column or an array)."""
    if labels is None or Path(labels).suffix.lower() not in LABEL_SUFFIXES:
        return None
    try:
        exists = Path(labels).is_file()
    except (OSError, ValueError):
        return None
    return data_file(Path(labels), field) if exists else None


def read_labels(file: DataFile, expected: int) -> np.ndarray:
    """Return the labels of a file that holds nothing else; ``expected`` of them, which the caller checks."""
    suffix = file.path.suffix.lower()
    if suffix == ".npy":
        return read_npy(file)
    if suffix in (".pt", ".pth"):
        return read_tensors(file, None)[0]
    return read_column(file, expected)


def checked_labels(file: DataFile, y: np.ndarray, n: int) -> np.ndarray:
    """Return labels of shape (n,) as int64, float64 or strings, or raise an `InputError` that says what is wrong."""
    if y.ndim == 2 and 1 in y.shape:
        y = y.reshape(-1)
    if y.ndim != 1:
        raise file.refuse(f"holds labels of shape {y.shape}", f"give one label for each of the {n} rows")
    if len(y) != n:
        raise file.refuse(f"holds {len(y)} labels for {n} rows", "give one label a row")
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    if y.dtype.kind not in "buifU":
        raise file.refuse(f"holds labels of type {y.dtype}", "give real numbers, integers or strings")
    if y.dtype.kind == "U":
        with file.parsing("labels of text"):
            y = np.array(y.tolist(), dtype=np.str_)  # fails on bytes that are no letters
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
        if bad.any():
            raise file.refuse(
                f"holds {int(bad.sum())} labels that are NaN or infinite, the first in row {int(bad.argmax())}",
                "give finite labels (rows are counted from 0)",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return y.astype(np.float64)
    return y.astype(np.int64) if np.can_cast(y.dtype, np.int64) else np.array(y)
