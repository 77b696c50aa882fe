"""NumPy's own formats, .npy and .npz, without ever unpickling."""

import zipfile
from dataclasses import dataclass
from math import prod
from typing import IO, Literal

import numpy as np

from gradrank.problem.files.members import choose_members
from gradrank.problem.files.source import DataFile


@dataclass(frozen=True)
class Header:
    """What a .npy stream says of the array that follows."""

    shape: tuple[int, ...]
    column_order: bool
    dtype: np.dtype
    offset: int  # bytes before the first element

    @property
    def count(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read the header at the start of a .npy stream."""
    npy = np.lib.format
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"unknown version {version}")
    # Version 3.0 is 2.0 with any letters in the field names of structured types, and those are refused anyway.
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, column_order, dtype = read(stream)
    if min(shape, default=0) < 0:
        raise ValueError(f"negative shape {shape}")
    return Header(tuple(shape), column_order, dtype, stream.tell())


def check_header(file: DataFile, header: Header, size: int, what: str) -> None:
    """Refuse pickled objects, and a stream of ``size`` bytes that is shorter than its header promises."""
    if header.dtype.hasobject:
        raise file.refuse(f"holds Python objects{what}", "give an array of numbers; pickled objects are never loaded")
    if header.offset + header.count > size:
        raise file.refuse(
            f"is truncated{what}: its header promises {header.count} bytes, {size - header.offset} are there",
            "give a complete file",
        )


def read_npy(file: DataFile) -> np.ndarray:
    """Return the array of a .npy file as a read-only memory map, so that only the rows that are used are read."""
    with file.parsing("a .npy array"), file.path.open("rb") as stream:
        header = read_header(stream)
        check_header(file, header, file.size, "")
        if header.count == 0 or header.shape == ():  # nothing to map, and refused by its shape later
            return np.empty(header.shape, dtype=header.dtype)
        order: Literal["F", "C"] = "F" if header.column_order else "C"
        mapped: np.ndarray = np.memmap(
            file.path, header.dtype, mode="r", offset=header.offset, shape=header.shape, order=order
        )
        return mapped


def read_npz(file: DataFile, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return X and, if there is one, y of a .npz archive; `choose_members` says which arrays these are."""
    with file.parsing("a .npz archive"), zipfile.ZipFile(file.path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info for info in archive.infolist() if info.filename.endswith(".npy")
        }
        headers = {}
        for name, info in members.items():
            with archive.open(info) as stream:
                headers[name] = read_header(stream)
        x, y = choose_members(file, {name: header.shape for name, header in headers.items()}, labels)
        wanted = [x] if y is None else [x, y]
        for name in wanted:
            check_header(file, headers[name], members[name].file_size, f" in {name!r}")
        # Reading stops at the size that the archive's directory states: a small file cannot unpack into more.
        file.require_memory(sum(headers[name].count for name in wanted))
        arrays = []
        for name in wanted:
            with archive.open(members[name]) as stream:
                arrays.append(np.lib.format.read_array(stream, allow_pickle=False))
        return arrays[0], None if y is None else arrays[1]
