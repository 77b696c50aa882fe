from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import MultiIndex

NAN, INF = float("nan"), float("inf")

BAD = [
    ("inputs.nu", {"inputs": {"nu": -0.1}}, "-0.1 is not allowed; give a number of at least 0"),
    ("inputs.nu", {"inputs": {"nu": NAN}}, "nan is not allowed; give a finite number"),
    ("inputs.nu", {"inputs": {"nu": INF}}, "inf is not allowed; give a finite number"),
    ("inputs.alpha", {"inputs": {"alpha": -1}}, "-1 is not allowed; give a number of at least 0"),
    ("inputs.n", {"inputs": {"n": 1}}, "1 is not allowed; give a number of at least 2"),
    ("inputs.n", {"inputs": {"n": "many"}}, "'many' is not allowed; give a whole number"),
    ("inputs.n", {"inputs": {"n": 10.5}}, "10.5 is not allowed; give a whole number"),
    ("inputs.d", {"inputs": {"d": 0}}, "0 is not allowed; give a number of at least 2"),
    ("inputs.basis", {"inputs": {"basis": "har"}}, "(did you mean 'haar'?)"),
    ("inputs.direction", {"inputs": {"direction": "randm"}}, "(did you mean 'random'?)"),
    ("inputs.direction", {"inputs": {"d": 5, "direction": [1, 2]}}, "give a vector of length d = 5"),
    ("inputs.direction", {"inputs": {"direction": [0, 0]}}, "not all zero"),
    ("inputs.direction", {"inputs": {"direction": [NAN, 1]}}, "give one finite vector"),
    ("inputs.direction", {"inputs": {"direction": [[1, 2]]}}, "give one finite vector"),
    ("inputs.direction", {"inputs": {"direction": ["a", "b"]}}, "vector of numbers"),
    ("inputs.eigenvector", {"inputs": {"d": 5, "eigenvector": 7}}, "give a number of at most d = 5"),
    ("inputs.spikee", {"inputs": {"spikee": 1}}, "no such field; give one of alpha, basis, d, direction"),
    ("inputs.eigen-vector", {"inputs": {"eigen-vector": 1}}, "(did you mean 'eigenvector'?)"),
    ("inputs.kind", {"inputs": {"kind": "spiked"}}, "(did you mean 'spiked-gaussian'?)"),
    ("inputs", {"inputs": "digit"}, "(did you mean 'digits'?), or the path of a file"),
    ("inputs", {"inputs": 3}, "3 is not allowed; give a name or a table of fields"),
    ("inputs.X", {"inputs": np.array([[1.0, NAN], [2.0, 3.0]])}, "the first in row 0, column 1"),
    ("inputs.X", {"inputs": torch.ones(3)}, "the shape (3,) is not allowed"),
    ("inputs.X", {"inputs": np.array([["a", "b"], ["c", "d"]])}, "give real numbers"),
    ("inputs.X", {"inputs": {"kind": "given-array"}}, "is missing; give a value"),
    ("inputs.y", {"inputs": {"kind": "given-array", "X": [[1, 2], [3, 4]], "y": [1]}}, "1 labels for 2 rows"),
    ("inputs.y", {"inputs": {"kind": "given-array", "X": np.eye(2), "y": np.eye(2)}}, "labels of shape (2, 2)"),
    ("inputs.name", {"inputs": {"kind": "data-set"}}, "is missing; give a value"),
    ("inputs.name", {"inputs": {"kind": "data-set", "name": "digts"}}, "(did you mean 'digits'?)"),
    ("inputs.standardise", {"inputs": {"kind": "data-set", "name": "digits", "standardise": "zs"}}, "zscore"),
    ("targets", {"targets": "tripel-index"}, "(did you mean 'triple-index'?)"),
    ("targets", {"targets": "numbers"}, "synthetic inputs come without labels"),
    ("targets.links", {"targets": {"links": ["sigmod"]}}, "(did you mean 'sigmoid'?)"),
    ("targets.links", {"targets": {"links": []}}, "[] is not allowed"),
    ("targets.directions", {"targets": {"directions": ["random", "random"]}}, "2 for 3 links are not allowed"),
    ("targets.directions.0", {"targets": {"directions": ["aligend"]}}, "(did you mean 'aligned'?)"),
    ("targets.cosine", {"targets": {"cosine": 1.5}}, "1.5 is not allowed; give a number of at most 1"),
    ("targets.noise", {"targets": {"noise": -1}}, "-1 is not allowed; give a number of at least 0"),
    ("network", {"network": 3}, "3 is not allowed"),
    ("network.m", {"network": {"m": 0}}, "0 is not allowed; give a number of at least 1"),
    ("network.activation", {"network": {"activation": "sigmod"}}, "(did you mean 'sigmoid'?)"),
    ("network.activation", {"network": {"activation": "no_such_module:f"}}, "cannot be imported"),
    (
        "network.scaling",
        {"network": {"scaling": "nkt"}},
        "'nkt' is not allowed; give one of mf, ntk (did you mean 'ntk'?), or a number above 0",
    ),
    ("network.scaling", {"network": {"scaling": 0}}, "0 is not allowed; give one of ntk, mf, or a number above 0"),
    ("network.scaling", {"network": {"scaling": True}}, "True is not allowed"),
    ("network.inner", {"network": {"inner": "shpere"}}, "(did you mean 'sphere'?)"),
    ("network.inner", {"inputs": {"direction": "none"}, "network": {"inner": "aligned"}}, "'aligned' needs a spike"),
    ("network.kernel_size", {"network": {"inner": "conv"}}, "give it together with inner = 'conv'"),
    ("network.kernel_size", {"network": {"kernel_size": 3}}, "give it together with inner = 'conv'"),
    ("network.weights", {"network": {"inner": "given"}}, "give them together with inner = 'given'"),
    ("loss", {"loss": "mze"}, "(did you mean 'mse'?)"),
    ("regularisers.weight_decay", {"regularisers": {"weight_decay": -1}}, "give a number of at least 0"),
    ("regularisers.input_noise", {"regularisers": {"input_noise": -0.5}}, "give a number of at least 0"),
    ("regularisers.jacobian", {"regularisers": {"jacobian": NAN}}, "give a finite number"),
    ("regularisers.weight-decay", {"regularisers": {"weight-decay": 1}}, "(did you mean 'weight_decay'?)"),
    ("dtype", {"dtype": "float16"}, "'float16' is not allowed; give one of float32, float64"),
    ("inptus", {"inptus": {}}, "no such field; give one of dtype, inputs, loss"),
]


def assert_one_line(build: Callable[[], Any], field: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert message.startswith(f"{field}: ")
    assert allowed in message
    assert "\n" not in message
    assert "value error" not in message.lower()  # pydantic's own words


@pytest.mark.parametrize(("field", "fields", "allowed"), BAD)
def test_bad_value_is_one_line_with_field_value_and_what_is_allowed(
    field: str, fields: dict[str, Any], allowed: str
) -> None:
    assert_one_line(lambda: Problem.from_mapping(fields), field, allowed)
    assert_one_line(lambda: Problem(**fields), field, allowed)


@pytest.mark.parametrize(
    ("build", "field", "allowed"),
    [
        (lambda: SpikedGaussian(nu=-1), "nu", "give a number of at least 0"),
        (lambda: SpikedGaussian(d=3, direction=[1, 2]), "direction", "length d = 3"),
        (lambda: MultiIndex(noise=NAN), "noise", "give a finite number"),
        (lambda: TwoLayer(inner="given"), "weights", "give them together"),
        (lambda: Regularisers(jacobian=-1), "jacobian", "give a number of at least 0"),
        (lambda: Problem.from_mapping([1]), "problem", "[1] is not allowed"),
    ],
)
def test_parts_built_alone_name_their_own_fields(build: Callable[[], Any], field: str, allowed: str) -> None:
    assert_one_line(build, field, allowed)


def test_first_of_several_faults_is_reported_and_a_bad_value_before_an_unknown_name() -> None:
    assert_one_line(lambda: Problem.from_mapping({"inputs": {"spkie": 1, "nu": -1}, "loss": "mse"}), "inputs.nu", "-1")


def test_specifications_are_frozen_and_equal_by_value() -> None:
    spec = SpikedGaussian(n=5)
    assert spec == SpikedGaussian(n=5)
    assert spec != SpikedGaussian(n=6)
    with pytest.raises(ValueError, match="frozen"):
        spec.n = 7
