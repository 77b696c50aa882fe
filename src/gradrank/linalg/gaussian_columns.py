"""Singular values of matrices with independent columns of several covariances, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradrank.foundation.errors import ConvergenceError
from gradrank.foundation.random import stream
from gradrank.linalg.outliers import Separation, separate
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.small import singular_values


@dataclass(frozen=True, eq=False)
class SampledSpectrum:
    """Draws of the singular values of Y/√m, and of what is left of Y without its population's outlying directions."""

    values: Reals  # (draws, rank) in descending order
    leading: Reals  # (draws, count) the count largest, less the sample's own deviation along each outlying direction
    bulk_tops: Reals  # (draws,) largest singular value after the outlying directions are projected out
    overlaps: Reals  # (draws, count) ⟨uᵢ, vᵢ⟩² of the i-th left singular vector with the i-th outlying direction
    directions: torch.Tensor  # (K, count) outlying eigenvectors vᵢ of the mean covariance
    population: Separation  # of the mean covariance


def gaussian_samples(
    covariance: Callable[[int], torch.Tensor], weights: Sequence[float], columns: int, draws: int, seed: int
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the mean covariance and ``draws`` matrices Y (K, m), a share p_b of their columns being N(0, C_b).

    The columns' forms yᵀAy do not concentrate around one value when their covariances differ, so that Silverstein's law
    of the mean covariance does not hold; a sample is exact in law and, since eigenvalues are rigid, few of them do.

    Parameters
    ----------
    covariance
        ``covariance(b)`` returns C_b, shape (K, K); called once for each class, so that one is held at a time.
    weights
        Shares p_b of the columns, adding to one; rounded to whole columns.
    columns
        The number m of columns.
    draws, seed
        Number of samples and their seed.

    Raises
    ------
    ConvergenceError
        If a covariance is not finite or has an eigenvalue below −1e-10 of its largest.
    """
    numbers = np.diff(np.rint(np.concatenate([[0.0], np.cumsum(weights)]) * columns)).astype(int)
    rng = stream(seed, "gaussian-columns")
    mean = torch.zeros(0)
    samples: list[torch.Tensor] = []
    for b, number in enumerate(numbers):
        C = covariance(b)
        if b == 0:
            mean, samples = torch.zeros_like(C), [C.new_empty(len(C), columns) for _ in range(draws)]
        mean.add_(C, alpha=weights[b])
        if number:
            L, start = _factor(C), int(numbers[:b].sum())
            for Y in samples:
                Y[:, start : start + number] = L @ torch.from_numpy(rng.standard_normal((len(C), number)))
    return mean, samples


def sampled_spectrum(mean: torch.Tensor, samples: Sequence[torch.Tensor], rank: int) -> SampledSpectrum:
    """Return the singular values of Y/√m for each Y (K, m), ``rank`` of them, and their directions by the mean covariance.

    The values come from Y itself: squaring it would lose those below 1e-8 of the largest. A leading value σᵢ scatters with
    the sample's second moment vᵢᵀSvᵢ, S = YYᵀ/m, along its own direction, by a relative m^(−½) that the columns of a network,
    of nearly constant size along vᵢ, need not have: σᵢ √(aᵢ/vᵢᵀSvᵢ), aᵢ the population's eigenvalue, has the same mean.
    """
    columns = samples[0].shape[1]
    eigenvalues, U = torch.linalg.eigh(mean)
    separation = separate(positive_part(eigenvalues.flip(0)), columns)
    V, a = U.flip(1)[:, : separation.above], eigenvalues.flip(0)[: separation.above]
    values, leading, tops, overlaps = [], [], [], []
    for Y in samples:
        values.append(sample_values(Y)[:rank])
        deviation = (V.T @ Y).square().sum(dim=1) / columns / a
        leading.append(values[-1][: separation.above] / deviation.sqrt().numpy())
        tops.append(_largest(Y - V @ (V.T @ Y)) if separation.above else values[-1][0])
        along = (torch.linalg.eigh(Y @ Y.T).eigenvectors.flip(1)[:, : separation.above] * V).sum(dim=0)
        overlaps.append(along.square().numpy())
    return SampledSpectrum(np.array(values), np.array(leading), np.array(tops), np.array(overlaps), V, separation)


def sample_values(Y: torch.Tensor) -> Reals:
    """Return the singular values of Y/√m in descending order, those of rounding as exact zeros."""
    values = singular_values(Y).numpy() / math.sqrt(Y.shape[1])
    return np.where(values > resolution(len(Y)) * values[0], values, 0.0)


def resolution(size: int) -> float:
    """Return the relative size below which singular values of a matrix with ``size`` rows are rounding."""
    return 10.0 * size * float(torch.finfo(torch.float64).eps)


def positive_part(eigenvalues: torch.Tensor) -> Reals:
    """Return eigenvalues of a positive semidefinite matrix with those of rounding set to exact zeros."""
    rounding = len(eigenvalues) * torch.finfo(torch.float64).eps * float(eigenvalues.abs().max())
    return np.asarray(torch.where(eigenvalues > rounding, eigenvalues, 0.0).numpy(), dtype=np.float64)


def _factor(C: torch.Tensor) -> torch.Tensor:
    """Return L with L Lᵀ = C; rounding may have left C a little indefinite, or all its columns vanish."""
    size = float(C.diagonal().mean())
    if not math.isfinite(size):
        raise ConvergenceError("Gaussian columns: a covariance of theirs is not finite")
    for shift in (0.0, 1e-14, 1e-12):
        factor = torch.linalg.cholesky_ex(C + shift * size * torch.eye(len(C), dtype=C.dtype))
        if int(factor.info) == 0:
            L: torch.Tensor = factor.L
            return L
    eigenvalues, U = torch.linalg.eigh(C)
    if not float(eigenvalues[0]) >= -1e-10 * float(eigenvalues[-1]):
        raise ConvergenceError("Gaussian columns: a covariance of theirs has a negative eigenvalue beyond rounding")
    return torch.mul(U, eigenvalues.clamp(min=0.0).sqrt())


def _largest(Y: torch.Tensor) -> float:
    """Return the largest singular value of Y/√m, as the root of an eigenvalue."""
    return math.sqrt(float(torch.linalg.eigvalsh(Y @ Y.T)[-1]) / Y.shape[1])
