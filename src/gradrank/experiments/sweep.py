"""`Sweep`: a grid over any fields of a problem, as a TOML file describes it, and the experiment that it is."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from gradrank.experiments.experiment import Experiment, Value
from gradrank.experiments.recorders import RECORDERS, dimensions, record
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import look_up
from gradrank.problem.problem import Problem, read_toml
from gradrank.problem.real_inputs import FileInputs
from gradrank.problem.specification import Specification
from gradrank.problem.spiked_gaussian import SpikedGaussian

Fields = dict[str, list[Value]]  # dotted field of the problem -> its values


def _seeds(value: Any) -> Any:
    """Accept a number of seeds, counted from 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError("give a number of seeds of at least 1, or a list of seeds")
        return list(range(value))
    if isinstance(value, list) and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in value):
        return value
    raise ValueError("give a number of seeds, or a list of whole numbers")


class Sweep(Specification):
    """A problem, the fields that vary, the seeds, and what to record."""

    name: str = "sweep"
    """A word for it."""
    problem: dict[str, Any] = Field(default_factory=dict)
    """Fields of the problem that stay as they are; those left out have their defaults."""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Dotted field → list of values; or a name → table of fields that change together, with lists of one length."""
    seeds: Annotated[list[int], BeforeValidator(_seeds)] = Field(default_factory=lambda: [0, 1, 2], min_length=1)
    """The number of seeds, or a list of them."""
    record: list[str] = Field(default_factory=lambda: ["norms", "alignments"], min_length=1)
    """What to keep of each measurement."""
    k: int = Field(2, ge=1)
    """Leading singular triplets."""
    threads: int = Field(1, ge=1)
    """Threads per cell."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        for name in self.record:
            look_up("record", name, RECORDERS)
        if len(set(self.record)) < len(self.record):
            raise ValueError("record: a name is given twice; give each once")
        _axes(self.grid)
        return self

    @classmethod
    def from_toml(cls, source: str | Path) -> Self:
        """Read a sweep from TOML text or from a file.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or a field is wrong.
        """
        return cls.from_mapping(read_toml(source))

    def experiment(self) -> Experiment:
        """Return the experiment, after every problem of the grid has been checked.

        Raises
        ------
        InputError
            If a problem of the grid is not allowed; the message names its field.
        """
        axes = _axes(self.grid)
        problems = [_problem(self.problem, choice) for choice in _choices(axes)]
        self._check_k(problems)
        fixed = {
            "problem": _plain(self.problem),
            "axes": axes,
            "recorded": list(self.record),
            "shape": dimensions(problems, self.k),
        }
        if files := _digests(problems):
            fixed["files"] = files
        return Experiment(
            name=self.name,
            function="gradrank.experiments.sweep:cell",
            grid={axis: _coordinate(fields) for axis, fields in axes.items()},
            seeds=self.seeds,
            outputs={output: dims for name in self.record for output, dims in RECORDERS[name].outputs.items()},
            coordinates=_used(dimensions(problems, self.k), self.record),
            fixed={"sweep": fixed},
            threads=self.threads,
        )

    def _check_k(self, problems: Sequence[Problem]) -> None:
        for one in problems:
            if isinstance(one.inputs, SpikedGaussian):
                most = min(one.inputs.n, one.inputs.d, one.network.m)
                if self.k > most:
                    raise unusable("k", self.k, f"give at most {most}, the smallest of n, d and m on the grid")


def cell(sweep: Mapping[str, Any], seed: int, **chosen: Value) -> dict[str, np.ndarray]:
    """Measure one draw of the problem with the chosen values in its fields."""
    choice = {}
    for axis, value in chosen.items():
        fields = sweep["axes"][axis]
        position = _coordinate(fields).index(value)
        choice.update({field: values[position] for field, values in fields.items()})
    return record(_problem(sweep["problem"], choice), seed, sweep["recorded"], sweep["shape"])


def _coordinate(fields: Fields) -> list[Value]:
    """Return the values that name the points of an axis: of its first field without a repetition, or 0, 1, … if there is none.

    Only numbers and words are names; lists and tables are counted.
    """
    for values in fields.values():
        named = all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in values)
        if named and _distinct(values):
            return values
    return list(range(len(next(iter(fields.values())))))


def _digests(problems: Sequence[Problem]) -> dict[str, str]:
    """Return path → SHA-256 of the files that the problems read: with others it is another sweep."""
    paths: set[Path] = set()
    for one in problems:
        if isinstance(one.inputs, FileInputs):
            paths |= {one.inputs.path, *(Path(name) for name in (one.inputs.labels,) if name and Path(name).is_file())}
        if isinstance(one.network.weights, (str, Path)):
            paths.add(Path(one.network.weights))
    found = {}
    for path in sorted(paths):
        try:
            with path.open("rb") as file:
                found[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"problem: '{path}' cannot be read ({error.strerror or error})") from None
    return found


def _axes(grid: Mapping[str, Any]) -> dict[str, Fields]:
    """Return axis → fields → values. An axis of one field has the field's last name, where no other axis has it too."""
    axes: dict[str, Fields] = {}
    last = [field.rsplit(".", 1)[-1] for field in grid]
    for field, values in grid.items():
        if isinstance(values, Mapping):
            linked = {str(name): _values(f"grid.{field}.{name}", part) for name, part in values.items()}
            lengths = [len(part) for part in linked.values()]
            if len(set(lengths)) != 1:
                raise unusable(f"grid.{field}", lengths, "give fields that change together lists of one length")
            axes[field] = linked
        else:
            short = field.rsplit(".", 1)[-1]
            chosen = _values(f"grid.{field}", values)
            if not _distinct(chosen):
                raise unusable(f"grid.{field}", values, "give every value once")
            axes[short if last.count(short) == 1 else field] = {field: chosen}
    _check_apart([name for fields in axes.values() for name in fields])
    return axes


def _distinct(values: Sequence[Any]) -> bool:
    """Return whether no value, a list or a table perhaps, is there twice."""
    return not any(one == other for one, other in itertools.combinations(values, 2))


def _check_apart(fields: Sequence[str]) -> None:
    """Refuse a field that is varied twice, by itself or with the table that it is in: the later one would win."""
    for one, other in itertools.permutations(fields, 2):
        if one == other or one.startswith(f"{other}."):
            raise InputError(f"grid: '{one}' is not allowed; '{other}' is varied already, give each field once")


def _values(where: str, values: Any) -> list[Value]:
    if not isinstance(values, list) or not values:
        raise InputError(f"{where}: {values!r} is not allowed; give a list of values")
    return values


def _choices(axes: Mapping[str, Fields]) -> list[dict[str, Value]]:
    """Return the fields of every point of the grid."""
    rows = [
        [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
        for fields in axes.values()
    ]
    return [{field: value for part in choice for field, value in part.items()} for choice in itertools.product(*rows)]


def _problem(fixed: Mapping[str, Any], choice: Mapping[str, Value]) -> Problem:
    tree = _plain(fixed)
    for field, value in choice.items():
        *sections, name = field.split(".")
        table = tree
        for section in sections:
            inner = table.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InputError(f"grid: '{field}' is not allowed; '{section}' is given as a word, write it as a table")
            table = inner
        table[name] = value
    return Problem.from_mapping(tree)


def _plain(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Copy nested tables."""
    return {key: _plain(value) if isinstance(value, Mapping) else value for key, value in tree.items()}


def _used(every: Mapping[str, Sequence[Value]], recorded: Sequence[str]) -> dict[str, Sequence[Value]]:
    names = {dimension for name in recorded for dims in RECORDERS[name].outputs.values() for dimension in dims}
    return {dimension: values for dimension, values in every.items() if dimension in names}
