"""`Claim`: what a figure asserts, in numbers, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gradrank.report.tables import Table, number, with_error

Relation = Literal["=", "<", ">"]
WORDS = {"=": "", "<": "below ", ">": "above "}


@dataclass(frozen=True)
class Claim:
    """A statement about one measured number.

    "=" holds where measured and expected differ by at most the larger of ``tolerance`` and two standard errors; "<" and ">" hold
    where the measured number itself is on the right side of ``expected``. A number that is not there makes no claim hold.
    """

    text: str
    source: str  # paper and section, or "measured here"
    measured: float
    standard_error: float  # NaN where there is a single number
    expected: float
    relation: Relation = "="
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the claim is borne out."""
        if not math.isfinite(self.measured):
            return False
        if self.relation == "<":
            return self.measured < self.expected
        if self.relation == ">":
            return self.measured > self.expected
        error = 2.0 * self.standard_error if math.isfinite(self.standard_error) else 0.0
        return abs(self.measured - self.expected) <= max(self.tolerance, error)

    @property
    def wanted(self) -> str:
        """What the measured number should be, in words."""
        band = f" ± {number(self.tolerance, 2)}" if self.relation == "=" and self.tolerance > 0 else ""
        return f"{WORDS[self.relation]}{number(self.expected)}{band}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for strict JSON; what is not finite is None."""
        body = {**asdict(self), "holds": self.holds}
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in body.items()
        }


def claims_table(claims: Sequence[Claim], title: str = "Claims") -> Table:
    """Return the claims as a table; a failing one says so."""
    rows = [
        [c.text, with_error(c.measured, c.standard_error), c.wanted, "yes" if c.holds else "NO", c.source]
        for c in claims
    ]
    return Table(title, ["claim", "measured", "expected", "holds", "source"], rows)
