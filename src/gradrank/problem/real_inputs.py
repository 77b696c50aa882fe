"""Inputs that are not drawn but given: an array, a file, or a data set by name."""

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field, field_validator, model_validator

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import look_up
from gradrank.foundation.random import stream
from gradrank.problem.data_sets import DATA_SETS, load_data_set
from gradrank.problem.files import read_table
from gradrank.problem.inputs import Inputs
from gradrank.problem.specification import Specification
from gradrank.problem.standardise import STANDARDISATIONS, standardise
from gradrank.problem.table import Table


class GivenInputs(Specification):
    """What arrays, files and data sets have in common: which rows are used, and how the columns are prepared."""

    n: int | None = Field(None, ge=2)
    """Rows drawn at random (a new choice for every seed), or all rows in their order."""
    standardise: str = "raw"
    """How the chosen rows are prepared: raw, center, zscore, unit-range, symmetric-range or unit-rows."""
    constant_columns: Literal["error", "zero", "drop"] = "error"
    """What "zscore" does with a column of equal values: refuse it, set it to zero or leave it out."""

    @field_validator("standardise")
    @classmethod
    def _known(cls, name: str) -> str:
        look_up("inputs.standardise", name, STANDARDISATIONS)
        return name

    def draw(self, seed: int) -> Inputs:
        """Read the data and choose the rows of this seed."""
        table = self._chosen(seed)
        X = standardise(table.X, self.standardise, field="inputs", constant_columns=self._constant_columns())
        if min(X.shape) < 2:
            raise InputError(f"inputs: the shape {X.shape} is not allowed; give at least 2 rows and 2 columns")
        return Inputs(given=torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64)), labels=table.y)

    def _constant_columns(self) -> Literal["error", "zero", "drop"]:
        return self.constant_columns

    def _chosen(self, seed: int) -> Table:
        raise NotImplementedError

    def _rows(self, total: int, seed: int) -> np.ndarray:
        """Return the sorted numbers of the rows to use, of ``total``."""
        if self.n is None or self.n == total:
            return np.arange(total)
        if self.n > total:
            raise InputError(f"inputs.n: {self.n} is not allowed; the data have {total} rows, give at most that many")
        return np.sort(stream(seed, "inputs.rows").choice(total, self.n, replace=False))

    def _subset(self, table: Table, seed: int) -> Table:
        rows = self._rows(len(table.X), seed)
        return Table(table.X[rows], None if table.y is None else table.y[rows], table.sha256)


def _numpy(value: Any) -> np.ndarray:
    """Return an array, or raise a ValueError where that would lose something."""
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            raise ValueError("a meta tensor holds no numbers; give a tensor that does")
        dense = value.detach().to_dense() if value.layout != torch.strided else value.detach()
        return np.asarray((dense.double() if dense.is_floating_point() else dense).cpu().numpy())
    if np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).any():
        raise ValueError("a masked array has missing entries; fill them or leave their rows out")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError("rows of different lengths are not allowed; give a matrix, a row per sample") from None


def _matrix(value: Any) -> Any:
    """Accept a numeric array or tensor with two dimensions and finite entries."""
    array = _numpy(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"entries of type {array.dtype} are not allowed; give real numbers")
    if array.ndim != 2 or min(array.shape) < 2:
        raise ValueError(
            f"the shape {array.shape} is not allowed; give at least 2 rows and 2 columns, a row per sample"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"{int(bad.sum())} entries are NaN or infinite, the first in row {row}, column {column}; give finite numbers"
        )
    return array


def _vector(value: Any) -> Any:
    if value is None:
        return None
    array = _numpy(value)
    if array.ndim != 1:
        raise ValueError(f"labels of shape {array.shape} are not allowed; give one label per row")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array))
        raise ValueError(
            f"{bad.size} labels are NaN or infinite, the first in row {bad[0]}; give finite numbers or classes"
        )
    if array.dtype.kind == "O" and any(label is None for label in array):
        raise ValueError("a label is missing (None); give one label per row")
    # Classes of mixed types cannot be sorted; as text they can.
    return array if array.dtype.kind in "fiubU" else array.astype(str)


class ArrayInputs(GivenInputs):
    """An array or tensor X of shape (n, d), with or without labels y of shape (n,)."""

    kind: Literal["given-array"] = "given-array"
    X: Annotated[Any, BeforeValidator(_matrix)]
    """Samples, one row each."""
    y: Annotated[Any, BeforeValidator(_vector)] = None
    """Labels, numbers or classes."""

    def __init__(self, X: Any = None, y: Any = None, **fields: Any) -> None:
        super().__init__(**{"X": X, "y": y, **fields})

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # see Specification

    @model_validator(mode="after")
    def _one_each(self) -> "ArrayInputs":
        if self.y is not None and len(self.y) != len(self.X):
            raise ValueError(f"y: {len(self.y)} labels for {len(self.X)} rows; give one label per row")
        return self

    def _chosen(self, seed: int) -> Table:
        return self._subset(Table(np.asarray(self.X, dtype=np.float64), self.y, None), seed)


class FileInputs(GivenInputs):
    """A file: .npy, .npz, .csv, .parquet or a torch tensor; the rows are samples."""

    kind: Literal["data-file"] = "data-file"
    path: Path
    """Where the file is."""
    labels: str | None = None
    """The label column or array of the file, or another file that holds the labels."""
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """Digest of the file's bytes; a file with another one is refused."""

    def _chosen(self, seed: int) -> Table:
        table = read_table(self.path, labels=self.labels, choose_rows=lambda total: self._rows(total, seed))
        if self.sha256 is not None and table.sha256 != self.sha256:
            raise InputError(
                f"inputs.sha256: {self.path} has the digest {table.sha256}, not {self.sha256}; the file has changed"
            )
        return table

    def with_digest(self) -> "FileInputs":
        """Return the specification with the file's present digest, so that a changed file is noticed."""
        if self.sha256 is not None:
            return self
        with self.path.open("rb") as file:
            return self.model_copy(update={"sha256": hashlib.file_digest(file, "sha256").hexdigest()})


class DataSetInputs(GivenInputs):
    """A data set by its name; `gradrank list` shows them."""

    kind: Literal["data-set"] = "data-set"
    name: str
    """Name of the data set."""
    folder: Path | None = None
    """Where its files are, for data sets that are not installed as a package."""

    @field_validator("name")
    @classmethod
    def _known_name(cls, name: str) -> str:
        look_up("inputs.name", name, DATA_SETS)
        return name

    def _constant_columns(self) -> Literal["error", "zero", "drop"]:
        expected = DATA_SETS[self.name].constant_columns_expected
        return "zero" if expected and self.constant_columns == "error" else self.constant_columns

    def _chosen(self, seed: int) -> Table:
        return self._subset(load_data_set(self.name, self.folder), seed)
