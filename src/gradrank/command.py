"""What the commands do: from options to a problem, from a result to the terminal."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names
from gradrank.measurement.ensemble import Ensemble
from gradrank.measurement.measure import measure, measure_many
from gradrank.measurement.record import Measurement
from gradrank.measurement.storage import check_writable
from gradrank.measurement.terminal import console, show
from gradrank.problem.activations import ACTIVATIONS
from gradrank.problem.data_sets import DATA_SETS
from gradrank.problem.losses import LOSSES
from gradrank.problem.network import INNER
from gradrank.problem.problem import Problem, read_toml
from gradrank.problem.specification import Specification
from gradrank.problem.standardise import STANDARDISATIONS
from gradrank.problem.targets import LINKS, TARGETS
from gradrank.report.tables import Table

OTHER_SECTIONS = """

# Instead of synthetic inputs, a file or a data set (gradrank list):
# [inputs]
# kind = "data-file"
# path = "mine.csv"
# labels = "species"          # a column, an array of the file, or another file
# standardise = "zscore"
#
# [inputs]
# kind = "data-set"
# name = "mnist-5k"
# n = 750                     # rows chosen at random
#
# Instead of a multi-index target, the labels of the data:
# [targets]
# kind = "given-labels"
# coding = "one-vs-rest"      # or signs, numbers
# positive = 3
#
# With inner = "conv": kernel_size = 9. With inner = "given": weights = "W.npy", an (m, d) array.
"""


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


def list_command() -> None:
    """Print every name that a problem may use."""
    to = console()
    data_sets = [[s.name, s.shape, s.description, s.source] for s in DATA_SETS.values()]
    lists = [
        Table("Data sets (--data)", ["name", "size", "what", "from"], data_sets),
        Table("Activations (--activation)", ["name", "σ(x)"], [[a.name, a.formula] for a in ACTIVATIONS.values()]),
        Table("Losses (--loss)", ["name", "ℓ(f, y)"], [[loss.name, loss.formula] for loss in LOSSES.values()]),
        Table("Targets (--targets)", ["name", "y"], [[name, t.description] for name, t in TARGETS.items()]),
        Table("Links of a multi-index target (in a problem file)", ["name"], [[name] for name in LINKS]),
        Table("Inner weights (--inner)", ["name", "W"], [list(pair) for pair in INNER.items()]),
        Table("Standardisations (--standardise)", ["name", "what"], [list(pair) for pair in STANDARDISATIONS.items()]),
    ]  # fmt: skip
    for table in lists:
        to.print(table.title, style="bold")
        to.print(table.rich(fold=True))
        to.print()


def template_text() -> str:
    """Return the default problem as TOML with a line of explanation above every field."""
    problem = Problem()
    lines = ["# A problem of gradrank. Run it with: gradrank measure --spec FILE.toml", ""]
    sections = {name: part for name, part in problem.to_dict().items() if isinstance(part, dict)}
    for name, value in problem.to_dict().items():
        if name not in sections:
            lines += [*_comment(Problem, name), _assignment(name, value)]
    for name, part in sections.items():
        model = type(getattr(problem, name))
        lines += ["", f"[{name}]"]
        for field, value in part.items():
            lines += [*_comment(model, field), _assignment(field, value)]
    return "\n".join(lines) + OTHER_SECTIONS


def _comment(model: type[Specification], field: str) -> list[str]:
    text = model.model_fields[field].description
    return [f"# {' '.join(text.split())}"] if text else []


def _assignment(name: str, value: object) -> str:
    return tomli_w.dumps({name: value}).strip()
