import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.foundation.errors import InputError
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import LINKS, LabelTargets, MultiIndex

SMALL = SpikedGaussian(n=12, d=8, nu=0.3)
AMOUNT = st.floats(0, 1e6)


@st.composite
def spiked(draw: st.DrawFn) -> dict[str, Any]:
    d = draw(st.integers(2, 30))
    vector = st.lists(st.floats(0.1, 1e3), min_size=d, max_size=d)
    return {
        "n": draw(st.integers(2, 10**6)),
        "d": d,
        "nu": draw(st.floats(0, 3)),
        "alpha": draw(st.floats(0, 3)),
        "direction": draw(st.sampled_from(["random", "eigenvector"]) | vector),
        "eigenvector": draw(st.integers(1, d)),
        "basis": draw(st.sampled_from(["canonical", "haar"])),
    }


@st.composite
def targets(draw: st.DrawFn) -> dict[str, Any]:
    links = draw(st.lists(st.sampled_from(sorted(LINKS)), min_size=1, max_size=4))
    kind = st.sampled_from(["random", "aligned", "orthogonal"])
    return {
        "links": links,
        "directions": draw(
            st.lists(kind, min_size=1, max_size=1) | st.lists(kind, min_size=len(links), max_size=len(links))
        ),
        "cosine": draw(st.floats(-1, 1)),
        "noise": draw(AMOUNT),
        "on": draw(st.sampled_from(["inputs", "bulk"])),
    }


PROBLEMS = st.fixed_dictionaries(
    {
        "inputs": spiked(),
        "targets": targets(),
        "network": st.fixed_dictionaries(
            {
                "m": st.integers(1, 10**5),
                "activation": st.sampled_from(["tanh", "relu", "torch:sin"]),
                "scaling": st.sampled_from(["ntk", "mf"]) | st.floats(1e-6, 1e6),
                "inner": st.sampled_from(["sphere", "gaussian", "aligned", "orthogonal", "data"]),
            }
        ),
        "loss": st.sampled_from(["mse", "huber", "torch:sub"]),
        "regularisers": st.fixed_dictionaries({"weight_decay": AMOUNT, "input_noise": AMOUNT, "jacobian": AMOUNT}),
        "dtype": st.sampled_from(["float64", "float32"]),
    }
)


@given(fields=PROBLEMS)
@settings(deadline=None, max_examples=40)
def test_toml_and_json_read_back_to_an_equal_problem(fields: dict[str, Any]) -> None:
    problem = Problem.from_mapping(fields)
    assert Problem.from_toml(problem.to_toml()) == problem
    assert Problem.from_mapping(json.loads(json.dumps(problem.to_dict(), allow_nan=False))) == problem
    for name, value in fields["inputs"].items():
        found = getattr(problem.inputs, name)
        assert found == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(),
        Problem(inputs="digits", targets=LabelTargets(positive=3)),
        Problem(inputs="folder/data.npy", targets="signs"),
        Problem(network=TwoLayer(m=10, inner="conv", kernel_size=3)),
        Problem(network=TwoLayer(m=10, inner="given", weights="w.npy")),
    ],
    ids=["default", "data set", "file", "convolution", "weights"],
)
def test_other_kinds_read_back_from_a_file(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(problem.to_toml(), encoding="utf-8")
    assert Problem.from_toml(path) == problem


def test_defaults_are_those_of_the_example() -> None:
    assert Problem.from_toml("") == Problem()
    example = Problem(
        inputs=SpikedGaussian(n=750, d=1000, nu=0.3, alpha=0.0),
        targets="triple-index",
        network=TwoLayer(m=1250, activation="sigmoid", scaling="ntk", inner="sphere"),
        loss="mse",
    )
    assert example == Problem()


def test_same_draw_after_a_round_trip() -> None:
    problem = Problem(inputs=SMALL, network=TwoLayer(m=5, inner="aligned"), regularisers={"input_noise": 0.3})
    first, second = problem.draw(7), Problem.from_toml(problem.to_toml()).draw(7)
    for name in ("X", "y", "outputs", "residue"):
        assert getattr(first, name).equal(getattr(second, name))


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"network": {"activation": torch.sin}}, "network.activation", "a function cannot be written down"),
        ({"loss": lambda f, y: (f - y) ** 2}, "loss", "a function cannot be written down"),
        ({"inputs": np.eye(3)}, "inputs.X", "an array cannot be written down"),
        ({"network": {"m": 2, "inner": "given", "weights": torch.ones(2, 3)}}, "network.weights", "an array cannot"),
    ],
)
def test_what_cannot_be_written_down_is_refused_with_the_reason(
    fields: dict[str, Any], field: str, reason: str
) -> None:
    problem = Problem(**fields)
    for write in (problem.to_toml, problem.to_dict):
        with pytest.raises(InputError, match=rf"^{field}: {reason}"):
            write()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", r"^TOML: is not TOML"),
        ("[inputs]\nnu = -1", r"^inputs\.nu: -1"),
        ("[inputs]\nnu = nan", r"^inputs\.nu: nan"),
    ],
)
def test_bad_toml(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Problem.from_toml(text)
    assert "\n" not in str(caught.value)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.toml: cannot be read \(No such file"):
        Problem.from_toml(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml: cannot be read \(it is not UTF-8"):
        Problem.from_toml(tmp_path / "binary.toml")


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, None])
def test_seed_that_is_no_whole_number(seed: object) -> None:
    with pytest.raises(InputError, match=r"^seed: .*give a whole number of at least 0"):
        Problem(inputs=SMALL).draw(seed)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "", "meta"])
def test_device_that_is_not_there(device: str) -> None:
    with pytest.raises(InputError, match=r"^device: .*give one of cpu"):
        Problem(inputs=SMALL).draw(0, device=device)


def test_seed_and_specification_determine_the_draw() -> None:
    problem = Problem(inputs=SMALL, network=TwoLayer(m=5))
    first, again, other = problem.draw(3), problem.draw(np.int64(3)), problem.draw(4)
    for name in ("X", "y", "outputs"):
        assert getattr(first, name).equal(getattr(again, name))
        assert not getattr(first, name).equal(getattr(other, name))


@pytest.mark.parametrize("inner", ["sphere", "data", "aligned"])
def test_float32_draw_is_the_cast_float64_draw(inner: str) -> None:
    fields = {"network": TwoLayer(m=5, inner=inner), "regularisers": Regularisers(input_noise=0.2)}
    double, single = (
        Problem(inputs=SpikedGaussian(n=12, d=8, basis="haar"), dtype=dtype, **fields).draw(1)
        for dtype in ("float64", "float32")
    )
    pairs = [(getattr(double.inputs, name), getattr(single.inputs, name)) for name in ("bulk", "scores", "direction")]
    pairs += [(double.y, single.y), (double.network.W, single.network.W), (double.network.a, single.network.a)]
    pairs += [(double.target_directions["target_2"], single.target_directions["target_2"])]
    pairs += [
        (getattr(double.inputs.covariance, n), getattr(single.inputs.covariance, n)) for n in ("basis", "eigenvalues")
    ]
    for wide, narrow in pairs:
        assert wide.dtype == torch.float64
        assert narrow.dtype == torch.float32
        assert narrow.equal(wide.float())
    # X is formed in float32 from the cast parts: a rounding of each.
    torch.testing.assert_close(single.X.double(), double.X, rtol=1e-6, atol=1e-6)


def test_labels_and_weights_come_from_the_clean_inputs() -> None:
    clean, noisy = (
        Problem(inputs=SMALL, network=TwoLayer(m=5), regularisers=Regularisers(input_noise=tau2)).draw(0)
        for tau2 in (0.0, 4.0)
    )
    assert clean.y.equal(noisy.y)
    assert clean.network.W.equal(noisy.network.W)
    difference = noisy.X - clean.X
    # 96 independent N(0, 4): the sample variance has a standard error of 4·√(2/96).
    assert abs(float(difference.square().mean()) - 4.0) < 4 * 4.0 * (2 / 96) ** 0.5
    assert not clean.residue.equal(noisy.residue)


def test_label_targets_need_data_and_multi_index_works_with_them() -> None:
    X = np.random.default_rng(0).standard_normal((6, 3))
    assert Problem(inputs=X, targets=MultiIndex(noise=0.0), network=TwoLayer(m=2)).draw(0).y.shape == (6,)
    with pytest.raises(InputError, match=r"^targets: the data have no labels"):
        Problem(inputs=X, targets="signs", network=TwoLayer(m=2)).draw(0)
