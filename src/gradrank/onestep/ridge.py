"""Ridge regression on features, for a whole grid of penalties from one eigendecomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.onestep.arguments import checked_ridges


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The minimisers w_λ of (1/n)‖y − b − S w‖² + λ‖w‖² for every λ of a grid; b is zero without an intercept."""

    ridges: torch.Tensor  # (L,)
    weights: torch.Tensor  # (N, L)
    intercepts: torch.Tensor  # (L,)
    degrees_of_freedom: torch.Tensor  # (L,) tr K(K + λ)⁻¹, K = SᵀS/n
    form: str  # "primal" (N × N) or "dual" (n × n): the smaller of the two

    def predict(self, S: torch.Tensor) -> torch.Tensor:
        """Return the predictions for features S (t, N), shape (t, L)."""
        return torch.addmm(self.intercepts, S, self.weights)


def ridge_path(
    S: torch.Tensor, y: torch.Tensor, ridges: float | Sequence[float] | np.ndarray, *, intercept: bool = False
) -> RidgePath:
    """Fit min_w (1/n)‖y − S w‖² + λ‖w‖² for every λ.

    w_λ = (K + λ)⁻¹Sᵀy/n with K = SᵀS/n where N ≤ n, and w_λ = Sᵀ(K̃ + λ)⁻¹y/n with K̃ = SSᵀ/n where n < N. The
    eigendecomposition costs O(min(n, N)³), each further λ O(N min(n, N)). At λ = 0 it is the solution of least norm.

    Parameters
    ----------
    S
        Features, shape (n, N).
    y
        Labels, shape (n,).
    ridges
        The penalties λ ≥ 0.
    intercept
        Whether to fit a constant as well, which is not penalised: the ridge on centred features and labels.

    Raises
    ------
    InputError
        If the features are not finite, or a penalty is negative, not finite, or above zero and below what the precision
        of S resolves.
    """
    grid = torch.from_numpy(checked_ridges(ridges)).to(S)
    shift, level = (S.mean(dim=0), y.mean()) if intercept else (S.new_zeros(S.shape[1]), y.new_zeros(()))
    S, y = S - shift if intercept else S, y - level
    n, N = S.shape
    primal = n >= N
    K = (S.T @ S if primal else S @ S.T) / n
    if not bool(torch.isfinite(K).all()):
        raise InputError("features: their squares are not finite; give a smaller step or smaller inputs")
    values, vectors = torch.linalg.eigh(K)
    floor = torch.finfo(S.dtype).eps * max(n, N) * float(values[-1])
    _check_resolved(grid, floor)
    # Directions of zero variance are left out at λ = 0; elsewhere rounding may have made them negative.
    values = torch.where(values > floor, values, torch.zeros_like(values))
    inverse = torch.where(values > 0, 1 / values.clamp(min=floor or 1.0), torch.zeros_like(values))
    filters = torch.where(grid > 0, 1 / (values[:, None] + grid.clamp(min=1e-300)), inverse[:, None])
    projected = vectors.T @ ((S.T @ y if primal else y) / n)
    weights = vectors @ (projected[:, None] * filters)
    if not primal:
        weights = S.T @ weights
    return RidgePath(
        ridges=grid,
        weights=weights,
        intercepts=level - shift @ weights,
        degrees_of_freedom=(values[:, None] * filters).sum(dim=0),
        form="primal" if primal else "dual",
    )


def _check_resolved(grid: torch.Tensor, floor: float) -> None:
    lost = grid[(grid > 0) & (grid < floor)]
    if len(lost):
        raise unusable(
            "ridge",
            float(lost[0]),
            f"rounding hides penalties below {floor:.1e} on these features; give 0 or a larger one",
        )
