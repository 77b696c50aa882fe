"""MNIST and Fashion-MNIST from the idx files that they are published as (http://yann.lecun.com/exdb/mnist/)."""

import gzip
import hashlib
import struct
import zlib
from math import prod
from pathlib import Path
from typing import Protocol

import numpy as np

from gradrank.foundation.errors import InputError
from gradrank.foundation.memory import require_memory
from gradrank.problem.data_sets.source import DataSet, user_file
from gradrank.problem.table import Table

UNSIGNED_BYTES = 0x08  # the only type of value read
DEBIAN = "/usr/share/datasets/fashion-mnist"


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Return the bytes of an idx file, plain or gzipped, as uint8 of the shape that its header states.

    Raises
    ------
    InputError
        If the file is broken, holds more or less than it states, or has another number of dimensions.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return _read(stream, path, dimensions)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"{str(path)!r} cannot be read ({error}); give the file as it was published") from error


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _read(stream: _Readable, path: Path, dimensions: int) -> np.ndarray:
    zero, kind, ndim = struct.unpack(">HBB", stream.read(4))
    if (zero, kind, ndim) != (0, UNSIGNED_BYTES, dimensions):
        raise InputError(f"{str(path)!r} is no idx file of bytes with {dimensions} dimensions; give the published file")
    shape = struct.unpack(f">{ndim}I", stream.read(4 * ndim))
    require_memory(repr(str(path)), 10 * prod(shape), "give a smaller file")
    # One byte more than is stated, to see whether the file goes on.
    content = stream.read(prod(shape) + 1)
    if len(content) != prod(shape):
        more = "more" if len(content) > prod(shape) else f"{len(content)} bytes"
        raise InputError(f"{str(path)!r} states {prod(shape)} bytes and holds {more}; give the published file")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def load_training_set(folder: Path | None, places: list[str], advice: str) -> Table:
    """Return the training images, one row each, and their classes."""
    searched = [Path(place) for place in places]
    images = user_file(folder, _spellings("train-images", "idx3"), searched, advice)
    # The labels beside the images, never those of another copy.
    labels = user_file(images.parent, _spellings("train-labels", "idx1"), [Path()], advice)
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(classes):
        raise InputError(f"{str(images.parent)!r} holds {len(pixels)} images and {len(classes)} labels; {advice}")
    with images.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Table(pixels.reshape(len(pixels), -1).astype(np.float64), classes.astype(np.int64), sha256)


def _spellings(stem: str, kind: str) -> list[str]:
    return [f"{stem}{separator}{kind}-ubyte{end}" for separator in "-." for end in ("", ".gz")]


def _load_mnist(folder: Path | None) -> Table:
    places = ["mnist", ".", "raw", "data", "mnist/raw", "MNIST/raw", "MNIST"]
    return load_training_set(
        folder,
        places,
        "give the folder of MNIST's four idx files (torchvision's MNIST/raw), or name it by GRADRANK_DATA",
    )


def _load_fashion_mnist(folder: Path | None) -> Table:
    places = ["fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "fashion-mnist/raw", ".", "raw", DEBIAN]
    advice = (
        "give the folder of Fashion-MNIST's four idx files (torchvision's FashionMNIST/raw), name it by GRADRANK_DATA, "
        "or on Debian run: apt install dataset-fashion-mnist"
    )
    return load_training_set(folder, places, advice)


MNIST = DataSet(
    name="mnist",
    description="handwritten digits of 28 × 28 pixels, grey levels 0…255, the training set",
    shape="60000 × 784",
    source="a folder with MNIST's idx files",
    constant_columns_expected=True,
    load=_load_mnist,
)
FASHION_MNIST = DataSet(
    name="fashion-mnist",
    description="clothes of 28 × 28 pixels, grey levels 0…255, the training set",
    shape="60000 × 784",
    source="a folder with Fashion-MNIST's idx files, or apt install dataset-fashion-mnist",
    constant_columns_expected=True,
    load=_load_fashion_mnist,
)
