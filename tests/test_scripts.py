"""The script for CIFAR-10's embeddings, with a small network in the place of ResNet-18, and figure 8 on what it wrote."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from gradrank.experiments.cluster import Where
from gradrank.foundation.errors import InputError
from gradrank.reproduce.low_rank.fig8 import fig8
from gradrank.reproduce.reproduction import reproduce

SCRIPT = Path(__file__).parents[1] / "scripts" / "cifar10_embeddings.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("cifar10_embeddings", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class MeanColour(torch.nn.Module):
    """The mean of each channel over space; the layer ``fc`` after it is taken off by the script."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 1000)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        assert pixels.shape[1:] == (3, 224, 224)
        return self.fc(pixels.mean(dim=(2, 3)))


def torchvision(images: np.ndarray, labels: list[int], error: Exception | None = None) -> dict[str, ModuleType]:
    def cifar10(root: Path, train: bool, download: bool) -> SimpleNamespace:
        if error is not None:
            raise error
        Path(root).mkdir(exist_ok=True)
        assert train
        assert download
        return SimpleNamespace(data=images, targets=labels)

    datasets, models = ModuleType("torchvision.datasets"), ModuleType("torchvision.models")
    datasets.CIFAR10, models.resnet18 = cifar10, lambda **_: MeanColour()
    models.ResNet18_Weights = SimpleNamespace(IMAGENET1K_V1=None)
    return {"torchvision": ModuleType("torchvision"), "torchvision.datasets": datasets, "torchvision.models": models}


def test_images_of_one_colour_give_that_colour_normalised(script: ModuleType) -> None:
    network = MeanColour()
    network.fc = torch.nn.Identity()
    colours = np.array([[0, 128, 255], [10, 20, 30], [255, 255, 255]], dtype=np.uint8)
    images = np.broadcast_to(colours[:, None, None], (3, 32, 32, 3)).copy()
    expected = (colours / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(script.embed(network, images, batch=2), expected, atol=2e-6)


def test_the_script_says_what_it_lacks(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    for arguments, message in (
        ([str(tmp_path), "--images", "1"], "--images: 1 is not allowed"),
        ([str(tmp_path)], "torchvision cannot be imported"),
    ):
        with pytest.raises(SystemExit, match="2"):
            script.main(arguments)
        assert message in capsys.readouterr().err
    images = np.zeros((2, 32, 32, 3), np.uint8)
    for name, module in torchvision(images, [0, 1], OSError("no route to host")).items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(SystemExit, match="2"):
        script.main([str(tmp_path)])
    assert "cannot be fetched (no route to host)" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_figure_8_on_a_users_embeddings(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (500, 32, 32, 3), dtype=np.uint8)
    for name, module in torchvision(images, [int(y) for y in rng.integers(0, 10, 500)]).items():
        monkeypatch.setitem(sys.modules, name, module)
    script.main([str(tmp_path / "data"), "--device", "cpu"])
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["cifar10-resnet18.npz"]
    one = fig8(embeddings=str(tmp_path / "data"))
    assert "ResNet-18 embeddings of CIFAR-10" in one.setting
    found = reproduce(one, tmp_path / "fig8", quick=True, where=Where(workers=1))
    assert found.missing == 0
    texts = [claim.text for claim in found.claims]
    assert "cifar10 under a Jacobian penalty: |⟨u₁, q⟩|, sigmoid" in texts
    assert all(np.isfinite(claim.measured) for claim in found.claims)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mnist": Path("nowhere")}, "mnist: data set 'mnist': 'nowhere' is not a folder"),
        ({"embeddings": "nowhere"}, "embeddings: data set 'cifar10-embeddings': 'nowhere' is not a folder"),
    ],
)
def test_data_that_are_not_there(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fig8(**arguments)
