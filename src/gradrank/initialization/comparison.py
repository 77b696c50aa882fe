"""Two samples of covariances side by side: Kolmogorov-Smirnov distances with p-values, moments with standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import ks_2samp

from gradrank.foundation.errors import InputError, unusable


@dataclass(frozen=True)
class Compared:
    """One number of the covariance in two samples."""

    name: str
    ks: float
    p_value: float
    critical: float  # 95 % point of the distance between two samples of one law
    means: tuple[float, float]
    errors: tuple[float, float]  # standard errors of the means


def compare(first: Any, second: Any) -> list[Compared]:
    """Compare log V^{αα} of every input and ρ^{αβ} of every pair in two samples (S, p, p) and (S′, p, p).

    Samples that exploded are left out.

    Raises
    ------
    InputError
        If the shapes do not fit, or a sample has fewer than two covariances that are finite.
    """
    first, second = _samples(first), _samples(second)
    if first.ndim != 3 or second.ndim != 3 or first.shape[1:] != second.shape[1:] or first.shape[1] != first.shape[2]:
        raise InputError(
            f"samples: shapes {tuple(first.shape)} and {tuple(second.shape)} are not allowed; give (S, p, p) twice"
        )
    tables = [_numbers(sample) for sample in (first, second)]
    found = []
    for name in tables[0]:
        x, y = tables[0][name], tables[1][name]
        if min(len(x), len(y)) < 2:
            raise InputError("samples: fewer than two finite covariances; give more samples, or a shorter time")
        test = ks_2samp(x, y)
        found.append(
            Compared(
                name,
                float(test.statistic),
                float(test.pvalue),
                1.358 * math.sqrt((len(x) + len(y)) / (len(x) * len(y))),
                (float(x.mean()), float(y.mean())),
                (_error(x), _error(y)),
            )
        )
    return found


def _samples(given: Any) -> torch.Tensor:
    """Return covariances as float64; infinite ones are allowed."""
    array = given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    if array.dtype.kind not in "fiu":
        raise unusable("samples", given, "give tensors of covariances (S, p, p)")
    return torch.from_numpy(array.astype(np.float64))


def _numbers(sample: torch.Tensor) -> dict[str, np.ndarray]:
    V = sample[torch.isfinite(sample).flatten(1).all(dim=1)].cpu().numpy()
    p = V.shape[1]
    found = {f"log V{a + 1}{a + 1}": np.log(V[:, a, a]) for a in range(p)}
    for a in range(p):
        for b in range(a + 1, p):
            found[f"ρ{a + 1}{b + 1}"] = V[:, a, b] / np.sqrt(V[:, a, a] * V[:, b, b])
    return found


def _error(x: np.ndarray) -> float:
    return float(x.std(ddof=1) / math.sqrt(len(x)))
