"""`estimate_exponents`: the spike exponent ν and the decay exponent α of a data matrix, with standard errors."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gradrank.foundation.errors import InputError
from gradrank.linalg.power_law import LEVEL, PowerLawFit, fit_power_law
from gradrank.linalg.small import singular_values
from gradrank.linalg.spike_strength import strength_without_model

FEWEST = 30  # eigenvalues, below which errors of order 1/n are no longer small
TOLD_APART = 3.0  # standard errors that a spike's strength must exceed zero by
PLAIN_ENDS = (50, 100, 200)
CONVENTION = (
    "X is not centred. nu = ln(zeta)/ln(n) for X = X_B + zeta z q^T with z of unit variance; nu_a = nu + 1/2 is that of z of "
    "norm one. nu depends on n and on the scale of X, alpha does not"
)
PLAIN_CONVENTION = "minus the least-squares slope of ln(lambda_k) on ln(k - 1): biased, for comparison only"
RANDOM = "the largest eigenvalue through the fitted power law, q in general position"
LEADING = "the largest eigenvalue through the fitted power law, q along its first eigenvector"
ANY_BULK = "the largest eigenvalue through the other eigenvalues: the bulk is not taken as a power law"


@dataclass(frozen=True)
class PlainSlope:
    """The slope of the sample eigenvalues as the paper takes it: not an estimate of the population's α."""

    alpha: float
    error: float  # of the regression, as if eigenvalues scattered independently
    k_range: tuple[int, int]  # first and last k, counted from the largest eigenvalue, k = 1


@dataclass(frozen=True)
class Goodness:
    """Test of the fitted power law: the statistic is χ² with ``freedom`` degrees if the population is of that form."""

    statistic: float
    freedom: int
    p_value: float
    level: float = LEVEL  # below which α is withheld


@dataclass(frozen=True)
class Exponents:
    """ν and α of a data matrix; what is withheld is None, with the reason in ``status``."""

    n: int
    d: int
    status: dict[str, str]  # "nu" and "alpha": "ok", or why there is none
    nu: float | None = None
    nu_error: float | None = None  # standard error
    nu_a: float | None = None  # ν + ½
    nu_source: str | None = None
    alpha: float | None = None
    alpha_error: float | None = None  # standard error
    fitted_alpha: float | None = None  # of the best power law, whether or not it fits
    fitted_alpha_error: float | None = None
    k_range: tuple[int, int] | None = None  # of the sample eigenvalues that belong to the power law
    goodness: Goodness | None = None
    plain: tuple[PlainSlope, ...] = ()
    plain_nu_a: float | None = None  # ln(σ₁)/ln(n)
    convention: str = CONVENTION
    plain_convention: str = PLAIN_CONVENTION

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        return {name: _listed(value) for name, value in asdict(self).items()}


def estimate_exponents(X: ArrayLike | torch.Tensor) -> Exponents:
    """Estimate ν and α of X = X_B + ζ z qᵀ, ζ = n^ν, with rows of X_B of covariance eigenvalues c k^(−α), k = 1 … d.

    The spectrum of a sample is not that of its population. The population is fitted through Silverstein's law to the
    traces tr S(S + t)⁻¹ of S = XᵀX/n, whose covariance is known (Bai and Silverstein 2004): see `fit_power_law`. With a =
    ψ⁻¹(λ₁) the population eigenvalue of the largest one, 1/ζ² = qᵀ(a − Σ̂)⁻¹q, q in general position (LRG, section 2, for
    the exponents). Errors hold for Gaussian rows; for a light-tailed entry distribution they are roughly right, for
    heavy tails or rows of very different norms they are too small. q and the basis of X_B need not be known.

    α is withheld where a power law does not fit at the 1 % level ("not a power law"), where it cannot be told from
    zero ("flat"), for fewer than 30 eigenvalues ("too few eigenvalues"), and for a matrix without full rank. ν is
    withheld where the largest eigenvalue does not stand off the bulk ("no spike"); where no power law fits, it comes
    from the other eigenvalues. Errors cover what the sample cannot tell: whether a weak spike lies inside the bulk, and
    whether q is along the bulk's first eigenvector (below a few hundred rows the 95 % interval of α then holds it in 99 %
    of samples for a general q, in 90 % for that one).

    At hundreds of rows the test rejects a lognormal population of logarithmic width ½; one of width 0.2 passes for a
    power law of α ≈ 0.17.

    Parameters
    ----------
    X
        Data, shape (n, d), a row per sample.

    Raises
    ------
    InputError
        If X is not a real, finite matrix with at least 2 rows and 2 columns.
    """
    matrix = _matrix(X)
    n, d = matrix.shape
    exponent = int(np.frexp(np.abs(matrix).max())[1])  # powers of two neither round nor overflow
    sigma = singular_values(torch.from_numpy(np.ldexp(matrix, -exponent))).numpy()
    log_unit = exponent * math.log(2.0)
    rank = int((sigma > max(n, d) * np.finfo(np.float64).eps * sigma[0]).sum())
    if rank == 0:
        return Exponents(n, d, dict.fromkeys(("nu", "alpha"), "X is zero"))
    values = sigma**2 / n
    fit = fit_power_law(values, n, d) if rank == len(values) >= FEWEST else None
    alpha_status = _alpha_status(fit, rank, len(values))
    nu, nu_error, source, nu_status = _nu(fit, values, n, d, log_unit)
    alpha, alpha_error = (None, None) if fit is None else (fit.alpha, fit.alpha_error)
    return Exponents(
        n=n,
        d=d,
        status={"nu": nu_status, "alpha": alpha_status},
        nu=nu,
        nu_error=nu_error,
        nu_a=None if nu is None else nu + 0.5,
        nu_source=source,
        alpha=alpha if alpha_status == "ok" else None,
        alpha_error=alpha_error if alpha_status == "ok" else None,
        fitted_alpha=alpha,
        fitted_alpha_error=alpha_error,
        k_range=None if fit is None else (1 if nu is None else 2, len(values)),
        goodness=None if fit is None else Goodness(fit.statistic, fit.freedom, fit.p_value),
        plain=_plain(values[:rank]),
        plain_nu_a=(math.log(sigma[0]) + log_unit) / math.log(n),
    )


def _matrix(X: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
    """Return X in float64, or say what is wrong with it."""
    if isinstance(X, torch.Tensor):
        dense = X.detach().to_dense() if X.layout != torch.strided else X.detach()
        array = (dense.double() if dense.is_floating_point() else dense).cpu().numpy()
    else:
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths
            raise InputError("X: is not a matrix of numbers; give rows of one length") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"X: entries of type {array.dtype} are not allowed; give real numbers")
    if array.ndim != 2 or min(array.shape) < 2:
        raise InputError(f"X: the shape {array.shape} is not allowed; give at least 2 rows and 2 columns")
    matrix = array.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InputError(f"X: {int((~np.isfinite(matrix)).sum())} entries are NaN or infinite; give finite numbers")
    return matrix


def _alpha_status(fit: PowerLawFit | None, rank: int, count: int) -> str:
    if rank < FEWEST:
        return f"too few eigenvalues: {rank} are not zero, {FEWEST} are needed"
    if fit is None:
        return f"not a power law: the rank is {rank}, less than min(n, d) = {count}"
    if not fit.fits:
        return f"not a power law: p = {fit.p_value:.1e}"
    if fit.flat:
        return "flat: no decay to be told from zero"
    return "ok"


def _nu(
    fit: PowerLawFit | None, values: NDArray[np.float64], n: int, d: int, log_unit: float
) -> tuple[float | None, float | None, str | None, str]:
    """Return ν, its error, where it comes from and its status."""
    if n < FEWEST:
        return None, None, None, f"too few rows: {n}, {FEWEST} are needed"
    if fit is not None and fit.fits:
        found = (fit.spike, fit.spike_error) if fit.kind in ("outlier", "leading") else None
        source = LEADING if fit.kind == "leading" else RANDOM
    else:
        found, source = strength_without_model(values, n, d), ANY_BULK
    if found is None:
        hidden = fit is not None and fit.fits and fit.kind == "hidden"
        within = "; the traces fit better with one inside the bulk" if hidden else ""
        return None, None, None, f"no spike: the largest eigenvalue does not stand off the bulk{within}"
    strength, error = found
    if not strength > TOLD_APART * error:
        reason = f"no spike: its strength is {strength / error:.1f} standard errors, {TOLD_APART:g} are needed"
        return None, None, None, reason
    nu = (math.log(strength) / 2.0 + log_unit) / math.log(n)
    return nu, error / (2.0 * strength * math.log(n)), source, "ok"


def _plain(values: NDArray[np.float64]) -> tuple[PlainSlope, ...]:
    """Return the slopes from k = 2 to 50, 100, 200 and the last eigenvalue, as far as there are as many."""
    ends = [end for end in (*PLAIN_ENDS, len(values)) if 4 <= end <= len(values)]
    slopes = []
    for end in dict.fromkeys(ends):
        x, y = np.log(np.arange(1.0, end)), np.log(values[1:end])
        x, y = x - x.mean(), y - y.mean()
        slope = float(x @ y / (x @ x))
        residual = y - slope * x
        error = math.sqrt(float(residual @ residual) / (len(x) - 2) / float(x @ x))
        slopes.append(PlainSlope(-slope, error, (2, end)))
    return tuple(slopes)


def _listed(value: Any) -> Any:
    """Return tuples as lists, and numbers that are not finite as None."""
    if isinstance(value, dict):
        return {name: _listed(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_listed(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
