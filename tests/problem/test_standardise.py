import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradrank.foundation.errors import InputError
from gradrank.problem.standardise import STANDARDISATIONS, constant, standardise

SMALL = np.array([[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]])
FINITE = st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=False)
MATRICES = arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(1, 5)), elements=FINITE)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("raw", [[0, 2], [4, 6], [8, 10]]),
        ("center", [[-4, -4], [0, 0], [4, 4]]),
        ("zscore", np.array([[-1, -1], [0, 0], [1, 1]]) * np.sqrt(1.5)),
        ("unit-range", [[0, 0.2], [0.4, 0.6], [0.8, 1]]),
        ("symmetric-range", [[-1, -0.6], [-0.2, 0.2], [0.6, 1]]),
        ("unit-rows", [[0, 1], [4 / np.sqrt(52), 6 / np.sqrt(52)], [8 / np.sqrt(164), 10 / np.sqrt(164)]]),
    ],
)
def test_each_way_against_numbers_by_hand(how: str, expected: np.ndarray) -> None:
    before = SMALL.copy()
    scaled = standardise(SMALL, how, field="inputs.standardise")
    np.testing.assert_allclose(scaled, expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(SMALL, before)


def test_every_way_has_a_description_and_can_be_used() -> None:
    assert set(STANDARDISATIONS) == {"raw", "center", "zscore", "unit-range", "symmetric-range", "unit-rows"}
    for how, description in STANDARDISATIONS.items():
        assert description
        assert standardise(SMALL, how, field="f").dtype == np.float64


def test_unknown_way_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"^inputs\.standardise: 'z-score' .*did you mean 'zscore'"):
        standardise(SMALL, "z-score", field="inputs.standardise")


def test_unknown_treatment_of_constant_columns_is_refused() -> None:
    with pytest.raises(InputError, match="'keep' is not allowed; give 'error', 'zero' or 'drop'"):
        standardise(SMALL, "zscore", field="f", constant_columns="keep")  # type: ignore[arg-type]


def test_column_of_equal_floats_is_constant_although_its_computed_deviation_is_not_zero() -> None:
    X = np.random.default_rng(0).standard_normal((1001, 8))
    X[:, 2] = 0.1
    X[:, 5] = 1e300
    X[::2, 7] = 0.3
    X[1::2, 7] = 0.1 + 0.2  # one unit in the last place more
    assert X[:, 2].std() > 0
    np.testing.assert_array_equal(np.flatnonzero(constant(X)), [2, 5, 7])
    with pytest.raises(
        InputError, match=r"^f: 'zscore' .* 3 constant columns of 8 \(column 2, 5, 7, .*'zero' or 'drop'.*'raw'$"
    ):
        standardise(X, "zscore", field="f")
    zero = standardise(X, "zscore", field="f", constant_columns="zero")
    assert zero.shape == (1001, 8)
    assert not zero[:, [2, 5, 7]].any()
    dropped = standardise(X, "zscore", field="f", constant_columns="drop")
    np.testing.assert_array_equal(dropped, zero[:, [0, 1, 3, 4, 6]])


def test_many_constant_columns_are_counted_and_five_listed() -> None:
    X = np.zeros((4, 12))
    X[:, 11] = [1, 2, 3, 4]
    with pytest.raises(InputError, match=r"11 constant columns of 12 \(column 0, 1, 2, 3, 4, …, counted from 0\)"):
        standardise(X, "zscore", field="f")


def test_no_column_left_to_keep_is_refused() -> None:
    with pytest.raises(InputError, match="every column is constant"):
        standardise(np.ones((3, 2)), "zscore", field="f", constant_columns="drop")


def test_small_variation_on_a_large_offset_is_not_constant() -> None:
    X = np.array([[1e9, 0.0], [1e9 + 1, 1.0], [1e9 + 2, 2.0]])
    scaled = standardise(X, "zscore", field="f")
    np.testing.assert_allclose(scaled[:, 0], scaled[:, 1], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("how", ["unit-range", "symmetric-range"])
def test_equal_values_have_no_range(how: str) -> None:
    with pytest.raises(InputError, match=r"^f: all values are 3;"):
        standardise(np.full((3, 2), 3.0), how, field="f")
    with pytest.raises(InputError, match="span too much"):
        standardise(np.array([[-1.7e308, 1.7e308]]), how, field="f")


def test_row_of_zeros_has_no_direction() -> None:
    X = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(InputError, match=r"2 rows of zeros \(the first is row 1"):
        standardise(X, "unit-rows", field="f")


@given(MATRICES)
@settings(max_examples=150, deadline=None)
def test_zscore_has_mean_zero_and_variance_one_at_any_scale(X: np.ndarray) -> None:
    scaled = standardise(X, "zscore", field="f", constant_columns="zero")
    flat = ~scaled.any(axis=0)
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, ~flat].std(axis=0), 1, rtol=1e-12)
    for k in np.flatnonzero(flat):
        assert X[:, k].max() - X[:, k].min() <= 2e-15 * np.abs(X[:, k]).max()


@given(MATRICES)
@settings(max_examples=100, deadline=None)
def test_ranges_and_rows_reach_their_bounds(X: np.ndarray) -> None:
    if X.max() > X.min():
        unit = standardise(X, "unit-range", field="f")
        assert (unit.min(), unit.max()) == (0, 1)
        symmetric = standardise(X, "symmetric-range", field="f")
        assert (symmetric.min(), symmetric.max()) == (-1, 1)
    if X.any(axis=1).all():
        np.testing.assert_allclose(np.linalg.norm(standardise(X, "unit-rows", field="f"), axis=1), 1, rtol=1e-14)
