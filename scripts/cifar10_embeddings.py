"""Embed CIFAR-10's training images by a ResNet-18 trained on ImageNet, for `gradrank reproduce fig8 --embeddings FOLDER`.

pip install torchvision                                  # of the version that belongs to the installed torch
python scripts/cifar10_embeddings.py FOLDER              # downloads images and weights (215 MB), writes cifar10-resnet18.npz

An embedding is the input of the last layer, 512 numbers; images are enlarged to 224 × 224 pixels and normalised as the
weights were trained. 50,000 images take about a minute on a GPU and an hour on eight cores; --images 5000 is enough for the figure.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

FILE = "cifar10-resnet18.npz"
SIDE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the images that the weights were trained on


def prepared(images: np.ndarray) -> torch.Tensor:
    """Return uint8 images (k, h, w, 3) as the network's input (k, 3, 224, 224)."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    pixels = torch.nn.functional.interpolate(pixels, size=(SIDE, SIDE), mode="bilinear", antialias=True)
    return (pixels - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


def embed(network: torch.nn.Module, images: np.ndarray, device: str = "cpu", batch: int = 64) -> np.ndarray:
    """Return the network's output for uint8 images (k, h, w, 3), one row each, float32."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(images), batch):
            found.append(network(prepared(images[start : start + batch]).to(device)).cpu().numpy())
            print(f"\r{min(start + batch, len(images))} of {len(images)} images", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.concatenate(found)


def write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Write the file whole or not at all."""
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, X=X, y=y)
    partial.replace(path)


def main(arguments: list[str] | None = None) -> None:
    """Download, embed and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help=f"where {FILE} is written, and the images are kept")
    parser.add_argument("--images", type=int, default=50_000, help="the first so many of the training images")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args(arguments)
    if not 2 <= chosen.images <= 50_000:
        parser.error(f"--images: {chosen.images} is not allowed; give 2 to 50000")
    try:
        from torchvision.datasets import CIFAR10
        from torchvision.models import ResNet18_Weights, resnet18
    except (ImportError, RuntimeError) as error:  # the second where it was built for another torch
        parser.error(
            f"torchvision cannot be imported ({error}); install the version that belongs to torch {torch.__version__}"
        )
    try:
        images = CIFAR10(chosen.folder, train=True, download=True)
        network = resnet18(weights=ResNet18_Weights.IMAGENET1K_V1)
    except (OSError, RuntimeError) as error:
        parser.error(f"CIFAR-10 or the weights of ResNet-18 cannot be fetched ({error})")
    network.fc = torch.nn.Identity()
    X = embed(network.eval().to(chosen.device), images.data[: chosen.images], chosen.device)
    write(chosen.folder / FILE, X, np.array(images.targets[: chosen.images]))
    print(f"{chosen.folder / FILE}: {X.shape[0]} × {X.shape[1]}")


if __name__ == "__main__":
    main()
