"""A table of names and numbers, once: printed in a terminal or written to a page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """A titled table of text cells; the first column is aligned left, the others right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def rich(self, *, fold: bool = False) -> RichTable:
        """Return the body for a terminal: numbers stay on one line, prose may be folded. Title and note are the caller's."""
        table = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for index, column in enumerate(self.columns):
            justify: Literal["left", "right"] = "left" if index == 0 or fold else "right"
            table.add_column(column, justify=justify, no_wrap=index == 0 or not fold, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def number(value: float | None, digits: int = 4) -> str:
    """Return a number in ``digits`` significant digits, or a dash where it is withheld."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return f"{value:.{digits - 1}e}"


def with_error(mean: float, standard_error: float) -> str:
    """Return ``mean ± standard error``, the error in two significant digits and the mean to the same place."""
    if not math.isfinite(mean):
        return "–"
    if not math.isfinite(standard_error) or standard_error <= 0:
        return number(mean)
    places = max(0, 1 - math.floor(math.log10(standard_error)))
    if places > 6 or abs(mean) >= 1e5:
        return f"{mean:.3e} ± {standard_error:.1e}"
    return f"{mean:.{places}f} ± {standard_error:.{places}f}"


def percent(value: float | None) -> str:
    """Return a share in percent."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"
