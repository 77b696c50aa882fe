"""Printing a result to a terminal."""

from rich.console import Console

from gradrank.measurement.ensemble import Ensemble
from gradrank.measurement.record import Measurement
from gradrank.measurement.wording import headline, remarks, tables

NARROWEST = 100  # columns assumed where the output is not a terminal


def console() -> Console:
    """Return a console for plain text; one that is not a terminal is wide enough for every table."""
    plain = Console(highlight=False, markup=False)
    return plain if plain.is_terminal else Console(highlight=False, markup=False, width=max(plain.width, NARROWEST))


def show(result: Measurement | Ensemble, to: Console | None = None) -> None:
    """Print what was measured: the headline, the table of parts, the leading singular values, and the remarks."""
    to = to or console()
    to.print(headline(result), style="bold", soft_wrap=True)
    for table in tables(result):
        to.print(f"\n{table.title}", soft_wrap=True)
        to.print(table.rich())
        to.print(table.note, style="dim", soft_wrap=True)
    to.print()
    for line in remarks(result):
        to.print(line, soft_wrap=True)
