"""Where the files of a data set lie: inside an installed package, or in a folder that the user names."""

import importlib.util
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gradrank.foundation.errors import InputError
from gradrank.problem.table import Table

FOLDER_VARIABLE = "GRADRANK_DATA"


@dataclass(frozen=True)
class DataSet:
    """A data set that can be asked for by name."""

    name: str
    description: str
    shape: str  # as text, like "1797 × 64"
    source: str  # what to install, or which folder to give
    # Whether a z-score of all rows, or of some hundreds of them, needs constant_columns "zero" or "drop".
    constant_columns_expected: bool
    load: Callable[[Path | None], Table]  # from the folder given by the user, if any


def installed_file(package: str, relative: str, install: str) -> Path:
    """Return the path of a data file inside an installed package, without importing the package.

    Raises
    ------
    InputError
        If the package, or the file in it, is missing; the message says what to install.
    """
    found = importlib.util.find_spec(package)
    for root in (found.submodule_search_locations or []) if found else []:
        path = Path(root) / relative
        if path.is_file():
            return path
    missing = f"the installed package '{package}' has no file {relative}" if found else f"it needs package '{package}'"
    raise InputError(f"{missing}; run: {install}")


def user_file(folder: Path | None, names: Iterable[str], places: Iterable[Path], advice: str) -> Path:
    """Return the first file called one of ``names`` in ``folder``, else in ``places`` and in $GRADRANK_DATA.

    Each place may be relative: it is looked for below the folder given by the user, or below $GRADRANK_DATA.
    """
    names, places = list(names), list(places)
    if folder is not None and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder; {advice}")
    from_environment = os.environ.get(FOLDER_VARIABLE)
    root = folder if folder is not None else Path(from_environment) if from_environment else None
    # A folder that the user names is the only one searched: another copy must not be read in silence.
    searched = [root / place for place in places if not place.is_absolute()] if root is not None else []
    searched += [place for place in places if place.is_absolute()] if folder is None else []
    for place in searched:
        for name in names:
            if (place / name).is_file():
                return place / name
    where = f"no {names[0]} below {str(root)!r}" if root is not None else "no folder is given"
    raise InputError(f"{where}; {advice}")
