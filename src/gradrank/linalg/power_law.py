"""A population spectrum c k^(−α), with one spike or none, fitted to the eigenvalues of a sample covariance matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import unusable
from gradrank.linalg.silverstein_equation import Reals
from gradrank.linalg.spike_strength import Outlier, find_outlier, stands_off, strength_along_random
from gradrank.linalg.trace_statistics import TraceStatistics, traces

POINTS = 8  # values of t
COMPONENTS = 6  # principal components of the traces that are fitted, at most
RESOLVED = 1e-11  # variance of a component, over the first one's, below which it is rounding
BEYOND = 4.0  # how far t goes beyond the bulk's eigenvalues on both sides
ALPHAS = (0.05, 0.15, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # to start from
STEPS = 60
SETTLED = 0.1  # standard errors of a step, below which the weights stay
CONVERGED = 1e-7  # standard errors of the last step
ROUNDING = 1e-10
DIFFERENCE = 1e-4
FADED = math.log(0.1)  # the log s/c of a hidden spike below which it is none
FAR = 6.0  # of |log s/c| or |α|: there is nothing to be found further out
HIDDEN_SPIKE = 4.0  # by how much a hidden spike must lower the deviance to weigh as much as none
LEADING = 2.0  # the same for a spike along the first eigenvector
LEVEL = 0.01  # of the test of fit
FLAT = 3.0  # standard errors of α² within which it may be zero


@dataclass(frozen=True)
class PowerLawFit:
    """The fitted population: eigenvalues c k^(−α), k = 1 … d, and a rank-one term s q qᵀ, in the units of the data."""

    scale: float  # c
    alpha: float
    alpha_error: float  # standard error
    spike: float  # s; 0 for none
    spike_error: float  # standard error; not a number where there is none
    kind: str  # "none", "hidden" (only the traces see it), "outlier", or "leading" (an outlier with q = e₁)
    statistic: float  # weighted sum of squares of the traces
    freedom: int  # its degrees of freedom

    @property
    def p_value(self) -> float:
        """The probability of a worse fit where the population is of this form."""
        return float(chi2.sf(self.statistic, self.freedom))

    @property
    def fits(self) -> bool:
        """Whether the form is not rejected at the 1 % level."""
        return self.p_value >= LEVEL

    @property
    def flat(self) -> bool:
        """Whether α² is within three standard errors 2α·error of 0; near 0 the spectrum depends on α through α² alone."""
        return not self.alpha > 2.0 * FLAT * self.alpha_error


def fit_power_law(eigenvalues: Reals, rows: int, dimension: int) -> PowerLawFit:
    """Fit c k^(−α), k = 1 … d, and a spike to the eigenvalues of S = XᵀX/n, through Silverstein's law.

    The statistics are D(t_j) = tr S(S + t_j)⁻¹ at eight t. Their expectation under the law and their covariance (of
    order one: eigenvalues are rigid) are known in closed form, see `TraceStatistics`. c and α are the generalised least
    squares estimates over the six leading principal components (fewer where the others are rounding), with errors from the
    same covariance; the sum of squares left over is χ² with 4 degrees of freedom (3 where s is fitted to the traces), up to
    order 1/n.

    λ₁ is an outlier where it stands off the power law, see `stands_off`; s follows from λ₁, with q uniform on the sphere
    or along the first eigenvector. Traces whose s follows from the same sample's λ₁ scatter less: with m(λ₁) their mean,
    Cov(D − m) = Cov D − V (f m′ᵀ + m′fᵀ) + V m′m′ᵀ, where V = Var λ₁ and V f = Cov(D, λ₁), f = t/(λ₁ + t)².

    Otherwise there is no spike, or one within the bulk, whose s is fitted to the traces: it moves them by more than their
    scatter. The first eigenvalue of a steep power law stands off too, so that no spike is weighed against either kind. The
    second of a pair needs a deviance lower by 2 or 4 to weigh as much as the first; α is the mean with these weights, and
    its error covers both where the sample cannot tell which it is.

    Parameters
    ----------
    eigenvalues
        The min(n, d) largest eigenvalues of S, descending, positive; shape (k,). The last twentieth may be zero, or negative
        by rounding, max(n, d) ε λ₁, as a solver returns the smallest ones: they do not move the traces.
    rows, dimension
        n and d. The covariance is that of Gaussian rows.

    Raises
    ------
    InputError
        If eigenvalues are missing, not finite, not positive or not descending.
    """
    values = real_array("eigenvalues", eigenvalues, "all min(n, d) of them, positive and descending")
    if values.shape != (min(rows, dimension),) or len(values) < 2 or not _positive(values, max(rows, dimension)):
        raise unusable("eigenvalues", values.tolist()[-3:], "give all min(n, d) of them, positive and descending")
    values = np.maximum(values, 0.0)
    unit = float(values[1:].mean())
    fit = _Fitter(values / unit, rows, dimension).best()
    return replace(fit, scale=fit.scale * unit, spike=fit.spike * unit, spike_error=fit.spike_error * unit)


def _positive(values: Reals, size: int) -> bool:
    """Tell whether eigenvalues descend and are positive, but for rounding in the last twentieth."""
    rounding = size * np.finfo(np.float64).eps * values[0]
    certain = np.quantile(values[1:], 0.05, method="lower") > 0
    descending = (np.diff(values) <= rounding).all()
    return bool(certain and descending and (values >= -rounding).all())


class _Fitter:
    """The traces of one sample, in units of its bulk, and the fits of the four kinds of population to them."""

    def __init__(self, values: Reals, n: int, d: int) -> None:
        self.n, self.d = n, d
        self.largest, self.bulk = float(values[0]), float(values[1:].sum())
        self.t = np.geomspace(float(np.quantile(values[1:], 0.05)) / BEYOND, float(values[1]) * BEYOND, POINTS)
        self.traces = traces(values, self.t)
        log_k = np.log(np.arange(1.0, d + 1.0))
        self.log_k = log_k - log_k.mean()  # makes the two parameters nearly independent

    def best(self) -> PowerLawFit:
        """Choose the kind of population, or weigh those that it may be."""
        none, p = self._fit("none", self._start("none"))
        outlier = self._standing_off()
        if outlier is not None:
            spiked, with_outlier = outlier
            return _weighed(none, spiked, self._gain(("none", p), with_outlier, given_largest=False) - HIDDEN_SPIKE)
        hidden, with_spike = self._fit("hidden", np.append(p, 0.0))
        if with_spike[2] < FADED:
            return none
        return _weighed(
            none, hidden, self._gain(("none", p), ("hidden", with_spike), given_largest=False) - HIDDEN_SPIKE
        )

    def _standing_off(self) -> tuple[PowerLawFit, tuple[str, Reals]] | None:
        """Return the fit with λ₁ as an outlier, and its kind and parameters; None where λ₁ does not stand off."""
        generic, p = self._fit("outlier", self._start("outlier"))
        tau = self._power_law(p)
        outlier = find_outlier(self.largest, tau, self.n)
        if outlier is None or not stands_off(outlier, self.largest, tau, self.n):
            return None
        s, error = strength_along_random(outlier, tau)
        generic = replace(generic, spike=s, spike_error=error)
        leading, other = self._fit("leading", p)
        tau = self._power_law(other)
        outlier = find_outlier(self.largest, tau[1:], self.n)
        if outlier is None:
            return generic, ("outlier", p)
        leading = replace(leading, spike=outlier.position - float(tau[0]), spike_error=outlier.error)
        gain = self._gain(("outlier", p), ("leading", other), given_largest=True) - LEADING
        return _weighed(generic, leading, gain), ("leading", other) if gain > 0.0 else ("outlier", p)

    def _power_law(self, p: Reals) -> Reals:
        return np.asarray(np.exp(p[0] - abs(p[1]) * self.log_k))  # k^|α| would be a power law too, but a rising one

    def _statistics(self, kind: str, p: Reals, largest: float | None = None) -> TraceStatistics:
        """Return the law of the traces for the parameters: log of the geometric mean of τ, α, log s/c of a hidden spike.

        An outlier's s is the one that puts it at ``largest``, by default λ₁.
        """
        tau = self._power_law(p)
        s = float(tau[0]) * math.exp(p[2]) if kind == "hidden" else 0.0
        outlier = self._outlier(kind, tau, largest)
        if outlier is not None and kind == "outlier":
            s = strength_along_random(outlier, tau)[0]
        if outlier is not None and kind == "leading":
            tau = np.append(outlier.position, tau[1:])
        return TraceStatistics(tau, s, self.n, self.t)

    def _outlier(self, kind: str, tau: Reals, largest: float | None = None) -> Outlier | None:
        if kind not in ("outlier", "leading"):
            return None
        return find_outlier(self.largest if largest is None else largest, tau if kind == "outlier" else tau[1:], self.n)

    def _covariance(self, kind: str, p: Reals, statistics: TraceStatistics) -> Reals:
        """Return the covariance of the traces minus their mean, which follows λ₁ where that is an outlier; shape (J, J)."""
        outlier = self._outlier(kind, self._power_law(p))
        if outlier is None:
            return statistics.covariance
        h = DIFFERENCE * self.largest
        above, below = (self._statistics(kind, p, largest=self.largest + step).mean for step in (h, -h))
        mean = (above - below) / (2.0 * h)
        trace = self.t / (self.largest + self.t) ** 2
        both = np.outer(trace, mean)
        variance = (outlier.error * outlier.slope) ** 2
        return np.asarray(statistics.covariance + variance * (np.outer(mean, mean) - both - both.T))

    def _start(self, kind: str) -> Reals:
        """Return the best of a few α, each with the c that the trace of the bulk asks for."""
        candidates = [np.array([0.0, alpha]) for alpha in ALPHAS]
        for p in candidates:
            p[0] = math.log(self.bulk / float(self._power_law(p).sum()))
        return min(candidates, key=lambda p: self._deviance(kind, p))

    def _fit(self, kind: str, p: Reals) -> tuple[PowerLawFit, Reals]:
        """Return the generalised least squares fit from the start p, by Levenberg and Marquardt, and its parameters.

        The weights are those of the present p until a step is small; the last ones are kept until the end.
        """
        damping, weigh = 1e-3, True
        for _ in range(STEPS):
            if weigh:
                whiten = self._whitening(self._covariance(kind, p, self._statistics(kind, p)))
                residual = self._residual(kind, p, whiten)
            jacobian = self._jacobian(kind, p, whiten)
            information = jacobian.T @ jacobian
            inverse = np.linalg.pinv(information + damping * np.diag(np.diag(information)))
            step = np.clip(inverse @ (jacobian.T @ residual), -1.0, 1.0)
            error = np.sqrt(np.diag(np.linalg.pinv(information)))
            if not bool((error > 0.0).all()):  # the traces do not move with a parameter: there is nothing to be fitted
                break
            trial = self._residual(kind, p + step, whiten)
            if float(trial @ trial) > float(residual @ residual) * (1.0 + ROUNDING):
                damping *= 10.0
                continue
            p, residual, damping = p + step, trial, damping / 10.0
            size = float((np.abs(step) / error).max())
            weigh = weigh and size > SETTLED
            if size < CONVERGED or abs(float(p[-1])) > FAR:
                break
        s = self._statistics(kind, p).rank_one
        spike, spike_error = (s, s * float(error[2])) if kind == "hidden" else (0.0, math.nan)
        scale, freedom = float(self._power_law(p)[0]), len(residual) - len(p)
        statistic = float(residual @ residual)
        return PowerLawFit(scale, abs(float(p[1])), float(error[1]), spike, spike_error, kind, statistic, freedom), p

    def _residual(self, kind: str, p: Reals, whiten: Reals) -> Reals:
        return np.asarray(whiten @ (self.traces - self._statistics(kind, p).mean))

    def _jacobian(self, kind: str, p: Reals, whiten: Reals) -> Reals:
        """Return the derivatives of the mean by central differences: whitening amplifies the rounding of smaller steps."""
        columns = [
            (self._residual(kind, p - h, whiten) - self._residual(kind, p + h, whiten)) / (2.0 * DIFFERENCE)
            for h in DIFFERENCE * np.eye(len(p))
        ]
        return np.stack(columns, axis=1)

    def _whitening(self, covariance: Reals) -> Reals:
        vectors, values = _leading_components(covariance)
        return np.asarray((vectors / np.sqrt(values)).T)

    def _deviance(self, kind: str, p: Reals, basis: Reals | None = None, *, given_largest: bool = True) -> float:
        """Return −2 log likelihood of the traces, up to a constant, in the components ``basis`` (J, c).

        It is that of the traces given λ₁, or of all of them, for a spike whose strength follows λ₁.
        """
        statistics = self._statistics(kind, p)
        covariance = self._covariance(kind, p, statistics) if given_largest else statistics.covariance
        if basis is None:
            basis = _leading_components(covariance)[0]
        residual = basis.T @ (self.traces - statistics.mean)
        covariance = basis.T @ covariance @ basis
        return float(residual @ np.linalg.solve(covariance, residual) + np.linalg.slogdet(covariance)[1])

    def _gain(self, first: tuple[str, Reals], second: tuple[str, Reals], *, given_largest: bool) -> float:
        """Return how much lower the deviance of the second fit is, in the components of the first."""
        kind, p = first
        statistics = self._statistics(kind, p)
        covariance = self._covariance(kind, p, statistics) if given_largest else statistics.covariance
        basis = _leading_components(covariance)[0]
        before = self._deviance(*first, basis, given_largest=given_largest)
        return before - self._deviance(*second, basis, given_largest=given_largest)


def _leading_components(covariance: Reals) -> tuple[Reals, Reals]:
    """Return the leading eigenvectors, shape (J, c), and eigenvalues, (c,): at most six, those that rounding leaves."""
    values, vectors = np.linalg.eigh(covariance)
    kept = max(3, min(COMPONENTS, int((values > RESOLVED * values[-1]).sum())))
    return np.asarray(vectors[:, -kept:]), np.maximum(values[-kept:], RESOLVED * values[-1])


def _weighed(first: PowerLawFit, second: PowerLawFit, gain: float) -> PowerLawFit:
    """Return the better of two fits with the weighted mean of both for α and s, odds e^(gain/2) for the second.

    The squared error of a mean is that of its terms plus their squared distances from it: where the sample cannot tell the
    two apart, the error covers both.
    """
    weight = 1.0 / (1.0 + math.exp(min(-gain / 2.0, 700.0)))
    better = second if weight > 0.5 else first

    def mean(a: float, a_error: float, b: float, b_error: float) -> tuple[float, float]:
        variance = (1.0 - weight) * a_error**2 + weight * b_error**2 + weight * (1.0 - weight) * (a - b) ** 2
        return (1.0 - weight) * a + weight * b, math.sqrt(variance)

    alpha, alpha_error = mean(first.alpha, first.alpha_error, second.alpha, second.alpha_error)
    if first.kind == "none":
        return replace(better, alpha=alpha, alpha_error=alpha_error)
    spike, spike_error = mean(first.spike, first.spike_error, second.spike, second.spike_error)
    return replace(better, alpha=alpha, alpha_error=alpha_error, spike=spike, spike_error=spike_error)
