from pathlib import Path

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs, DataSetInputs, FileInputs

X = np.arange(60.0).reshape(20, 3) ** 1.5


def test_all_rows_in_their_order() -> None:
    inputs = ArrayInputs(X, np.arange(20)).draw(0)
    np.testing.assert_array_equal(inputs.X.numpy(), X)
    np.testing.assert_array_equal(inputs.labels, np.arange(20))
    assert not inputs.knows_spike


def test_chosen_rows_keep_their_labels_and_change_with_the_seed() -> None:
    first, second = (ArrayInputs(X, np.arange(20), n=7).draw(seed) for seed in (0, 1))
    assert len(set(first.labels.tolist())) == 7
    np.testing.assert_array_equal(first.X.numpy(), X[first.labels])
    assert set(first.labels.tolist()) != set(second.labels.tolist())


def test_rows_are_chosen_uniformly() -> None:
    counts = np.zeros(20)
    for seed in range(400):
        counts[ArrayInputs(X, np.arange(20), n=5).draw(seed).labels] += 1
    # Each row is in a quarter of the choices; 4.5 binomial errors for 20 rows.
    assert np.abs(counts / 400 - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / 400)


def test_standardisation_is_of_the_chosen_rows() -> None:
    drawn = ArrayInputs(X, n=9, standardise="zscore").draw(0).X.numpy()
    np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(drawn.std(axis=0), 1, rtol=1e-14)


def test_more_rows_than_there_are() -> None:
    with pytest.raises(InputError, match=r"^inputs\.n: 21 is not allowed; the data have 20 rows"):
        ArrayInputs(X, n=21).draw(0)


def test_too_few_columns_left() -> None:
    constant = np.column_stack([np.arange(5.0), np.ones(5)])
    with pytest.raises(InputError, match=r"^inputs: the shape \(5, 1\) is not allowed"):
        ArrayInputs(constant, standardise="zscore", constant_columns="drop").draw(0)


def test_file_gives_the_rows_of_the_array_and_its_digest_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, X)
    file = FileInputs(path=path, n=6).with_digest()
    np.testing.assert_array_equal(file.draw(3).X.numpy(), ArrayInputs(X, n=6).draw(3).X.numpy())
    assert file.with_digest() is file
    np.save(path, X + 1)
    with pytest.raises(InputError, match=r"^inputs\.sha256: .*the file has changed"):
        file.draw(3)


def test_blank_pixels_of_images_are_zero_under_zscore() -> None:
    inputs = DataSetInputs(name="digits", standardise="zscore").draw(0)
    assert inputs.shape == (1797, 64)
    spread = inputs.X.std(dim=0, correction=0).numpy()
    assert set(np.round(spread, 12)) == {0.0, 1.0}


def test_labels_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InputError, match=r"inputs\.y: .*1 labels are NaN or infinite, the first in row 2"):
        Problem(inputs={"kind": "given-array", "X": np.eye(4), "y": np.array([1.0, 2.0, np.nan, 0.0])})


def test_classes_of_mixed_types_are_text() -> None:
    inputs = ArrayInputs(X=np.eye(4), y=np.array(["a", 1, "a", 2.5], dtype=object))
    assert inputs.draw(0).labels.tolist() == ["a", "1", "a", "2.5"]


def test_arrays_that_would_lose_something_are_refused() -> None:
    masked = np.ma.masked_array(np.eye(4), mask=np.eye(4) > 0)
    for X_bad in (masked, torch.eye(4, device="meta"), [[1.0, 2.0], [3.0]]):
        with pytest.raises(InputError, match=r"inputs\.X|X: "):
            Problem(inputs={"kind": "given-array", "X": X_bad})


def test_sparse_and_half_tensors_are_taken() -> None:
    np.testing.assert_array_equal(ArrayInputs(X=torch.eye(4).to_sparse()).X, np.eye(4))
    np.testing.assert_array_equal(ArrayInputs(X=torch.eye(4, dtype=torch.bfloat16)).X, np.eye(4))
