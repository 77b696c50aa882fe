"""Features at depth: their covariance, and what is refused."""

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.initialization import ShapedReLU
from gradrank.initialization.features_at_depth import features_at_depth


def correlation_of_rows(X: torch.Tensor) -> float:
    unit = X / X.norm(dim=1, keepdim=True)
    n = len(X)
    return float((unit.sum(dim=0).square().sum() - n) / (n * (n - 1)))


def test_rows_collapse_without_shaping_and_not_with_it() -> None:
    plain = [features_at_depth(60, 80, depth, 100, ShapedReLU(0, -10), seed=1) for depth in (0, 5, 20)]
    found = [correlation_of_rows(X) for X in plain]
    assert abs(found[0]) < 0.02
    assert 0.5 < found[1] < found[2]
    assert found[2] > 0.8
    assert correlation_of_rows(features_at_depth(60, 80, 20, 100, ShapedReLU(0, -1), seed=1)) < 0.2
    assert all(float(X.square().mean()) == pytest.approx(1) for X in plain)


def test_no_depth_gives_gaussian_inputs_of_their_own_gram_matrix() -> None:
    X = features_at_depth(3, 40_000, 0, 10, ShapedReLU(0, -1), seed=2)
    gram = (X @ X.T / 40_000).numpy()
    np.testing.assert_allclose(gram, np.eye(3), atol=0.03)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="samples: 1 is not allowed"):
        features_at_depth(1, 5, 2, 10, ShapedReLU(0, -1))
    with pytest.raises(InputError, match="width: 0 is not allowed"):
        features_at_depth(5, 5, 2, 0, ShapedReLU(0, -1))
