"""`gradrank measure`: from options to a problem, from a measurement to the terminal and a folder."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names
from gradrank.measurement.ensemble import Ensemble
from gradrank.measurement.measure import measure, measure_many
from gradrank.measurement.record import Measurement
from gradrank.measurement.terminal import console, show
from gradrank.problem.data_sets import DATA_SETS
from gradrank.problem.problem import Problem, read_toml
from gradrank.problem.targets import TARGETS
from gradrank.report.folder import check_writable


@dataclass(frozen=True)
class Choices:
    """The options that describe a problem; None means not given."""

    spec: Path | None
    data: str | None
    targets: str | None
    fields: Mapping[str, Mapping[str, Any]]  # section -> field -> value
    top: Mapping[str, Any]  # fields of the problem itself


def chosen_problem(choices: Choices) -> Problem:
    """Build the problem: the file's fields first, then the options over them.

    Real data with labels are learned one class against the rest unless a target is named; everything else has the
    triple-index target.

    Raises
    ------
    InputError
        If a field or a value is not allowed.
    """
    tree = _tree(choices.spec) if choices.spec is not None else {}
    if choices.data is not None:
        tree["inputs"] = _real(choices.data)
        if choices.targets is None and "targets" not in tree and _has_labels(choices):
            tree["targets"] = {"kind": "given-labels"}
    if choices.targets is not None:
        if choices.targets not in TARGETS:
            raise InputError(f"targets: '{choices.targets}' is not allowed; {allowed_names(choices.targets, TARGETS)}")
        named = TARGETS[choices.targets].specification
        tree["targets"] = {name: getattr(named, name) for name in type(named).model_fields}
    for section, fields in choices.fields.items():
        given = {name: value for name, value in fields.items() if value is not None}
        if given:
            tree[section] = {**_section(tree, section), **given}
    tree.update({name: value for name, value in choices.top.items() if value is not None})
    return Problem.from_mapping(tree)


def _tree(path: Path) -> dict[str, Any]:
    """Read a problem file, checked as a whole first, so that an error names the file's own field."""
    Problem.from_toml(path)
    return read_toml(path)


def _section(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a section of the file as a table; a target named by a word is written out first."""
    section = tree.get(name, {})
    return section if isinstance(section, dict) else Problem.from_mapping({name: section}).to_dict()[name]


def _real(data: str) -> dict[str, Any]:
    if data in DATA_SETS:
        return {"kind": "data-set", "name": data}
    if Path(data).suffix == "" and not Path(data).exists():
        raise InputError(f"data: '{data}' is not allowed; {allowed_names(data, DATA_SETS)}, or the path of a file")
    return {"kind": "data-file", "path": data}


def _has_labels(choices: Choices) -> bool:
    if choices.data in DATA_SETS:
        return True
    return choices.fields["inputs"]["labels"] is not None or choices.fields["targets"]["positive"] is not None


def measure_command(
    choices: Choices,
    options: dict[str, Any],
    *,
    seed: int,
    seeds: int,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Measure and report; the folder is checked before anything is computed and written at the very end."""
    problem = chosen_problem(choices)
    if output is not None:
        check_writable(output, overwrite=overwrite)
    result: Measurement | Ensemble
    if seeds == 1:
        result = measure(problem, seed, **options)
    else:
        columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(
            *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
        ) as progress:
            task = progress.add_task("draws", total=seeds)
            result = measure_many(
                problem,
                seeds,
                first_seed=seed,
                on_progress=lambda done: progress.update(task, completed=done),
                **options,
            )
    # Printed before it is saved: a disk that refuses does not take the numbers with it.
    to = console()
    if as_json:
        sys.stdout.write(result.to_json() + "\n")
        sys.stdout.flush()
    else:
        show(result, to)
    if output is not None:
        page = result.save(output, overwrite=overwrite)
        if not as_json:
            to.print(f"\npage with figures: {page.resolve()}", soft_wrap=True)
