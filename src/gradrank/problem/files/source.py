"""One file given by the user, and the one-line errors that its faults end in."""

import difflib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gradrank.foundation.errors import GradrankError, InputError
from gradrank.foundation.memory import require_memory


@dataclass(frozen=True)
class DataFile:
    """A file that exists, can be read and is not empty; build it with `data_file`."""

    path: Path
    field: str  # of the specification, named by every error
    size: int  # bytes

    def refuse(self, problem: str, allowed: str) -> InputError:
        """Return the error that names the field, the file, what is wrong with it and what is allowed."""
        return InputError(f"{self.field}: {str(self.path)!r} {problem}; {allowed}")

    def require_memory(self, needed: float) -> None:
        """Refuse the file if reading it takes more memory than there is."""
        require_memory(f"{self.field}: {str(self.path)!r}", needed, "give a smaller file or fewer rows")

    @contextmanager
    def parsing(self, kind: str) -> Iterator[None]:
        """Turn whatever a parser raises on broken bytes into an `InputError`.

        Parsers of other libraries promise no error types for bytes that are not of their format, so all are caught;
        their warnings would be the same news a second time.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except GradrankError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {shortened(str(error), 120)}" if str(error) else type(error).__name__
            raise self.refuse(f"cannot be read as {kind} ({reason})", "give a complete file of that format") from error


def shortened(text: str, most: int = 40) -> str:
    """Return ``text`` cut to ``most`` characters, unprintable ones escaped."""
    shown = repr(text)[1:-1]
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def data_file(path: Path, field: str) -> DataFile:
    """Return the file at ``path``, or raise an `InputError` if it is missing, not a file, unreadable or empty."""
    file = DataFile(path, field, 0)
    allowed = "give a file that can be read"
    try:
        status = path.stat()
    except FileNotFoundError:
        raise file.refuse("does not exist", f"give an existing file{_near_names(path)}") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte or a lone surrogate in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise file.refuse(f"cannot be opened ({reason})", allowed) from None
    if stat.S_ISDIR(status.st_mode):
        raise file.refuse("is a folder", "give a file")
    if not stat.S_ISREG(status.st_mode):
        raise file.refuse("is a device, a pipe or a socket", "give a regular file")
    if not os.access(path, os.R_OK):
        raise file.refuse("cannot be opened (no permission to read it)", allowed)
    if status.st_size == 0:
        raise file.refuse("is empty", "give a file with at least two rows and two columns")
    return DataFile(path, field, status.st_size)


def _near_names(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return f" (there is no folder {str(path.parent)!r})"
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(name) for name in near)}?)" if near else ""
