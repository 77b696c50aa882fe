"""`predict_spectrum`: the singular values of the gradient from inputs and residue, before a weight is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import ks_2samp

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.names import allowed_names
from gradrank.gradient.column_covariance import ColumnCovariances
from gradrank.gradient.concentration import edge_shift
from gradrank.gradient.conditioning import choose_conditioning
from gradrank.gradient.directions import left_directions
from gradrank.gradient.setting import plain_setting, setting_of_draw
from gradrank.gradient.simulated_columns import network_samples
from gradrank.gradient.spectrum_comparison import SpectrumComparison, compare
from gradrank.gradient.split import spike_split
from gradrank.linalg.bulk import BulkLaw, SampledBulk, SilversteinBulk
from gradrank.linalg.gaussian_columns import (
    SampledSpectrum,
    gaussian_samples,
    positive_part,
    resolution,
    sample_values,
    sampled_spectrum,
)
from gradrank.linalg.outliers import MARGIN, separate
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.spectrum import Spectrum
from gradrank.problem.draw import Draw

CONDITIONINGS = ("auto", "none", "population", "realised")
MOVED_EDGE = 1.0  # Tracy-Widom widths that want of concentration may move the edge; below ½ for ordinary networks
SILENT = "activation: σ′ is zero on all samples of all neurons: the gradient has no spectrum"
LEAST_BULK = 20  # values that a bulk has
FAR = 0.01  # distance of Gaussian columns from a simulated network, beyond its own 3/size, that is too much
LEAST_OVERLAP, OVERLAP_ERROR = 0.9, 0.01  # mean and standard error that a simulated overlap must have to be given
INACCURATE = 1e-3  # error of the kernel that is mentioned
SMALL = 50  # min(n, d, m) below which the limit is a rough guide


@dataclass(frozen=True, eq=False)
class Outlier:
    """A singular value predicted above the bulk."""

    value: float
    overlap: float  # ⟨u, v⟩² of the left singular vector with the population's; NaN near the edge
    direction: torch.Tensor  # (d,) the population's eigenvector v
    alignments: Mapping[str, float] = field(default_factory=dict)  # named direction b -> |⟨u, b⟩| = √overlap |⟨v, b⟩|


@dataclass(frozen=True, eq=False)
class SpectrumPrediction:
    """The law of the singular values of the gradient that are not zero."""

    shape: tuple[int, int, int]  # (n, d, m)
    size: int  # singular values that the law is of: those that are not zero
    outliers: tuple[Outlier, ...]  # in descending order
    bulk: BulkLaw
    method: str
    kernel_error: float  # of Φ, relative to its largest entry
    resolution: float  # singular values below this are zero to rounding
    status: str = "ok"
    edge_doubt: str = ""  # why no value can be tested against the edge of the bulk; empty where one can

    @property
    def edges(self) -> list[tuple[float, float]]:
        """The intervals that hold the bulk, increasing."""
        return self.bulk.edges

    @property
    def upper_edge(self) -> float:
        """The upper end of the bulk."""
        return self.bulk.upper_edge

    def density(self, x: ArrayLike) -> Reals:
        """Return the density of the bulk's singular values at x, of mass 1 − outliers/size; the shape of x."""
        return np.asarray(self.bulk.number_density(x) / self.size)

    def cdf(self, x: ArrayLike) -> Reals:
        """Return the distribution function of all ``size`` singular values, outliers as steps; the shape of x."""
        at = np.asarray(x, dtype=np.float64)
        above = self.bulk.above(at) + sum((at < outlier.value).astype(np.float64) for outlier in self.outliers)
        return np.where(np.isnan(at), np.nan, np.where(at < 0, 0.0, np.clip(1.0 - above / self.size, 0.0, 1.0)))

    def edge_p_value(self, x: float) -> float:
        """Return the probability that the largest singular value of the bulk exceeds x (Tracy and Widom)."""
        return self.bulk.p_value(x)

    def compare(self, spectrum: Spectrum | ArrayLike | torch.Tensor) -> SpectrumComparison:
        """Return the distance between the law and measured singular values, and the outliers side by side."""
        return compare(self, spectrum)


def predict_spectrum(
    data: Draw | torch.Tensor,
    *,
    residue: torch.Tensor | None = None,
    activation: object = None,
    scale: float | None = None,
    m: int | None = None,
    conditioning: str = "auto",
    classes: int = 24,
    draws: int = 8,
    seed: int = 0,
) -> SpectrumPrediction:
    """Predict the singular values of the gradient from X and r alone: bulk, edges, outliers and their directions.

    With rows of W independent, N(0, I/d) or uniform on the sphere, and independent of X, the columns of G are independent
    given (X, r) up to an o(1) effect of W on r, with covariance C = (γ/n)² XᵀRΦRX, Φ_ik = E σ′(wᵀxᵢ)σ′(wᵀxₖ): GGᵀ is m
    times a sample covariance matrix, whose eigenvalues follow Silverstein's law of the population mC; a population
    eigenvalue a that stands off the bulk gives the singular value √ψ(a). Nothing is assumed of X. Where one direction q of
    the inputs is so strong that κ = wᵀq changes a column's law (an exponent ν ≥ ½), the columns have covariances C(κ): then
    Gaussian columns with these are simulated, in classes of κ. So are the two classes a = ±1 that a Jacobian penalty or
    weight decay make. Where σ′ saturates on so many samples that the columns scatter (large inputs), networks with fresh
    weights are simulated: ``method`` says so. See docs/prediction.md for the derivation and where it fails. Errors are O(1/n) for
    a distribution function and O(m^(−½)) for an outlier.

    Parameters
    ----------
    data
        A draw, or plain inputs X of shape (n, d).
    residue, activation, scale, m
        For plain inputs: r (n,), σ by name or as a function, γ, and the width.
    conditioning
        "none": Silverstein's law, whatever the columns; ``status`` says where they scatter too much.
        "population": conditioned on κ ~ N(0, 1/d), nothing of W is used. "realised": on the
        κ_j of the draw's own weights. "auto": "population" where κ xᵀq deviates more than 0.8 times as much as w_⊥ᵀx, q the
        first right singular vector of X, else "none". Rows that were aligned with q or made orthogonal to it are always
        conditioned on it.
    classes, draws, seed
        Classes of κ, number of simulated matrices and their seed, where columns are simulated.

    Raises
    ------
    InputError
        If W depends on the data or its law is not covered (given, convolutional), the residue is zero, or an argument
        cannot be used.
    ConvergenceError
        If the kernel of the activation is not accurate.
    """
    if conditioning not in CONDITIONINGS:
        raise unusable("conditioning", conditioning, allowed_names(str(conditioning), CONDITIONINGS))
    for name, value, least in (("classes", classes, 2), ("draws", draws, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise unusable(name, value, f"give a whole number of at least {least}")
    if isinstance(data, Draw):
        setting = setting_of_draw(data, {"residue": residue, "activation": activation, "scale": scale, "m": m})
    else:
        setting = plain_setting(data, residue=residue, activation=activation, scale=scale, m=m)
    n, d = setting.X.shape
    require_memory("inputs", 8.0 * (6 * n * n + 2 * n * d + 4 * min(n, d) ** 2), "give fewer samples")
    chosen = choose_conditioning(setting, conditioning, classes)
    columns = ColumnCovariances(setting, chosen)
    many = len(columns.weights) > 1
    found = _sampled(columns, draws, seed) if many else _by_law(columns, draws, seed, plain=conditioning == "none")
    bulk, outliers = found.bulk, found.outliers
    named = left_directions(data, spike_split(data)) if isinstance(data, Draw) else {}
    return SpectrumPrediction(
        shape=(n, d, setting.m),
        size=found.size,
        outliers=tuple(_aligned(outlier, named) for outlier in outliers),
        bulk=bulk,
        method=found.method if chosen is None else f"{found.method}, conditioned on κ = wᵀq ({chosen.kind})",
        kernel_error=columns.error,
        resolution=resolution(max(n, d)) * max([bulk.upper_edge, *(outlier.value for outlier in outliers)]),
        status=_status(columns, found),
        edge_doubt=found.edge_doubt,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """What a way to the spectrum ends with; see `SpectrumPrediction`."""

    bulk: BulkLaw
    outliers: list[Outlier]
    size: int
    method: str
    scatter: str = ""  # in what the columns are not what the method takes them for

    @property
    def edge_doubt(self) -> str:
        """Why the bulk has no edge to test against, or an empty string."""
        number = float(self.bulk.above(0.0))
        few = f"the predicted bulk has only {number:.0f} values that are not zero: too few for a law"
        return few if number < LEAST_BULK else self.scatter


def _status(columns: ColumnCovariances, found: _Found) -> str:
    """Return "ok", or what the prediction suffers from."""
    reasons = [found.edge_doubt] if found.edge_doubt else []
    if min(*columns.setting.X.shape, columns.setting.m) < SMALL:
        reasons.append(f"min(n, d, m) < {SMALL}: the limit is a rough guide")
    if columns.error > INACCURATE:
        reasons.append(f"kernel: an entry is off by up to {columns.error:.0e} of the largest (rows nearly parallel)")
    return "; ".join(reasons) or "ok"


def _by_law(columns: ColumnCovariances, draws: int, seed: int, *, plain: bool) -> _Found:
    """Return the spectrum by Silverstein's law, or by networks where that is off and the ``plain`` law not asked for."""
    covariance = columns.covariance(0)
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    population, vectors = positive_part(eigenvalues.flip(0)), vectors.flip(1)
    if not bool((population > 0).any()):
        raise InputError(SILENT)
    separation = separate(population, columns.setting.m)
    directions = _in_data_space(vectors[:, : separation.count], columns)
    values = columns.scale * np.sqrt(separation.positions)
    outliers = [
        Outlier(float(value), float(overlap), direction)
        for value, overlap, direction in zip(values, separation.overlaps, directions, strict=True)
    ]
    bulk = SilversteinBulk(separation, columns.scale)
    found = _Found(bulk, outliers, separation.rank, "Silverstein's law")
    if found.edge_doubt or edge_shift(columns, separation, vectors, seed + 1) <= MOVED_EDGE:
        return found
    if plain:
        return replace(found, scatter="the columns scatter too much for Silverstein's law: its edge is too low")
    method = f"{draws} simulated networks (the columns scatter too much for Silverstein's law)"
    return _by_networks(columns, covariance, draws, seed, method)


def _sampled(columns: ColumnCovariances, draws: int, seed: int) -> _Found:
    """Return the spectrum by simulated Gaussian columns of every class, or by networks where the columns are not Gaussian."""
    _require_memory_for_samples(columns, draws)
    mean, samples = gaussian_samples(columns.covariance, columns.weights, columns.setting.m, draws, seed)
    if not bool(mean.any()):
        raise InputError(SILENT)
    sample = sampled_spectrum(mean, samples, columns.rank)
    distance = _distance(sample, network_samples(columns, 1, seed + 1)[0])
    if distance > FAR + 3.0 / columns.rank:
        # Neurons that saturate on most samples: the few that are left do not add up to Gaussian columns.
        method = f"{draws} simulated networks (Gaussian columns are off by a distance of {distance:.2f})"
        return _by_networks(columns, mean, draws, seed, method)
    return _of_sample(sample, columns, f"{draws} simulations of Gaussian columns in {len(columns.weights)} classes")


def _by_networks(columns: ColumnCovariances, mean: torch.Tensor, draws: int, seed: int, method: str) -> _Found:
    """Return the spectrum by simulated networks, whose columns have the mean covariance ``mean``."""
    _require_memory_for_samples(columns, draws)
    samples = network_samples(columns, draws, seed)
    if not any(bool(Y.any()) for Y in samples):
        raise InputError(SILENT)
    sample = sampled_spectrum(mean, samples, columns.rank)
    sample = replace(sample, leading=sample.values[:, : sample.directions.shape[1]])
    found = _of_sample(sample, columns, method)
    # What follows the outliers is the top of the bulk: directions of the mean covariance need not be those of sparse columns.
    count = len(found.outliers)
    tops = replace(sample, bulk_tops=sample.values[:, min(count, columns.rank - 1)])
    return replace(found, bulk=SampledBulk(tops, count, columns.scale))


def _of_sample(sample: SampledSpectrum, columns: ColumnCovariances, method: str) -> _Found:
    """Return the mean of simulated spectra: outliers are those whose mean exceeds the bulk's 99 % quantile."""
    bulk = SampledBulk(sample, 0, 1.0)
    limit = math.sqrt(bulk.centre + MARGIN * bulk.width)
    means = sample.leading.mean(axis=0)
    count = int(np.argmin(np.append(means > limit, False)))
    directions = _in_data_space(sample.directions[:, :count], columns)
    outliers = [
        Outlier(float(columns.scale * value), float(overlap), direction)
        for value, overlap, direction in zip(means, _trusted_overlaps(sample), directions, strict=False)
    ]
    return _Found(SampledBulk(sample, count, columns.scale), outliers, columns.rank, method)


def _require_memory_for_samples(columns: ColumnCovariances, draws: int) -> None:
    m, (n, d) = columns.setting.m, columns.setting.X.shape
    require_memory("m", 8.0 * m * (draws * min(n, d) + 2 * n), "give a smaller width or fewer draws")


def _trusted_overlaps(sample: SampledSpectrum) -> Reals:
    """Return the mean overlaps, not a number near the edge, where they scatter too much for the number of draws."""
    mean = sample.overlaps.mean(axis=0)
    error = sample.overlaps.std(axis=0, ddof=1) / math.sqrt(len(sample.overlaps))
    return np.where((mean > LEAST_OVERLAP) & (error < OVERLAP_ERROR), mean, math.nan)


def _distance(sample: SampledSpectrum, network: torch.Tensor) -> float:
    """Return the Kolmogorov-Smirnov distance of the simulated singular values from those of one network's columns."""
    rank = sample.values.shape[1]
    statistic: float = ks_2samp(sample_values(network)[:rank], sample.values.ravel()).statistic
    return statistic


def _in_data_space(vectors: torch.Tensor, columns: ColumnCovariances) -> torch.Tensor:
    """Return eigenvectors of the reduced covariance as vectors of R^d, shape (count, d)."""
    return (vectors if columns.basis is None else columns.basis @ vectors).T


def _aligned(outlier: Outlier, named: Mapping[str, torch.Tensor]) -> Outlier:
    """Return the outlier with its predicted |cosines| with the named directions."""
    alignments = {}
    for name, direction in named.items():
        b = direction.detach().to("cpu", torch.float64)
        length = float(torch.linalg.vector_norm(b))
        cosine = abs(float(b @ outlier.direction)) / length if length > 0 else math.nan
        alignments[name] = math.sqrt(outlier.overlap) * cosine
    return Outlier(outlier.value, outlier.overlap, outlier.direction, alignments)
