"""The errors a user can meet, each a single line, and the exit code that each one ends the command with."""

from enum import IntEnum

LONGEST = 10_000  # bits of a whole number that a message shows: Python refuses to write out very long ones


class ExitCode(IntEnum):
    """How a gradrank command ends."""

    OK = 0
    INCOMPLETE = 1
    BAD_INPUT = 2
    STORAGE = 3
    INTERRUPTED = 130


class GradrankError(Exception):
    """Base of every error raised on purpose; ``str(error)`` is one line: what, where, what is allowed."""

    exit_code: ExitCode = ExitCode.INCOMPLETE

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputError(GradrankError, ValueError):
    """A value, a file or a name given by the user cannot be used."""

    exit_code = ExitCode.BAD_INPUT


class ConvergenceError(GradrankError, ArithmeticError):
    """An iteration ended without reaching the accuracy that was asked for."""


class StorageError(GradrankError, OSError):
    """A result could not be written or read back."""

    exit_code = ExitCode.STORAGE


class ClusterError(GradrankError):
    """No workers could be reached, or they are gone."""

    exit_code = ExitCode.STORAGE


class IncompleteError(GradrankError):
    """Some cells of an experiment failed; the others are there."""


class Interrupted(GradrankError):  # noqa: N818  # not a fault
    """A run was stopped by the user; what was done is kept."""

    exit_code = ExitCode.INTERRUPTED


def unusable(field: str, value: object, allowed: str) -> InputError:
    """Build the error every bad value ends in: ``field: value is not allowed; allowed``.

    >>> str(unusable("inputs.nu", -0.1, "give a number of at least 0"))
    'inputs.nu: -0.1 is not allowed; give a number of at least 0'
    """
    if isinstance(value, int) and value.bit_length() > LONGEST:
        shown = f"a whole number of {value.bit_length()} bits"
    else:
        shown = f"'{value}'" if isinstance(value, str) else repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "…"
    return InputError(f"{field}: {shown} is not allowed; {allowed}")
