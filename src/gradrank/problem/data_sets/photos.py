"""Colour patches of the sample photographs that scikit-image and scikit-learn install."""

from pathlib import Path

import numpy as np

from gradrank.foundation.errors import InputError
from gradrank.problem.data_sets.source import DataSet, installed_file
from gradrank.problem.table import Table

INSTALL = "pip install scikit-image"
PHOTOS = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "chelsea": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "hubble": ("skimage", "data/hubble_deep_field.jpg"),
    "immunohistochemistry": ("skimage", "data/ihc.png"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "retina": ("skimage", "data/retina.jpg"),
    "rocket": ("skimage", "data/rocket.jpg"),
    "china": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
}
SIDE = 32
STRIDE = 16
SMALLEST_STD = 4.0  # of the 3072 grey levels of a patch: below, it is black border or empty sky
MOST_PER_PHOTO = 1000


def patches(photo: np.ndarray) -> np.ndarray:
    """Return the patches of an (h, w, 3) photograph, shape (k, 32, 32, 3) uint8, in reading order.

    Where there are more than 1000, those kept are evenly spaced, so that they still cover the whole photograph.
    """
    windows = np.lib.stride_tricks.sliding_window_view(photo, (SIDE, SIDE), axis=(0, 1))[::STRIDE, ::STRIDE]
    tiles = np.ascontiguousarray(windows.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))
    tiles = tiles[tiles.reshape(len(tiles), -1).std(axis=1) > SMALLEST_STD]
    if len(tiles) > MOST_PER_PHOTO:
        tiles = tiles[np.linspace(0, len(tiles) - 1, MOST_PER_PHOTO).round().astype(np.intp)]
    return np.asarray(tiles)


def photo_patches() -> tuple[np.ndarray, np.ndarray]:
    """Return all patches, shape (9068, 32, 32, 3) uint8, and the name of the photograph of each."""
    from PIL import Image

    tiles, names = [], []
    for name, (package, relative) in PHOTOS.items():
        path = installed_file(package, relative, INSTALL)
        try:
            with Image.open(path) as image:
                photo = np.asarray(image.convert("RGB"))
        except (OSError, ValueError, SyntaxError) as error:  # Pillow reports a broken PNG as a SyntaxError
            raise InputError(f"the photograph {path.name} of '{package}' is broken; run: {INSTALL}") from error
        tiles.append(patches(photo))
        names += [name] * len(tiles[-1])
    return np.concatenate(tiles), np.array(names)


def _load(_folder: Path | None) -> Table:
    tiles, names = photo_patches()
    return Table(tiles.reshape(len(tiles), -1).astype(np.float64), names, None)


PHOTO_PATCHES = DataSet(
    name="photo-patches",
    description="32×32 colour patches of ten photographs, grey levels 0…255; the label is the photograph",
    shape="9068 × 3072",
    source=INSTALL,
    constant_columns_expected=False,
    load=_load,
)
