"""Parquet files, through the optional package pyarrow."""

import numpy as np

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names
from gradrank.problem.files.source import DataFile, shortened


def read_parquet(file: DataFile, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numeric columns of a Parquet file as X, and the column named by ``labels`` as y."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            f"{file.field}: reading {str(file.path)!r} needs pyarrow; run: pip install 'gradrank[parquet]'"
        ) from None
    with file.parsing("a Parquet table"), pq.ParquetFile(file.path) as parquet:
        names = [str(name) for name in parquet.schema_arrow.names]
        if labels is not None and names.count(labels) != 1:
            problem = f"has {names.count(labels)} columns {labels!r} for the labels, and no such file exists"
            raise file.refuse(problem, allowed_names(labels, names))
        for name, kind in zip(names, parquet.schema_arrow.types, strict=True):
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            if not numeric and name != labels:
                raise file.refuse(
                    f"has a column {shortened(name)!r} of type {shortened(str(kind))}, not of numbers",
                    "give columns of numbers, or name a column of text as labels",
                )
        rows = int(parquet.metadata.num_rows)
        file.require_memory(2.0 * 8 * rows * len(names))
        table = parquet.read(use_threads=False)
        for name, column in zip(names, table.columns, strict=True):
            if column.null_count:
                first = column.is_null().to_pylist().index(True)
                problem = f"misses {column.null_count} values in column {shortened(name)!r}, the first in row {first}"
                raise file.refuse(problem, "give a table without missing values (rows are counted from 0)")
        X = np.empty((rows, len(names) - (labels is not None)), dtype=np.float64)
        kept = (column for name, column in zip(names, table.columns, strict=True) if name != labels)
        for k, column in enumerate(kept):
            X[:, k] = column.to_numpy()
        return X, None if labels is None else np.array(table.column(names.index(labels)).to_pylist())
