"""When a claim holds, and how it is written down."""

import json
import math

import pytest

from gradrank.report.claims import Claim, claims_table


@pytest.mark.parametrize(
    ("measured", "error", "relation", "tolerance", "holds"),
    [
        (1.04, 0.01, "=", 0.05, True),
        (1.06, 0.01, "=", 0.05, False),
        (1.06, 0.04, "=", 0.05, True),
        (0.94, 0.04, "=", 0.05, True),
        (1.06, math.nan, "=", 0.05, False),
        (1.01, 5.0, ">", 0.0, True),
        (0.99, 5.0, ">", 0.0, False),
        (0.99, 5.0, "<", 0.0, True),
        (1.01, 5.0, "<", 0.0, False),
        (math.nan, 0.1, "=", 9.0, False),
        (math.nan, 0.1, "<", 0.0, False),
        (math.inf, 0.1, ">", 0.0, False),
    ],
)
def test_when_a_claim_holds(measured: float, error: float, relation: str, tolerance: float, holds: bool) -> None:
    claim = Claim("text", "source", measured, error, 1.0, relation, tolerance)  # type: ignore[arg-type]
    assert claim.holds is holds
    body = json.loads(json.dumps(claim.to_dict(), allow_nan=False))
    assert body["holds"] is holds


def test_the_table_says_what_fails() -> None:
    claims = [Claim("a", "s", 1.0, 0.1, 1.0), Claim("b", "s", 3.0, math.nan, 2.0, "<")]
    rows = claims_table(claims).rows
    assert rows[0] == ["a", "1.00 ± 0.10", "1.000", "yes", "s"]
    assert rows[1] == ["b", "3.000", "below 2.000", "NO", "s"]
