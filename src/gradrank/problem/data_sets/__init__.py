"""Data sets that can be asked for by name; none is downloaded, each comes from a package or a folder of the user."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import look_up
from gradrank.problem.data_sets.digits import DIGITS, MNIST_5K
from gradrank.problem.data_sets.embeddings import CIFAR10_EMBEDDINGS, PHOTO_EMBEDDINGS
from gradrank.problem.data_sets.idx import FASHION_MNIST, MNIST
from gradrank.problem.data_sets.photos import PHOTO_PATCHES
from gradrank.problem.data_sets.source import DataSet
from gradrank.problem.table import Table

__all__ = ["DATA_SETS", "DataSet", "load_data_set"]

DATA_SETS: Mapping[str, DataSet] = MappingProxyType(
    {
        data_set.name: data_set
        for data_set in (DIGITS, MNIST_5K, MNIST, FASHION_MNIST, PHOTO_PATCHES, PHOTO_EMBEDDINGS, CIFAR10_EMBEDDINGS)
    }
)


def load_data_set(name: str, folder: Path | None = None, field: str = "inputs.name") -> Table:
    """Return the raw values of a data set, with its rows in the order of the source (some are sorted by class).

    Parameters
    ----------
    name
        One of `DATA_SETS`.
    folder
        Where the files of the data set lie, for those that are not in a package; else below $GRADRANK_DATA.
    field
        The field of the specification that errors name.

    Raises
    ------
    InputError
        If there is no such data set, or its package or files are missing; the message says what to install or give.
    """
    data_set = look_up(field, name, DATA_SETS)
    try:
        return data_set.load(folder)
    except InputError as error:
        raise InputError(f"{field}: data set '{name}': {error}") from error
