"""Columns of gradients of simulated networks, at fixed inputs and residue: what Gaussian columns stand for."""

import torch

from gradrank.foundation.random import stream, unit_rows
from gradrank.gradient.column_covariance import ColumnCovariances


def network_samples(
    columns: ColumnCovariances, draws: int, seed: int, neurons: int | None = None
) -> list[torch.Tensor]:
    """Return the columns (K, m) of √m G for ``draws`` networks with fresh weights, in units of ``scale``.

    ``neurons`` is the number of columns that are formed, by default m.

    The rows are uniform on the sphere; where κ = wᵀq is conditioned on, its classes are kept: κ q + √(1 − κ²) u with u
    uniform orthogonal to q.
    """
    setting, rng = columns.setting, stream(seed, "simulated-networks")
    m = setting.m if neurons is None else neurons
    samples = []
    for _ in range(draws):
        W = torch.from_numpy(unit_rows(rng, m, setting.X.shape[1]))
        signs = torch.from_numpy(rng.integers(0, 2, m) * 2.0 - 1.0)
        if columns.conditioning is not None:
            q, kappa = columns.conditioning.direction, columns.conditioning.spread(m)
            across = W - torch.outer(W @ q, q)
            across /= torch.linalg.vector_norm(across, dim=1, keepdim=True)
            W = torch.outer(kappa, q) + torch.sqrt((1.0 - kappa.square()).clamp(min=0.0))[:, None] * across
        samples.append(columns.combine(setting.X @ W.T, signs, W))
    return samples
