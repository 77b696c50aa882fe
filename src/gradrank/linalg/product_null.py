"""The factor-preserving null: the largest singular value of XᵀOΔ, with the two factors in general position."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import brentq

from gradrank.linalg.products import largest_entry
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.tracy_widom import survival

MAX_STEPS = 200
ROUNDING = float(np.finfo(np.float64).eps)
MARGIN = 2.0234  # 99 % quantile of the Tracy-Widom law
SMALLEST_Y, LARGEST_Y = 1e-9, 1e9


@dataclass(frozen=True, eq=False)
class ProductNull:
    """Law of σ₁ of X_Bᵀ O Δ_B, O uniform on the orthogonal group: both bulks as they are, neither knowing the other."""

    centre: float  # of σ₁², Tracy-Widom
    width: float  # of σ₁², Tracy-Widom
    upper_edge: float  # of the singular values
    outliers: tuple[int, int]  # singular values of X and of Δ taken as their own outliers
    rank: int  # of the bulk that has the smaller one; nothing can be said of a few values
    unit: float  # σ is in units of this

    def p_value(self, x: float) -> float:
        """Return the probability that σ₁ exceeds x."""
        return float(survival(((x / self.unit) ** 2 - self.centre) / self.width))


def product_null(X: torch.Tensor, signal: torch.Tensor) -> ProductNull:
    """Return the law of the largest singular value of XᵀΔ where inputs and signals have nothing to do with each other.

    With a_i and b_i the eigenvalues of XXᵀ and ΔΔᵀ (n of each, zeros included) and O a uniform orthogonal matrix, the
    eigenvalues of XᵀOΔΔᵀOᵀX follow the free multiplicative convolution of both spectra (Voiculescu 1987). In y > 0, with
    α and β from

        (1/n) Σ a_i/(α − a_i) = y,      (1/n) Σ b_i/(β − b_i) = y,      x(y) = α β y/(1 + y),

    x falls to the upper edge E at y₀ and y = ∫ t/(x − t) dμ(t). The density's square root there gives the scale, and
    the edge is regular (Ding and Ji 2023):

        scale  = (E² x″/(2n²))^(1/3),      centre = E + (E/n) [½ (α″/α′ + β″/β′) + 1/y₀ − x‴/(6x″)]

    for σ₁², in the real case. The term of order 1/n is ours: the mean of a linear statistic over real O adds
    ½ d/dy log(α′β′y²/x′) to n log x at fixed y. It turns into the centring of `largest_eigenvalue_law` where a is
    a Marchenko-Pastur spectrum that varies, and vanishes for b = 1; simulated in the tests.

    Two steps make the factors fit for it.

    * Eigenvalues a > α(y₀) or b > β(y₀) are the factors' own outliers: XᵀOΔ would have an outlier for each. Those whose
      outlier stands off the edge are taken out of the factors, so that the edge is that of the two bulks, and no strong
      spike casts a shadow on a weaker one.
    * Rows of the bulk of X are then divided by their lengths, which go to the rows of Δ: XᵀΔ stays as it is, pairs of long
      inputs and strong signals stay pairs, and the eigenvectors of XXᵀ no longer sit on some of the rows. That is what
      random signs of the rows, XᵀDΔ, keep as well, and for rows of equal length the two laws agree.

    Parameters
    ----------
    X, signal
        Shapes (n, d) and (n, m), finite.
    """
    x_scale, s_scale = largest_entry(X) or 1.0, largest_entry(signal) or 1.0
    unit = x_scale * s_scale
    inputs, signals = X.double() / x_scale, signal.double() / s_scale
    present = (inputs != 0).any(dim=1) & (signals != 0).any(dim=1)  # the other rows add nothing to XᵀΔ
    inputs, signals, n = inputs[present], signals[present], int(present.sum())
    if n == 0:
        return ProductNull(math.nan, math.nan, math.nan, (0, 0), 0, unit)
    first, _ = _separate(gram_eigenvalues(inputs), gram_eigenvalues(signals), n)
    inputs, signals = _without_top(inputs, first[0]), _without_top(signals, first[1])
    lengths = torch.linalg.vector_norm(inputs, dim=1, keepdim=True)
    signals = signals * lengths
    size = _lengths(signals)
    if size <= ROUNDING * float(lengths.max()):
        return ProductNull(math.nan, math.nan, math.nan, first, 0, unit)
    inputs = torch.where(lengths > 0, inputs / lengths, 0.0)
    a, b = gram_eigenvalues(inputs), gram_eigenvalues(signals / size)
    then, law = _separate(a, b, n)
    unit *= size
    outliers = (first[0] + then[0], first[1] + then[1])
    rank = min(len(a) - then[0], len(b) - then[1])
    return ProductNull(law.centre, law.width, unit * math.sqrt(law.edge), outliers, rank, unit)


def gram_eigenvalues(factor: torch.Tensor) -> Reals:
    """Return the non-zero eigenvalues of F Fᵀ in descending order, at most min(n, columns) of them."""
    values = torch.linalg.eigvalsh(_gram(factor)).flip(0).cpu().numpy()
    return np.asarray(values[values > max(factor.shape) * ROUNDING * values[0]], dtype=np.float64)


def _gram(factor: torch.Tensor) -> torch.Tensor:
    """Return the smaller one of F Fᵀ and FᵀF."""
    return factor @ factor.T if factor.shape[0] <= factor.shape[1] else factor.T @ factor


def _lengths(factor: torch.Tensor) -> float:
    """Return the root mean square length of the rows."""
    return float(torch.linalg.vector_norm(factor)) / math.sqrt(len(factor))


def _without_top(factor: torch.Tensor, count: int) -> torch.Tensor:
    """Return the matrix without its ``count`` largest singular triplets."""
    if not count:
        return factor
    top: torch.Tensor = torch.linalg.eigh(_gram(factor)).eigenvectors[:, -count:]
    if factor.shape[0] <= factor.shape[1]:
        return factor - top @ (top.T @ factor)
    return factor - (factor @ top) @ top.T


@dataclass(frozen=True)
class Edge:
    """Upper edge of a free multiplicative convolution, with the Tracy-Widom law of the largest eigenvalue there."""

    edge: float
    alpha: float  # an eigenvalue of either factor beyond these makes an outlier
    beta: float
    centre: float
    width: float


def product_edge(a: Reals, b: Reals, n: int) -> Edge:
    """Return the edge of the law of A^½ O B Oᵀ A^½ for positive eigenvalues a, b of A and B, filled up to n with zeros."""

    def slope(log_y: float) -> float:
        """Return y · d log x/dy: negative below y₀."""
        y = math.exp(log_y)
        one, two = _inverse(a, y, n), _inverse(b, y, n)
        return 1.0 / (1.0 + y) + y * (one[1] / one[0] + two[1] / two[0])

    lo = math.log(SMALLEST_Y)
    grid = np.linspace(lo, math.log(LARGEST_Y), 121)
    at = next((i for i in range(1, len(grid)) if slope(grid[i]) > 0.0), len(grid) - 1)
    y = math.exp(brentq(slope, grid[at - 1], grid[at], xtol=1e-14, rtol=1e-14))
    (alpha, a1, a2, a3), (beta, b1, b2, b3) = _inverse(a, y, n), _inverse(b, y, n)
    edge = alpha * beta * y / (1.0 + y)
    # Derivatives of log x; the first is zero.
    second = _second_log(alpha, a1, a2) + _second_log(beta, b1, b2) - 1.0 / y**2 + 1.0 / (1.0 + y) ** 2
    third = _third_log(alpha, a1, a2, a3) + _third_log(beta, b1, b2, b3) + 2.0 / y**3 - 2.0 / (1.0 + y) ** 3
    # x″ = x (log x)″ and x‴ = x (log x)‴ where (log x)′ = 0.
    width = (edge**3 * second / (2.0 * n**2)) ** (1 / 3)
    shift = edge / n * ((a2 / a1 + b2 / b1) / 2.0 + 1.0 / y - third / (6.0 * second))
    return Edge(edge, alpha, beta, edge + shift, width)


def _separate(a: Reals, b: Reals, n: int) -> tuple[tuple[int, int], Edge]:
    """Leave out the largest eigenvalues of either factor that make an outlier; return how many, and the edge of the rest.

    From the bulk without its √n largest of either factor upwards: what stands off by less than the edge's own
    fluctuation joins the bulk, until nothing does. The other way round two equal outliers would hide each other.
    """
    skip = (min(math.isqrt(n), len(a) - 1), min(math.isqrt(n), len(b) - 1))
    while True:
        bulk_a, bulk_b = a[skip[0] :], b[skip[1] :]
        law = product_edge(bulk_a, bulk_b, n)
        fewer = (
            _standing(a[: skip[0]], law.alpha, bulk_a, bulk_b, n, law),
            _standing(b[: skip[1]], law.beta, bulk_b, bulk_a, n, law),
        )
        if fewer == skip:
            return skip, law
        skip = fewer


def _standing(candidates: Reals, threshold: float, own: Reals, other: Reals, n: int, law: Edge) -> int:
    """Return how many leading eigenvalues of one factor put an outlier above the fluctuations of the edge.

    α = a gives y, and the outlier lies at x(y) (Belinschi, Bercovici, Capitaine and Février 2017).
    """
    for index, value in enumerate(candidates):
        if value <= threshold:
            return index
        y = float((own / (value - own)).sum()) / n
        if value * _inverse(other, y, n)[0] * y / (1.0 + y) <= law.centre + MARGIN * law.width:
            return index
    return len(candidates)


def _inverse(values: Reals, y: float, n: int) -> tuple[float, float, float, float]:
    """Return α > max a with (1/n) Σ a/(α − a) = y, and its first three derivatives by y."""
    top = float(values[0])
    low, high = top / (n * y), float(values.sum()) / (n * y)  # of α − a₁
    gap = low
    distance = top - values
    for _ in range(MAX_STEPS):
        inverse = 1.0 / (gap + distance)
        value = float(values @ inverse) / n
        # Newton for 1/Σ, which is concave and increasing in α: monotone from below.
        step = (value / y - 1.0) * value / (float(values @ inverse**2) / n)
        gap = min(max(gap + step, low), high)
        if abs(step) <= 1e-15 * (top + gap) or abs(step) <= 1e-14 * gap:
            break
    inverse = 1.0 / (gap + distance)
    p2, p3, p4 = (float(values @ inverse**k) / n for k in (2, 3, 4))
    first = -1.0 / p2
    second = 2.0 * p3 * first**2 / p2
    third = (-6.0 * p4 * first**3 + 6.0 * p3 * first * second) / p2
    return top + gap, first, second, third


def _second_log(f: float, f1: float, f2: float) -> float:
    return f2 / f - (f1 / f) ** 2


def _third_log(f: float, f1: float, f2: float, f3: float) -> float:
    return f3 / f - 3.0 * f1 * f2 / f**2 + 2.0 * (f1 / f) ** 3
