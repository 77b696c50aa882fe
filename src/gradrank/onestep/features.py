"""Features of a network in pieces of a few rows, and the test error of a ridge regression on them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gradrank.onestep.ridge import RidgePath

ROWS = 2048  # of test features formed at a time

Features = Callable[[torch.Tensor], torch.Tensor]  # (t, d) → (t, N)


def squared_errors(path: RidgePath, features: Features, X: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return (f̂_λ(x_i) − f*(x_i))² for test samples X (t, d) and f* (t,), shape (t, L)."""
    parts = [
        (path.predict(features(rows)) - wanted[:, None]).square()
        for rows, wanted in zip(torch.split(X, ROWS), torch.split(target, ROWS), strict=True)
    ]
    return torch.cat(parts)
