"""Checks of arrays: what passes, and the line that says what does not."""

import numpy as np
import pytest
import torch

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.0],
        (1, 2),
        np.array([1, 2], dtype=np.uint8),
        torch.tensor([1.0, 2.0], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor([1, 2]),
        torch.tensor([1.0, 2.0]).to_sparse(),
        np.array([1, 2], dtype=object),
    ],
)
def test_numbers_of_any_kind(value: object) -> None:
    found = real_array("x", value, "numbers")
    assert (found.tolist(), found.dtype) == ([1.0, 2.0], np.float64)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0], [1.0, 2.0]], "x: lists of different lengths are not allowed; give numbers"),
        ("many", "x: 'many' is not allowed; give numbers"),
        (["1", 2], "x: .* is not allowed; give numbers"),
        (None, "x: None is not allowed"),
        ({}, "x: {} is not allowed"),
        (True, "x: True is not allowed"),
        ([1j], "x: .*j.* is not allowed"),
        (torch.tensor([1j]), "x: .* is not allowed"),
        (float("nan"), "x: nan is not allowed"),
        ([1, 10**400], "x: an entry is larger than a float can hold; give numbers"),
        ([1.0, float("inf")], "x: an entry is NaN or infinite; give numbers"),
    ],
)
def test_everything_else(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        real_array("x", value, "numbers")
