"""`Experiment`: a function of parameters that returns named arrays, its grid and its seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.references import is_reference

Value = str | int | float
NAME = re.compile(r"[^\W\d_][\w.-]*")
RESERVED = ("seed", "state", "error", "host", "seconds")  # names of the store's own


@dataclass(frozen=True)
class Cell:
    """One point of the grid and one seed."""

    index: tuple[int, ...]  # along the axes of the grid, then of the seeds
    parameters: dict[str, Value]
    seed: int

    def __str__(self) -> str:
        named = [*self.parameters.items(), ("seed", self.seed)]
        return ", ".join(f"{name} = {value}" for name, value in named)


@dataclass(frozen=True)
class Experiment:
    """What is computed: ``function(**fixed, **parameters, seed=seed)`` → {name: array} for every cell.

    A cell's result is a function of its parameters, its seed and the number of threads, which therefore belong to the
    specification: it does not depend on the number of workers or on the order of the cells.

    Parameters
    ----------
    name
        A word for it, kept in the store.
    function
        ``module:name``, importable by every worker. It is called with keywords and returns a mapping with a number or an
        array for each of ``outputs``.
    grid
        Axis → its values, in order: numbers or names. The cells are their product.
    seeds
        The seeds, distinct and of at least 0.
    outputs
        Name → the names of the array's dimensions, which are keys of ``coordinates``; () for a number.
    coordinates
        Inner dimension → its values.
    fixed
        Further arguments of the function, the same in every cell; plain data.
    threads
        Threads per cell, of PyTorch, BLAS and OpenMP.

    Raises
    ------
    InputError
        If a name is used twice or reserved, an axis is empty or holds a value twice, or a value cannot be written down.
    """

    name: str
    function: str
    grid: Mapping[str, Sequence[Value]]
    seeds: Sequence[int]
    outputs: Mapping[str, Sequence[str]]
    coordinates: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1

    def __post_init__(self) -> None:
        if not is_reference(self.function):
            raise unusable("experiment.function", self.function, "give module:name")
        if self.threads < 1:
            raise unusable("experiment.threads", self.threads, "give a whole number of at least 1")
        names = [*self.grid, *self.coordinates, *self.outputs, *RESERVED]
        for name in names:
            if names.count(name) > 1:
                raise unusable("experiment", name, "give every axis, dimension and output a name of its own")
            if not NAME.fullmatch(name) or name == "zarr.json":
                raise unusable(
                    "experiment", name, "give names of letters, digits, '_', '-' and '.', that start with a letter"
                )
        for axis in self.grid:
            if axis in self.fixed:
                raise unusable(
                    "experiment.grid", axis, "it is a fixed argument of the function as well; give another name"
                )
        for axis, values in {**self.grid, **self.coordinates, "seeds": self.seeds}.items():
            _check_axis(axis, list(values))
        if any(isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63 for seed in self.seeds):
            raise unusable("experiment.seeds", list(self.seeds), "give whole numbers of at least 0, below 2^63")
        for output, dimensions in self.outputs.items():
            for dimension in dimensions:
                if dimension not in self.coordinates:
                    raise unusable(f"experiment.outputs.{output}", dimension, "give the values of this dimension too")
        try:
            json.dumps(self.specification(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"experiment: cannot be written down ({error}); give numbers, names and lists") from None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the outer dimensions: those of the grid, then ``seed``."""
        return (*self.grid, "seed")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each of `axes`."""
        return (*(len(values) for values in self.grid.values()), len(self.seeds))

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @cached_property
    def dimensions(self) -> dict[str, Sequence[Value]]:
        """Every dimension, outer and inner, with its values."""
        return {**self.grid, "seed": self.seeds, **self.coordinates}

    def inner_shape(self, output: str) -> tuple[int, ...]:
        """Return the shape of one cell's array."""
        return tuple(len(self.coordinates[name]) for name in self.outputs[output])

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, all of the grid for one seed before the next: what is there early covers the whole grid."""
        for number, seed in enumerate(self.seeds):
            for position in itertools.product(*(range(len(values)) for values in self.grid.values())):
                chosen = {axis: values[i] for (axis, values), i in zip(self.grid.items(), position, strict=True)}
                yield Cell((*position, number), chosen, seed)

    def specification(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "name": self.name,
            "function": self.function,
            "grid": {axis: list(values) for axis, values in self.grid.items()},
            "seeds": list(self.seeds),
            "outputs": {output: list(dimensions) for output, dimensions in self.outputs.items()},
            "coordinates": {name: list(values) for name, values in self.coordinates.items()},
            "fixed": dict(self.fixed),
            "threads": self.threads,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the specification."""
        return digest(self.specification())


def digest(specification: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain data, whatever the order of its keys: of the grid the axes' order counts."""
    ordered = {**specification, "axes": list(specification.get("grid", {}))}
    return hashlib.sha256(json.dumps(ordered, sort_keys=True).encode()).hexdigest()


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any], path: str = "") -> list[str]:
    """Return one phrase for every entry in which two specifications differ."""
    phrases = []
    for key in dict.fromkeys([*found, *wanted]):
        place = f"{path}.{key}".lstrip(".")
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            phrases += differences(old, new, place)
            if not phrases and list(old) != list(new):
                phrases.append(f"{place} is in the order {', '.join(old)}, not {', '.join(new)}")
        elif old != new:
            phrases.append(f"{place} is {_shown(old)}, not {_shown(new)}")
    return phrases


def _shown(value: Any) -> str:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"


def _check_axis(axis: str, values: list[Any]) -> None:
    if not values:
        raise unusable(f"experiment.{axis}", values, "give at least one value")
    seen = set()
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise unusable(f"experiment.{axis}", value, "give numbers or names")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise unusable(f"experiment.{axis}", value, "give whole numbers of 64 bits")
        if isinstance(value, float) and not math.isfinite(value):
            raise unusable(f"experiment.{axis}", value, "give finite numbers")
        if value in seen:
            raise unusable(f"experiment.{axis}", value, "give every value once")
        seen.add(value)
