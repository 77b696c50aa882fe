"""`gradrank list` and `gradrank template`: what a problem may hold."""

import tomli_w

from gradrank.measurement.terminal import console
from gradrank.problem.activations import ACTIVATIONS
from gradrank.problem.data_sets import DATA_SETS
from gradrank.problem.losses import LOSSES
from gradrank.problem.network import INNER
from gradrank.problem.problem import Problem
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
