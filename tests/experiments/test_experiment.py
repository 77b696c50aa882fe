"""What an experiment may be, its cells, and how two specifications differ."""

import json
from typing import Any

import pytest

from gradrank.experiments.experiment import Experiment, differences
from gradrank.foundation.errors import InputError


def experiment(**fields: Any) -> Experiment:
    usual: dict[str, Any] = {
        "name": "test",
        "function": "functions:line",
        "grid": {"a": [0.5, 1.5], "b": ["x", "yy", "zzz"]},
        "seeds": [3, 5],
        "outputs": {"y": ["k"], "length": []},
        "coordinates": {"k": [1, 2, 3]},
    }
    return Experiment(**{**usual, **fields})


def test_cells_cover_the_grid_once_for_one_seed_before_the_next() -> None:
    one = experiment()
    cells = list(one.cells())
    assert one.shape == (2, 3, 2)
    assert one.size == len(cells) == 12
    assert [cell.seed for cell in cells] == [3] * 6 + [5] * 6
    assert len({cell.index for cell in cells}) == 12
    for cell in cells:
        i, j, k = cell.index
        assert cell.parameters == {"a": [0.5, 1.5][i], "b": ["x", "yy", "zzz"][j]}
        assert cell.seed == [3, 5][k]
    assert str(cells[0]) == "a = 0.5, b = x, seed = 3"


def test_the_digest_is_that_of_what_is_computed() -> None:
    one = experiment()
    assert one.digest == experiment().digest
    for other in (
        experiment(seeds=[3, 4]),
        experiment(threads=2),
        experiment(fixed={"c": 1}),
        experiment(grid={"b": ["x", "yy", "zzz"], "a": [0.5, 1.5]}),
    ):
        assert other.digest != one.digest
    json.dumps(one.specification(), allow_nan=False)


def test_differences_name_the_entry_and_both_values() -> None:
    one, other = experiment(), experiment(seeds=[3], grid={"a": [0.5], "b": ["x", "yy", "zzz"]}, fixed={"c": 1})
    found = differences(one.specification(), other.specification())
    assert found == ["grid.a is [0.5, 1.5], not [0.5]", "seeds is [3, 5], not [3]", "fixed.c is missing, not 1"]
    turned = experiment(grid={"b": ["x", "yy", "zzz"], "a": [0.5, 1.5]})
    assert differences(one.specification(), turned.specification()) == ["grid is in the order a, b, not b, a"]
    assert differences(one.specification(), experiment().specification()) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"function": "line"}, "experiment.function: 'line' is not allowed; give module:name"),
        ({"threads": 0}, "experiment.threads: 0 is not allowed"),
        ({"seeds": []}, "experiment.seeds: [] is not allowed; give at least one value"),
        ({"seeds": [1, 1]}, "experiment.seeds: 1 is not allowed; give every value once"),
        ({"seeds": [-1]}, "experiment.seeds: [-1] is not allowed"),
        ({"seeds": [True]}, "experiment.seeds: True is not allowed"),
        ({"seeds": ["a"]}, "experiment.seeds: ['a'] is not allowed"),
        ({"grid": {"a": [], "b": ["x"]}}, "experiment.a: [] is not allowed"),
        ({"grid": {"a": [1, 1], "b": ["x"]}}, "experiment.a: 1 is not allowed; give every value once"),
        ({"grid": {"a": [float("nan")], "b": ["x"]}}, "experiment.a: nan is not allowed; give finite numbers"),
        ({"grid": {"a": [None], "b": ["x"]}}, "experiment.a: None is not allowed"),
        ({"grid": {"seed": [1], "b": ["x"]}}, "experiment: 'seed' is not allowed"),
        ({"grid": {"y": [1], "b": ["x"]}}, "experiment: 'y' is not allowed"),
        ({"coordinates": {}}, "experiment.outputs.y: 'k' is not allowed; give the values of this dimension too"),
        ({"fixed": {"c": object()}}, "experiment: cannot be written down"),
        ({"fixed": {"c": float("inf")}}, "experiment: cannot be written down"),
    ],
)
def test_bad_experiments_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        experiment(**fields)
    assert str(caught.value).startswith(message)
