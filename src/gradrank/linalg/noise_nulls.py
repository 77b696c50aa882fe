"""The i.i.d.-entries null: the singular values of a matrix of independent noise, and the scale of that noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from scipy.optimize import brentq
from scipy.stats import chi2

from gradrank.linalg.marchenko_pastur import MarchenkoPastur
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.tracy_widom import MEAN, VARIANCE, survival

LOWER_SHARE = 0.75  # of the eigenvalues, from below, that the scale of the noise is taken from
SHARES = (0.25, 0.5, 0.75)  # of the eigenvalues, from below, whose scales are compared
NODES = 100
TERMS = 512  # of a Chebyshev series


@dataclass(frozen=True, eq=False)
class NoiseTest:
    """The largest of some singular values against the law of the largest one of a noise matrix."""

    p_value: float
    edge: float  # upper end of the noise's singular values
    scale: float  # σ̂ of an entry


def largest_of_noise(values: Reals, longer: int) -> NoiseTest:
    """Test the largest singular value of an N×M matrix, N ≥ M, as that of i.i.d. entries of variance σ².

    Under the null, with N₋ = N − ½ and M₋ = M − ½,

        x = (σ₁²/σ² − c)/s,   c = (√N₋ + √M₋)²,   s = (√N₋ + √M₋)(N₋^(−½) + M₋^(−½))^(1/3)

    follows the Tracy-Widom law (Johnstone 2001; with these constants, to order N^(−2/3), Ma 2012): Gaussian entries or any
    independent ones with a fourth moment. The edge is (√N + √M) σ̂.

    σ̂² is the mean of the lowest three quarters of the eigenvalues over its expectation, see `lowest_mean`. It is as blind as the
    median to spikes that are fewer than a quarter of the values, and fluctuates half as much: with the median 1.35 % false
    alarms are raised at the level of 1 % (800×800 and 1000×200, 1500 draws). What it does fluctuate is added to the
    variance of x, less what it shares with σ₁²; that matters below M = 100.

    Parameters
    ----------
    values
        The M singular values in descending order, of any scale whose squares are in the number range.
    longer
        The number N.
    """
    M, N = len(values), longer
    eigenvalues = values[::-1] ** 2
    count = max(1, int(LOWER_SHARE * M))
    mean, excess = lowest_mean(MarchenkoPastur(M / N), count, M)
    variance = float(eigenvalues[:count].sum()) / (N * M * mean)
    if variance <= 0.0:
        return NoiseTest(math.nan, math.nan, 0.0)
    root_n, root_m = math.sqrt(N - 0.5), math.sqrt(M - 0.5)
    centre = (root_n + root_m) ** 2
    width = (root_n + root_m) * (1 / root_n + 1 / root_m) ** (1 / 3)
    x = (float(eigenvalues[-1]) / variance - centre) / width
    widening = 1.0 + excess * (centre / width) ** 2 / VARIANCE
    p = float(survival(MEAN + (x - MEAN) / math.sqrt(widening)))
    return NoiseTest(p, (math.sqrt(N) + math.sqrt(M)) * math.sqrt(variance), math.sqrt(variance))


def marchenko_pastur_quantile(law: MarchenkoPastur, p: float) -> float:
    """Return x with F(x) = p for a Marchenko-Pastur law of aspect at most 1."""
    lower, upper = law.edges[0]
    if p <= 0.0 or p >= 1.0:
        return lower if p <= 0.0 else upper
    return float(brentq(lambda x: float(law.cdf(x)) - p, lower, upper, xtol=1e-15 * upper))


def lowest_mean(law: MarchenkoPastur, count: int, size: int) -> tuple[float, float]:
    """Return the mean of L = Σ λ/size over the ``count`` smallest of ``size`` eigenvalues, and what 1/L adds to Var log λ₁/L.

    L is Σ f(λ)/size with f = min(λ − q, 0), q the quantile, plus a constant. Its mean is ∫^q x dF(x), and what the
    law of real matrices adds to the number of eigenvalues at order one: ¼ at both edges and −½ in the arcsine law between
    them. Var Σ f(λ) = ½ Σ k f_k² with the Chebyshev coefficients f_k of f on the support (a, b) (Bai and Silverstein
    2004). Tilting the law by exp(t Σ f(λ)) moves its edge by t Cov(λ₁, Σ f), in proportion to ∫ f′ √((x − a)/(b − x)) dx;
    f = x gives the constant: 2b/N for λ = eigenvalue/N. The second result is Var(L)/E(L)² − 2 Cov(λ₁, L)/(b E(L)).
    """
    lower, upper = law.edges[0]
    q = marchenko_pastur_quantile(law, count / size)
    points, weights = np.polynomial.legendre.leggauss(NODES)
    # x = a + (b − a) sin²θ removes the square roots of both edges, and makes the arcsine law uniform in θ.
    top = math.asin(math.sqrt(min(1.0, (q - lower) / (upper - lower))))
    theta = top * (points + 1.0) / 2.0
    x = lower + (upper - lower) * np.sin(theta) ** 2
    mass = law.density(x) * (upper - lower) * np.sin(2.0 * theta)
    leading = top / 2.0 * float(weights @ (x * mass))
    arcsine = top / np.pi * float(weights @ (x - q))
    mean = leading + ((lower - q) / 4.0 - arcsine / 2.0) / size
    coefficients = _chebyshev(law, q)
    variance = _covariance(coefficients, coefficients) / size**2
    covariance = 4.0 / np.pi * (top - math.sin(2.0 * top) / 2.0) * law.aspect / size**2  # over b
    return mean, variance / mean**2 - 2.0 * covariance / mean


def _chebyshev(law: MarchenkoPastur, q: float) -> Reals:
    """Return the Chebyshev coefficients f_k of min(λ − q, 0) on the support."""
    lower, upper = law.edges[0]
    angle = np.pi * (np.arange(TERMS) + 0.5) / TERMS
    f = np.minimum((lower + upper) / 2.0 + (upper - lower) / 2.0 * np.cos(angle) - q, 0.0)
    return np.asarray(scipy.fft.dct(f) / TERMS)


def _covariance(f: Reals, g: Reals) -> float:
    """Return Cov(Σ f(λ), Σ g(λ)) = ½ Σ k f_k g_k of a real sample covariance matrix (Bai and Silverstein 2004)."""
    return float((np.arange(TERMS) * f * g).sum()) / 2.0


def shape_of_noise(values: Reals, longer: int) -> float:
    """Return the p-value of the shape of the lower three quarters of the eigenvalues, whatever their scale.

    Under the null the sums L_c of the lowest quarter, half and three quarters of the eigenvalues, over their expectations
    (`lowest_mean`), agree up to fluctuations of known covariance; the two logarithmic ratios give a χ² with 2 degrees of
    freedom. Eigenvalues are rigid, so that it sees what a distance of distributions does not: neighbouring columns
    correlated by 0.3 at 200×100 are rejected at 1e-4 always, by 0.2 three times in ten. Entries with a fourth moment far
    from the Gaussian one shift it: of Student's t with 5 degrees of freedom 3 to 20 per cent fall below 0.01.

    Parameters
    ----------
    values
        The M singular values in descending order, without outliers.
    longer
        The number N ≥ M.
    """
    M, law = len(values), MarchenkoPastur(len(values) / longer)
    counts = [max(1, int(share * M)) for share in SHARES]
    means = np.array([lowest_mean(law, count, M)[0] for count in counts])
    eigenvalues = values[::-1] ** 2
    sums = np.array([float(eigenvalues[:count].sum()) / (longer * M) for count in counts])
    if not bool((sums > 0.0).all()):
        return 0.0
    series = [_chebyshev(law, marchenko_pastur_quantile(law, count / M)) for count in counts]
    covariance = np.array([[_covariance(f, g) for g in series] for f in series]) / M**2 / np.outer(means, means)
    ratios = np.log(sums / means)
    contrast = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    difference = contrast @ ratios
    return float(chi2.sf(difference @ np.linalg.solve(contrast @ covariance @ contrast.T, difference), 2))


def distance_from_noise(values: Reals, longer: int, scale: float) -> float:
    """Return the Kolmogorov-Smirnov distance of squared singular values from Marchenko and Pastur's law of that scale."""
    M = len(values)
    F = MarchenkoPastur(M / longer).cdf(np.sort(values**2) / (longer * scale**2))
    steps = np.arange(M + 1) / M
    return float(max(np.abs(F - steps[:-1]).max(), np.abs(F - steps[1:]).max()))


def rank_deficient(values: Reals, longer: int, scale: float, rounding: float) -> bool:
    """Return whether more singular values vanish to the precision of the entries than noise of this scale explains.

    Entries rounded to ``rounding`` add singular values up to (√N + √M) times their root mean square error. Of square
    noise, a share 2x/(πσ√M) lies below x = o(σ√M).
    """
    M = len(values)
    rms = float(np.sqrt((values**2).sum() / (longer * M)))
    floor = rounding * rms * (math.sqrt(longer) + math.sqrt(M)) + 8.0 * np.finfo(np.float64).eps * float(values[0])
    vanishing = int((values <= floor).sum())
    expected = M * 2.0 * floor / (math.pi * scale * math.sqrt(longer)) if scale > 0.0 else 0.0
    # Where half of them vanish the scale itself is rounding, and explains nothing.
    return scale == 0.0 or vanishing > min(3.0 * expected + 0.5, M / 2.0)
