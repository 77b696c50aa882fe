import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.inputs import Inputs
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import LINKS, TARGETS, LabelTargets, MultiIndex

INPUTS = SpikedGaussian(n=40, d=9, nu=0.2)


def test_triple_index_formula_from_the_drawn_directions() -> None:
    problem = Problem(inputs=INPUTS, targets=MultiIndex(noise=0.0), network=TwoLayer(m=3))
    draw = problem.draw(seed=5)
    X, b = draw.X.numpy(), [draw.target_directions[f"target_{k}"].numpy() for k in (1, 2, 3)]
    y = np.tanh(X @ b[0]) + 1 / (1 + np.exp(-X @ b[1])) + np.maximum(X @ b[2], 0)
    np.testing.assert_allclose(draw.y.numpy(), y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", sorted(LINKS))
def test_each_link_against_its_formula(name: str) -> None:
    formulas = {
        "linear": lambda t: t,
        "tanh": math.tanh,
        "sigmoid": lambda t: 1 / (1 + math.exp(-t)),
        "relu": lambda t: max(t, 0.0),
        "erf": math.erf,
        "sin": math.sin,
        "absolute": abs,
        "square": lambda t: t**2,
        "hermite2": lambda t: t**2 - 1,
        "hermite3": lambda t: t**3 - 3 * t,
    }
    inputs = INPUTS.draw(0)
    targets = MultiIndex(links=name, noise=0.0).draw(inputs, seed=0)
    t = inputs.X @ targets.directions["target_1"]
    assert targets.y.tolist() == pytest.approx([formulas[name](float(x)) for x in t], rel=1e-12, abs=1e-13)


def test_link_named_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "links_for_a_test.py").write_text("def cube(t):\n    return t**3\n")
    monkeypatch.syspath_prepend(tmp_path)
    inputs = INPUTS.draw(0)
    targets = MultiIndex(links=("links_for_a_test:cube",), noise=0.0).draw(inputs, seed=0)
    torch.testing.assert_close(targets.y, (inputs.X @ targets.directions["target_1"]) ** 3)


@pytest.mark.parametrize("noise", [0.1, 2.0])
def test_label_noise_has_its_standard_deviation(noise: float) -> None:
    inputs = SpikedGaussian(n=20_000, d=2).draw(0)
    clean, noisy = (MultiIndex(links="sin", noise=sd).draw(inputs, seed=1) for sd in (0.0, noise))
    epsilon = noisy.y - clean.y
    # The standard error of a standard deviation is σ/√(2n).
    assert abs(float(epsilon.std()) - noise) < 4 * noise / math.sqrt(40_000)
    assert abs(float(epsilon.mean())) < 4 * noise / math.sqrt(20_000)


@pytest.mark.parametrize("cosine", [1.0, 0.6, 0.0, -0.8])
def test_directions_have_the_stated_cosine_with_the_spike(cosine: float) -> None:
    inputs = INPUTS.draw(0)
    spec = MultiIndex(directions=("aligned", "orthogonal", "random"), cosine=cosine)
    b = spec.draw(inputs, seed=3).directions
    q = inputs.direction
    assert all(float(v.norm()) == pytest.approx(1.0, rel=1e-13) for v in b.values())
    assert float(b["target_1"] @ q) == pytest.approx(cosine, abs=1e-14)
    assert float(b["target_2"] @ q) == pytest.approx(0.0, abs=1e-14)
    assert abs(float(b["target_3"] @ q)) > 1e-3


def test_target_on_the_bulk_does_not_see_the_spike() -> None:
    inputs = SpikedGaussian(n=40, d=9, nu=2.0).draw(0)
    spec = MultiIndex(links="linear", directions="aligned", noise=0.0, on="bulk")
    torch.testing.assert_close(spec.draw(inputs, 0).y, inputs.bulk @ inputs.direction)


def labelled(labels: list[object]) -> Inputs:
    n = len(labels)
    return Inputs(given=torch.zeros(n, 2, dtype=torch.float64), labels=np.array(labels))


@pytest.mark.parametrize(
    ("fields", "labels", "expected"),
    [
        ({"coding": "numbers"}, [1.5, -2, 0], [1.5, -2, 0]),
        ({"coding": "numbers"}, [True, False], [1, 0]),
        ({"coding": "signs"}, [3, 8, 3], [-1, 1, -1]),
        ({"coding": "signs"}, ["cat", "dog"], [-1, 1]),
        ({}, [2, 0, 1, 0], [-1, 1, -1, 1]),
        ({"positive": 1}, [2, 0, 1, 0], [-1, -1, 1, -1]),
        ({"positive": 1}, [2.0, 1.0], [-1, 1]),
        ({"positive": "1"}, [2, 0, 1, 0], [-1, -1, 1, -1]),
        ({"positive": "dog"}, ["cat", "dog", "cow"], [-1, 1, -1]),
    ],
)
def test_codings_of_labels(fields: dict[str, object], labels: list[object], expected: list[float]) -> None:
    targets = LabelTargets(**fields).draw(labelled(labels), seed=0)
    assert targets.y.tolist() == expected
    assert targets.y.dtype == torch.float64
    assert targets.directions == {}


@pytest.mark.parametrize(
    ("fields", "labels", "message"),
    [
        ({"coding": "numbers"}, ["a", "b"], r"^targets\.coding: 'numbers' .* text labels"),
        ({"coding": "signs"}, [1, 2, 3], r"^targets\.coding: 'signs' needs two classes, the labels have 3"),
        ({}, [1, 1], r"^targets: all labels are "),
        ({"positive": 7}, [0, 1], r"^targets\.positive: '7' is not allowed; give one of 0, 1$"),
        ({"positive": "x"}, list(range(30)), r"18, 19, …$"),
    ],
)
def test_labels_that_do_not_fit_their_coding(fields: dict[str, object], labels: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelTargets(**fields).draw(labelled(labels), seed=0)


def test_label_noise_is_added_to_the_codes() -> None:
    y = LabelTargets(noise=0.1).draw(labelled([0, 1] * 5000), seed=0).y
    residual = y - torch.tensor([1.0, -1.0] * 5000, dtype=torch.float64)
    assert abs(float(residual.std()) - 0.1) < 4 * 0.1 / math.sqrt(20_000)


def test_what_real_data_do_not_have() -> None:
    plain = Inputs(given=torch.zeros(3, 2, dtype=torch.float64))
    with pytest.raises(InputError, match=r"^targets: the data have no labels"):
        LabelTargets().draw(plain, 0)
    with pytest.raises(InputError, match=r"^targets\.on: 'bulk'"):
        MultiIndex(on="bulk").draw(plain, 0)
    with pytest.raises(InputError, match=r"^targets\.directions: 'orthogonal' .*no known spike"):
        MultiIndex(directions="orthogonal").draw(plain, 0)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_named_target_can_be_drawn(name: str) -> None:
    inputs = INPUTS.draw(0)
    inputs = Inputs(inputs.bulk, inputs.scores, inputs.direction, inputs.strength, labels=np.arange(40) % 2)
    y = TARGETS[name].specification.draw(inputs, seed=0).y
    assert y.shape == (40,)
    assert float(y.std()) > 0
