"""Text files of numbers between commas, semicolons or tabs, with the line of every fault."""

import csv
import itertools
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names
from gradrank.problem.files.source import DataFile, shortened

LONGEST_LINE = 1 << 26  # characters; a "line" beyond that is a file of another kind
SAMPLE = 1 << 20  # bytes read to estimate how many cells a file has


@dataclass(frozen=True)
class Columns:
    """What the first lines of a file say of its columns."""

    header: list[str] | None
    count: int
    label: int | None  # the column of labels

    def called(self, column: int) -> str:
        """Return the name of a column for a message, counted from 1 as in a spreadsheet."""
        return f"column {column + 1}" + (f" ({shortened(self.header[column])!r})" if self.header else "")


def read_delimited(file: DataFile, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numeric columns of a text file as X, and the column named by ``labels`` as y.

    ``labels`` is the name of a column, or its number counted from 0. The first line is a header if a column has a text
    there and a number below, or if it holds the name ``labels``.
    """
    _require_memory(file)
    with file.parsing("a table of text"), file.path.open(encoding="utf-8-sig", newline="") as stream:
        rows = _rows(file, stream)
        opening = [*itertools.islice(rows, 2)]
        if not opening:
            raise file.refuse("holds only blank lines", "give at least two lines of numbers")
        first = opening[0][1]
        named = labels in [cell.strip() for cell in first if not _is_number(cell)]
        header = first if named or _is_header(first, opening[-1][1]) else None
        columns = Columns(header, len(first), _label_column(file, first, header, labels))
        cells: array[float] = array("d")
        texts: list[str] = []
        for line, row in itertools.chain(opening[header is not None :], rows):
            if len(row) != columns.count:
                raise file.refuse(
                    f"has {len(row)} cells in line {line}, the first line has {columns.count}",
                    "give the same number of cells in every line",
                )
            if columns.label is not None:
                texts.append(_label(file, line, row.pop(columns.label)))
            try:
                cells.extend([float(cell) for cell in row])
            except ValueError:
                raise _not_a_number(file, line, row, columns) from None
        width = columns.count - (columns.label is not None)
        X = np.frombuffer(cells, dtype=np.float64) if cells else np.empty(0)
        return X.reshape(-1, max(width, 1)), None if columns.label is None else labels_of_texts(texts)


def read_column(file: DataFile, expected: int) -> np.ndarray:
    """Return the only column of a text file of labels.

    A first line of text above other text may be a header or a label: it is a header if one line too many is there.
    """
    _require_memory(file)
    with file.parsing("a column of text"), file.path.open(encoding="utf-8-sig", newline="") as stream:
        texts = []
        for line, row in _rows(file, stream):
            if len(row) != 1:
                raise file.refuse(f"has {len(row)} cells in line {line}", "give one label in every line")
            texts.append(_label(file, line, row[0]))
    is_header = _is_header(texts[:1], texts[1:2]) or (len(texts) == expected + 1 and not _is_number(texts[0]))
    return labels_of_texts(texts[1:] if is_header else texts)


def labels_of_texts(texts: list[str]) -> np.ndarray:
    """Return labels as integers if all of them are, else as floats, else as strings."""
    for kind in (int, float):
        try:
            values = np.array([kind(text) for text in texts])
        except (ValueError, OverflowError):
            continue
        if values.dtype.kind in "if":
            return values
    return np.array([text.strip() for text in texts], dtype=np.str_)


def _require_memory(file: DataFile) -> None:
    with file.path.open("rb") as stream:
        sample = stream.read(SAMPLE)
    separators = sum(sample.count(separator) for separator in (b",", b";", b"\t", b"\n"))
    # Eight bytes for a number, and room for the array to grow.
    file.require_memory(10.0 * file.size * separators / len(sample))


def _rows(file: DataFile, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line that is not blank."""
    lines = _lines(file, stream)
    blank, start = 0, ""
    for start in lines:
        if start.strip():
            break
        blank += 1
    delimiter = "\t" if "\t" in start else ";" if ";" in start else ","
    reader = csv.reader(itertools.chain(itertools.repeat("\n", blank), [start], lines), delimiter=delimiter)
    for row in reader:
        if row and any(cell.strip() for cell in row):
            yield reader.line_num, row


def _lines(file: DataFile, stream: TextIO) -> Iterator[str]:
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise file.refuse(f"has a line of more than {LONGEST_LINE} characters", "give a table of text")
        yield line


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_header(first: list[str], second: list[str]) -> bool:
    return any(not _is_number(above) and _is_number(below) for above, below in zip(first, second, strict=False))


def _label_column(file: DataFile, first: list[str], header: list[str] | None, labels: str | None) -> int | None:
    if labels is None:
        return None
    names = [name.strip() for name in header] if header else []
    if names.count(labels) == 1:
        return names.index(labels)
    if labels.isascii() and labels.isdigit() and int(labels) < len(first):
        return int(labels)
    problem = f"has {names.count(labels)} columns {labels!r} for the labels, and no such file exists"
    numbers = f"the number of a column, 0 to {len(first) - 1}"
    raise file.refuse(problem, f"{allowed_names(labels, names)}, or {numbers}" if header else f"give {numbers}")


def _label(file: DataFile, line: int, cell: str) -> str:
    if not cell.strip():
        raise file.refuse(f"has an empty label in line {line}", "give one label for every row")
    return cell


def _not_a_number(file: DataFile, line: int, row: list[str], columns: Columns) -> InputError:
    k = next(k for k, cell in enumerate(row) if not _is_number(cell))
    column = k + (columns.label is not None and k >= columns.label)
    held = f"holds {shortened(row[k])!r}, not a number," if row[k].strip() else "has an empty cell"
    return file.refuse(
        f"{held} in line {line}, {columns.called(column)}",
        "give numbers with a decimal point; a column of text labels is named as labels",
    )
