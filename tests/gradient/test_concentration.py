"""How far the edge of Silverstein's law moves because columns scatter."""

import numpy as np
import pytest
import torch

from gradrank.gradient.column_covariance import ColumnCovariances
from gradrank.gradient.concentration import edge_shift
from gradrank.gradient.setting import plain_setting
from gradrank.linalg.gaussian_columns import positive_part
from gradrank.linalg.outliers import separate


def shift(factor: float, name: str) -> float:
    rng = np.random.default_rng(0)
    X, r = factor * torch.from_numpy(rng.standard_normal((200, 260))), torch.from_numpy(rng.standard_normal(200))
    columns = ColumnCovariances(plain_setting(X, residue=r, activation=name, scale=0.05, m=330), None)
    eigenvalues, vectors = torch.linalg.eigh(columns.covariance(0))
    separation = separate(positive_part(eigenvalues.flip(0)), 330)
    return edge_shift(columns, separation, vectors.flip(1), 3)


def test_ordinary_columns_move_the_edge_by_less_than_its_fluctuations() -> None:
    """ReLU's columns all have nearly the same size: less scatter than Gaussian ones, a slightly lower edge."""
    assert -1.0 < shift(1.0, "relu") < 0.0
    assert abs(shift(1.0, "tanh")) < 1.0
    assert shift(100.0, "relu") == pytest.approx(shift(1.0, "relu"), rel=1e-6)


def test_saturation_moves_it_upwards() -> None:
    assert 1.0 < shift(10.0, "tanh") < shift(30.0, "tanh") < shift(100.0, "tanh")
    with np.errstate(all="ignore"):
        assert np.isnan(shift(1e12, "tanh"))
