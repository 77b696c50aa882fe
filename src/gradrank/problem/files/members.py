"""Which of several named arrays of a file is the data matrix, and which the labels."""

from collections.abc import Mapping

from gradrank.foundation.names import allowed_names
from gradrank.problem.files.source import DataFile

X_NAMES = ("X", "x", "data")
Y_NAMES = ("y", "labels", "label", "target", "targets")


def choose_members(file: DataFile, shapes: Mapping[str, tuple[int, ...]], labels: str | None) -> tuple[str, str | None]:
    """Return the names of X and y among arrays of these shapes.

    X is the one called X, x or data, else the only two-dimensional one. y is the one called ``labels``, else the one
    called y, labels or target, if there is one.
    """
    if labels is not None and labels not in shapes:
        raise file.refuse(
            f"has no array {labels!r} for the labels, and no such file exists", allowed_names(labels, shapes)
        )
    y = labels if labels is not None else next((name for name in Y_NAMES if name in shapes), None)
    x = next((name for name in X_NAMES if name in shapes and name != y), None)
    if x is not None:
        return x, y
    two_dimensional = [name for name, shape in shapes.items() if len(shape) == 2 and name != y]
    if len(two_dimensional) == 1:
        return two_dimensional[0], y
    held = ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[:8]) or "nothing"
    raise file.refuse(f"holds {held}", "give one array named X, or only one with two dimensions, a row per sample")
