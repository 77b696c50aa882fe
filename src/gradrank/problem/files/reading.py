"""A data matrix from a file: found, read, checked and hashed."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gradrank.problem.files.delimited import read_delimited
from gradrank.problem.files.labels import checked_labels, label_file, read_labels
from gradrank.problem.files.npy import read_npy, read_npz
from gradrank.problem.files.parquet import read_parquet
from gradrank.problem.files.source import DataFile, data_file
from gradrank.problem.files.tensors import read_tensors
from gradrank.problem.table import Table

BLOCK = 1 << 24  # elements checked at a time, so that the checks need little memory beside the matrix


def read_table(
    path: Path,
    *,
    field: str = "inputs.path",
    labels: str | None = None,
    choose_rows: Callable[[int], np.ndarray] | None = None,
) -> Table:
    """Read a data matrix, one row per sample, and its labels.

    Parameters
    ----------
    path
        A .npy, .npz, .csv, .tsv, .parquet, .pt or .pth file.
    field
        The field of the specification that errors name.
    labels
        A file with one label a row, or else a column (name, or number from 0), an array or a tensor of the data file.
    choose_rows
        Called with the number of rows of the file; returns the sorted indices of the rows to keep. Of a .npy file only
        these rows are read, so that the file may be larger than the memory; it is hashed whole all the same.

    Raises
    ------
    InputError
        For everything that can be wrong with the file, in one line: what is wrong, where, and what is allowed.
    """
    file = data_file(path, field)
    beside = label_file(labels, field.replace("path", "labels"))
    X, y = _read(file, None if beside is not None else labels)
    _check_matrix(file, X)
    n = len(X)
    if beside is not None:
        y = read_labels(beside, n)
    if y is not None:
        y = checked_labels(file if beside is None else beside, y, n)
    rows = None if choose_rows is None else np.asarray(choose_rows(n))
    with file.parsing("a matrix"):
        kept = _float64(file, X, rows)
    if y is not None and rows is not None:
        y = y[rows]
    with file.parsing("a file"), path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Table(kept, y, sha256)


def _read(file: DataFile, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    match file.path.suffix.lower():
        case ".npy":
            if labels is not None:
                raise file.refuse(f"holds no labels {labels!r}", "give as labels an existing file, one label a row")
            return read_npy(file), None
        case ".npz":
            return read_npz(file, labels)
        case ".csv" | ".tsv":
            return read_delimited(file, labels)
        case ".parquet":
            return read_parquet(file, labels)
        case ".pt" | ".pth":
            return read_tensors(file, labels)
    raise file.refuse(
        f"has the unknown ending {file.path.suffix!r}", "give a .npy, .npz, .csv, .tsv, .parquet, .pt or .pth file"
    )


def _check_matrix(file: DataFile, X: np.ndarray) -> None:
    if X.dtype.kind not in "buif":
        raise file.refuse(f"holds values of type {X.dtype}", "give real numbers")
    if X.ndim != 2:
        raise file.refuse(f"holds an array of shape {X.shape}", "give two dimensions, one row per sample")
    if min(X.shape) < 2:
        raise file.refuse(f"holds an array of shape {X.shape}", "give at least two rows and two columns")


def _float64(file: DataFile, X: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """Return the chosen rows as float64 in row order, all finite."""
    n, d = len(X) if rows is None else len(rows), X.shape[1]
    in_memory = X.dtype == np.float64 and X.flags.c_contiguous and not isinstance(X, np.memmap)
    if rows is None and in_memory:
        kept = np.asarray(X)
    else:
        file.require_memory(8.0 * n * d)
        kept = np.empty((n, d))
    step = max(1, BLOCK // d)
    count, first = 0, None
    for start in range(0, n, step):
        block = slice(start, start + step)
        if kept is not X:
            # Extended precision beyond float64 becomes infinite, a signalling NaN a quiet one: both are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                kept[block] = X[block if rows is None else rows[block]]
        bad = ~np.isfinite(kept[block])
        if bad.any():
            count += int(bad.sum())
            row, column = np.argwhere(bad)[0]
            first = first or (int(start + row if rows is None else rows[start + row]), int(column))
    if first is not None:
        raise file.refuse(
            f"holds {count} values that are NaN or infinite, the first in row {first[0]}, column {first[1]}",
            "give finite values only (rows and columns are counted from 0)",
        )
    return kept
