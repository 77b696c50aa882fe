"""Fixed points: one in closed form, a slow one that needs acceleration, and one that is not there."""

import numpy as np
import pytest

from gradrank.foundation.errors import ConvergenceError
from gradrank.linalg.fixed_point import fixed_point


def test_the_golden_ratio_and_a_slow_map() -> None:
    found, change = fixed_point(lambda x: 1 + 1 / x, np.ones(2), tolerance=1e-14, most=60, name="golden")
    np.testing.assert_allclose(found, (1 + 5**0.5) / 2, rtol=1e-13)
    assert change <= 1e-14
    calls = 0

    def slow(x: np.ndarray) -> np.ndarray:  # contracts by 0.999 a call: 23,000 of them for ten digits
        nonlocal calls
        calls += 1
        return 0.001 * np.array([1.0, 1e6]) + 0.999 * x

    found, _ = fixed_point(slow, np.full(2, 30.0), tolerance=1e-12, most=500, name="slow")
    np.testing.assert_allclose(found, [1.0, 1e6], rtol=1e-9)
    assert calls < 100


def test_none() -> None:
    with pytest.raises(ConvergenceError, match="growth: the fixed point is not reached in 50 evaluations"):
        fixed_point(lambda x: 2 * x, np.ones(1), tolerance=1e-9, most=50, name="growth")
