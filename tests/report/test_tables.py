import math

import pytest

from gradrank.report.tables import number, percent, with_error


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5962, "0.5962"), (51.163, "51.16"), (1.0, "1.000"), (0.0, "0"), (1.2346e-7, "1.235e-07"), (-0.02, "-0.02000"),
     (math.nan, "–"), (None, "–"), (math.inf, "–"), (123456.0, "1.235e+05"), (99999.0, "99999")],
)  # fmt: skip
def test_number_in_four_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [(0.5, 0.08, "0.500 ± 0.080"), (37.3, 3.0, "37.3 ± 3.0"), (1.0, 0.0, "1.000"), (math.nan, 1.0, "–"), (2.0, math.nan, "2.000"),
     (1e7, 1e3, "1.000e+07 ± 1.0e+03")],
)  # fmt: skip
def test_error_sets_the_digits(mean: float, error: float, text: str) -> None:
    assert with_error(mean, error) == text


def test_percent() -> None:
    assert percent(0.547) == "54.7 %"
    assert percent(None) == "–"
