"""Checks of numbers: what passes, and the line that says what does not."""

import math

import numpy as np
import pytest

from gradrank.foundation.errors import InputError
from gradrank.foundation.numbers import above_zero, at_least_zero, finite, increasing_times, whole


def test_what_passes_comes_back_as_a_plain_number() -> None:
    assert (whole("n", np.int64(3), 3), type(whole("n", np.int64(3), 3))) == (3, int)
    assert (above_zero("x", np.float32(0.5)), at_least_zero("x", 0), finite("x", -2)) == (0.5, 0.0, -2.0)
    assert type(at_least_zero("x", np.int64(0))) is float
    assert increasing_times([0, 1, 1, 2.5]).tolist() == [0.0, 1.0, 1.0, 2.5]


@pytest.mark.parametrize("value", [True, "3", None, 2.0, 1])
def test_what_is_no_whole_number_of_at_least_two(value: object) -> None:
    with pytest.raises(InputError, match=r"n: .* is not allowed; give a whole number of at least 2"):
        whole("n", value, 2)


def test_numbers_of_more_than_64_bits() -> None:
    for value in (2**63, 10**400, 10**9000):
        with pytest.raises(InputError, match=r"n: .* is not allowed; give one of at most 9223372036854775807"):
            whole("n", value, 1)
    assert whole("n", np.uint64(2**63 - 1), 1) == 2**63 - 1
    with pytest.raises(InputError, match="x: a whole number of 29898 bits is not allowed"):
        finite("x", 10**9000)


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf, -1.0])
def test_what_is_no_number_of_the_right_sign(value: object) -> None:
    for check in (above_zero, at_least_zero):
        with pytest.raises(InputError, match=r"x: .* is not allowed; give a finite number"):
            check("x", value)
    if value != -1.0:
        with pytest.raises(InputError, match=r"x: .* give a finite number"):
            finite("x", value)
    with pytest.raises(InputError, match=r"x: 0 is not allowed; give a finite number above 0"):
        above_zero("x", 0)


@pytest.mark.parametrize("times", [[], [1.0, 0.5], [-1.0], [math.nan], [[1.0]], ["soon"], [[1.0], 2.0]])
def test_what_are_no_increasing_times(times: list) -> None:
    with pytest.raises(InputError, match=r"times: .* give increasing finite times of at least 0"):
        increasing_times(times)
