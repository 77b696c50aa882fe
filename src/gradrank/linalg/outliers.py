"""Which population eigenvalues make outliers of a sample covariance matrix, and which belong to its bulk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradrank.linalg.silverstein import SilversteinLaw
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law
from gradrank.linalg.silverstein_equation import Reals

MARGIN = 2.0234  # 99 % quantile of the Tracy-Widom law of real matrices
STANDS_OFF = 0.95  # ψ′ above which the overlap is right to about 0.02 at m ~ 1000


@dataclass(frozen=True, eq=False)
class Separation:
    """Population eigenvalues in descending order, cut into ``count`` outliers and the rest."""

    count: int
    rank: int  # sample eigenvalues that are not zero: the number of positive τ, at most m
    above: int  # eigenvalues in bands above the bulk's: the outliers, and what detaches within the margin
    law: SilversteinLaw  # of the whole population: its bands below the outliers are the bulk
    edge_law: SilversteinLaw  # of the bulk alone, without those that detach but lie within the margin
    population: Reals  # (K,) what was cut
    positions: Reals  # (count,) ψ of each outlier
    overlaps: Reals  # (count,) a ψ′(a)/ψ(a) with all other τ in the sums; not a number where ψ′ ≤ 0.95


def separate(population: Reals, columns: int) -> Separation:
    """Cut a population spectrum into outliers and bulk.

    By exact separation (Bai and Silverstein 1999) every band of Silverstein's law of the whole population holds a whole
    number of eigenvalues. The bulk is the highest band with at least √K of the K positive ones, or the fullest band where
    none has; an outlier is a population eigenvalue a of a higher band with

        ψ(a) = a (1 + (1/m) Σ_bulk τ/(a − τ)) > E + 2.02 s,   ψ′(a) > 0,

    E and s the Tracy-Widom centre and scale of the largest eigenvalue of the bulk: what detaches by less is edge noise. The
    sum runs over the bulk alone: with the other outliers in it, two of them 1 % apart would cancel each other. The
    overlaps of such a pair are withheld.

    The bulk's own eigenvalues are those of the law of the *whole* population below its ``count`` largest: an outlier takes
    a direction away from the columns as well as from the rows, which the law of the bulk alone would not know.

    Parameters
    ----------
    population
        Eigenvalues τ in descending order, at least 0, shape (K,).
    columns
        The number m of columns of the sample.
    """
    whole = SilversteinLaw(population, columns)
    rank = min(int((population > 0).sum()), columns)
    above = _above_bulk(whole, rank)
    bulk = SilversteinLaw(population[above:], columns) if above else whole
    centre, scale = largest_eigenvalue_law(bulk)
    candidates = population[:above]
    positions, slopes = bulk.psi(candidates), bulk.psi_derivative(candidates)
    stands = (candidates > bulk.spike_threshold) & (slopes > 0) & (positions > centre + MARGIN * scale)
    count = above if bool(stands.all()) else int(np.argmin(stands))
    return Separation(
        count, rank, above, whole, bulk, population, positions[:count], _overlaps(population, count, columns)
    )


def _overlaps(population: Reals, count: int, columns: int) -> Reals:
    """Return the squared overlap of each outlier's sample eigenvector with its own in the population; shape (count,).

    a ψ′(a)/ψ(a) = 1 − (1/m) Σ aτ/(a − τ)² to first order, over all other population eigenvalues: between two outliers a
    relative distance δ apart the eigenvectors mix by 1/(m δ²).
    """
    overlaps = np.empty(count)
    for i in range(count):
        a, others = population[i], np.delete(population, i)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = 1.0 - float((others**2 / (a - others) ** 2).sum()) / columns
            value = a * (1.0 + float((others / (a - others)).sum()) / columns)
        overlaps[i] = a * slope / value if slope > STANDS_OFF else np.nan
    return overlaps


def _above_bulk(law: SilversteinLaw, rank: int) -> int:
    """Return the number of eigenvalues above the bulk's band."""
    above = np.rint(law.eigenvalues_above)
    inside = np.append(rank, above[:-1]) - above  # bands from the lowest to the highest
    full = np.flatnonzero(inside >= math.sqrt(rank))
    band = int(full[-1]) if full.size else len(inside) - 1 - int(np.argmax(inside[::-1]))
    return int(above[band])
