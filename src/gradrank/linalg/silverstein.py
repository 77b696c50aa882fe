"""Silverstein's law: the limiting spectrum of a sample covariance matrix with any population spectrum."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from gradrank.foundation.errors import unusable
from gradrank.linalg.silverstein_equation import RESIDUAL, Complexes, Population, Reals, refuse_unsolved
from gradrank.linalg.silverstein_support import Support, height, support

MAX_ITERATIONS = 200
QUANTILE_STEPS = 200
BISECTIONS = 60


class SilversteinLaw:
    """Limiting law of the K eigenvalues of (1/m) Σ_j y_j y_jᵀ, y_j i.i.d. with covariance eigenvalues τ_1 … τ_K.

    The companion Stieltjes transform m̃ is the solution with Im m̃ > 0 for Im z > 0 of

        z = −1/m̃ + (1/m) Σ_k τ_k / (1 + τ_k m̃)          (Silverstein and Bai 1995)

    All work is done in w = −1/m̃, where the equation is z = ψ(w) with the map ψ of the outliers, and in units of the
    largest τ, so that any scale of the population will do. Equal τ are merged.

    Parameters
    ----------
    population
        Eigenvalues τ_k ≥ 0 with repetition, shape (K,); zeros count among the K. Those below 1e-100 of the largest are
        taken as zero.
    columns
        The number m of columns y_j.

    Attributes
    ----------
    population
        The merged eigenvalues and their weights in units of the largest, see `Population`.

    Raises
    ------
    InputError
        If an eigenvalue is negative or not finite, all are zero, or there is no column.
    """

    def __init__(self, population: ArrayLike, columns: int) -> None:
        if isinstance(columns, bool) or not isinstance(columns, (int, np.integer)) or columns < 1:
            raise unusable("columns", columns, "give a whole number of at least 1")
        values = _eigenvalues(population)
        self.size, self.columns = int(values.size), int(columns)
        self.population = Population.of(values, self.columns)
        self._scale = self.population.scale

    @property
    def atom_at_zero(self) -> float:
        """The mass at zero: (K − min(number of positive τ, m)) / K."""
        return (self.size - min(self.population.count, self.columns)) / self.size

    @cached_property
    def edges(self) -> list[tuple[float, float]]:
        """The intervals (lower, upper) of the support, increasing, without the atom at zero.

        Their ends are the critical values of x(m̃) = −1/m̃ + (1/m) Σ τ/(1 + τ m̃) on the real axis (Silverstein and
        Choi 1995, theorems 4.1 and 4.2).
        """
        bands = self._support
        return [(self._scale * float(a), self._scale * float(b)) for a, b in zip(bands.lower, bands.upper, strict=True)]

    @property
    def upper_edge(self) -> float:
        """The upper end of the support."""
        return self.edges[-1][1]

    @property
    def spike_threshold(self) -> float:
        """The value above all τ beyond which ψ′ > 0: a larger population eigenvalue is an outlier, at ψ of it.

        Baik and Silverstein 2006, theorem 1.1, for equal τ; Bai and Yao 2012 for any.
        """
        return self._scale * float(self._support.upper_w[-1])

    @property
    def eigenvalues_above(self) -> Reals:
        """For each band of `edges`, how many eigenvalues lie above it: whole numbers but for rounding; shape (bands,)."""
        return self._support.above * self.columns

    def psi(self, a: ArrayLike) -> Reals:
        """Return ψ(a) = a (1 + (1/m) Σ τ_k/(a − τ_k)), where an outlier a of the population is seen; the shape of a.

        The map of Bai and Yao 2012. Not a number at a = τ_k.
        """
        points = np.asarray(a, dtype=np.float64)
        return np.asarray(self._scale * self.population.psi(points.reshape(-1) / self._scale).reshape(points.shape))

    def psi_derivative(self, a: ArrayLike) -> Reals:
        """Return ψ′(a) = 1 − (1/m) Σ τ_k²/(a − τ_k)²; the shape of a."""
        points = np.asarray(a, dtype=np.float64)
        w = (points.reshape(-1) / self._scale).astype(np.complex128)
        return np.asarray(1.0 - self.population.evaluate(w)[2].reshape(points.shape))

    def overlap(self, a: ArrayLike) -> Reals:
        """Return a ψ′(a)/ψ(a), the squared overlap of an outlier's eigenvector with that of a; the shape of a.

        Paul 2007 for equal τ; Benaych-Georges and Nadakuditi 2011 for any. It holds for ψ′(a) > 0 beyond `spike_threshold`.
        """
        return np.asarray(np.asarray(a, dtype=np.float64) * self.psi_derivative(a) / self.psi(a))

    def companion_stieltjes(
        self, z: ArrayLike, *, start: ArrayLike | None = None, max_iterations: int = MAX_ITERATIONS
    ) -> Complexes:
        """Return m̃(z) for Im z ≥ 0, on the real axis as the limit from above; the shape of z, in 1/units of τ.

        Parameters
        ----------
        z
            Points, any shape.
        start
            First guess of m̃, of the shape of z with Im m̃ > 0; by default taken from the curve over the real axis. The
            root does not depend on it.
        max_iterations
            Most Newton steps.

        Raises
        ------
        InputError
            If Im z < 0, or z = 0 where m̃ has a pole (fewer positive τ than columns) or diverges (as many).
        ConvergenceError
            If a residual stays above 1e-12 relative to the larger of |z| and 1/|m̃|; the message names z.
        """
        points = np.asarray(z, dtype=np.complex128)
        flat = points.reshape(-1)
        wrong = ~np.isfinite(flat) | (flat.imag < 0) | ((flat == 0) & (self.population.count <= self.columns))
        if bool(wrong.any()):
            raise unusable(
                "z", complex(flat[wrong][0]), "give finite points of the upper half plane, or real ones but 0"
            )
        guess = None
        if start is not None:
            guess = -1.0 / np.broadcast_to(np.asarray(start, dtype=np.complex128), points.shape).reshape(-1)
        w = self._solve(flat / self._scale, None if guess is None else guess / self._scale, max_iterations)
        return np.asarray((-1.0 / w / self._scale).reshape(points.shape))

    def density(self, x: ArrayLike) -> Reals:
        """Return the density of the K eigenvalues, (m/K) Im m̃(x + i0)/π, without the atom; the shape of x, in 1/units of τ.

        Zero outside the open intervals of `edges` (Silverstein and Choi 1995, theorem 1.1). Raises ConvergenceError.
        """
        points = np.asarray(x, dtype=np.float64)
        y = points.reshape(-1) / self._scale
        out = np.zeros(len(y))
        _, inside = self._locate(y)
        w = self._solve(y[inside].astype(np.complex128))
        out[inside] = w.imag / np.abs(w) ** 2 * (self.columns / self.size / np.pi / self._scale)
        out[np.isnan(y)] = np.nan
        return out.reshape(points.shape)

    def cdf(self, x: ArrayLike) -> Reals:
        """Return the distribution function of the K eigenvalues, the atom at zero included; the shape of x.

        No integration: m̃ dz has the primitive z m̃ + log m̃ − (1/m) Σ log(1 + τ m̃), whose imaginary part at x + i0 is
        π times the companion law's distribution function. Exact counts in the gaps. Raises ConvergenceError.
        """
        points = np.asarray(x, dtype=np.float64)
        y = points.reshape(-1) / self._scale
        band, inside = self._locate(y)
        tail = np.append(self._support.above, min(self.population.count / self.columns, 1.0))
        # Below band b (above band b − 1) lie the eigenvalues of bands b, b + 1, …: as many as above band b − 1.
        above = np.where(band > 0, tail[band - 1], tail[-1])
        above[inside] = self._above(self._solve(y[inside].astype(np.complex128)), y[inside])
        share = np.clip(1.0 - above * self.columns / self.size, self.atom_at_zero, 1.0)
        share[np.isnan(y)] = np.nan
        return np.where(y < 0, 0.0, share).reshape(points.shape)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the smallest x ≥ 0 with F(x) ≥ p, for 0 ≤ p ≤ 1; the shape of p. Raises InputError for other p."""
        levels = np.asarray(p, dtype=np.float64)
        flat = levels.reshape(-1)
        if not bool(((flat >= 0) & (flat <= 1)).all()):
            raise unusable("p", levels.tolist(), "give probabilities between 0 and 1")
        bands = self._support
        target = (1.0 - flat) * self.size / self.columns  # eigenvalues above, over m
        rounding = 1e-13 * self.size / self.columns
        below_top = target[:, None] >= bands.above - rounding  # (p, b): not above the top of the band
        band = np.argmax(below_top, axis=1)
        x = bands.upper[band].copy()
        inner = np.flatnonzero((target > bands.above[band] + rounding) & (flat > self.atom_at_zero))
        x[inner] = self._invert(target[inner], band[inner])
        return np.where(flat <= self.atom_at_zero, 0.0, self._scale * x).reshape(levels.shape)

    @cached_property
    def _support(self) -> Support:
        return support(self.population)

    @cached_property
    def _curve(self) -> tuple[Reals, Reals]:
        """Nodes (x, s): x increasing on the real axis, s = Re w(x + i0); both of shape (q,)."""
        bands = self._support
        unit = np.sin(np.linspace(0.0, np.pi / 2, 25)) ** 2
        width = bands.upper_w[-1] - bands.lower_w[0]
        away = width * np.logspace(-3, 3, 25)
        nodes = [bands.lower_w[0] - away, bands.upper_w[-1] + away]
        nodes += [a + (b - a) * unit for a, b in zip(bands.lower_w, bands.upper_w, strict=True)]
        nodes += [a + (b - a) * unit for a, b in zip(bands.upper_w[:-1], bands.lower_w[1:], strict=True)]
        tau = self.population.tau
        nodes += [tau[:: max(1, len(tau) // 64)], np.geomspace(tau[0] / 4, 1.0, 48)]
        s = np.unique(np.concatenate(nodes))
        x = self.population.evaluate(s + 1j * height(self.population, s))[0].real
        return np.maximum.accumulate(x), s  # increasing but for rounding

    def _solve(self, z: Complexes, guess: Complexes | None = None, max_iterations: int = MAX_ITERATIONS) -> Complexes:
        """Return w(z) in units of the largest τ; shape (p,)."""
        if not z.size:
            return z
        if guess is None:
            x, s = self._curve
            far = z.real - float((self.population.weight * self.population.tau).sum())
            real = np.where((z.real < x[0]) | (z.real > x[-1]), far, np.interp(z.real, x, s))
            imaginary = z.imag
        else:
            real, imaginary = guess.real, np.maximum(guess.imag, z.imag)
        w, residual = self.population.newton(z, self._start(z, real, imaginary, guess is None), max_iterations)
        for from_above in (False, True):
            bad = np.flatnonzero(~(residual <= RESIDUAL))
            if bad.size and max_iterations >= MAX_ITERATIONS:  # a critical point was in the way
                start = self._start(z[bad], self._bisect(z[bad].real), z[bad].imag, True)
                w[bad], residual[bad] = self.population.newton(z[bad], start + 1j * from_above, max_iterations)
        refuse_unsolved(z, residual, self._scale, max_iterations)
        return w

    def _start(self, z: Complexes, real: Reals, imaginary: Reals, on_axis: bool) -> Complexes:
        """Return the starting values of given real parts, lifted above the curve; on the axis where w(z) is real."""
        lowest = height(self.population, real)
        flat = on_axis & (z.imag == 0) & (lowest == 0) & ~self._locate(z.real)[1]
        return np.asarray(real + 1j * (lowest + np.where(flat, 0.0, imaginary)), dtype=np.complex128)

    def _bisect(self, y: Reals) -> Reals:
        """Return s = Re w(y + i0) by bisection: y increases with s along the curve; shape (p,)."""
        x, s = self._curve
        cell = np.searchsorted(x, y)
        far = y - float((self.population.weight * self.population.tau).sum())
        lo = np.where(cell == 0, far - 1.0, s[np.maximum(cell, 1) - 1])
        hi = np.where(cell == len(s), far + 1.0, s[np.minimum(cell, len(s) - 1)])
        for _ in range(BISECTIONS):
            middle = (lo + hi) / 2.0
            at = self.population.evaluate(middle + 1j * height(self.population, middle))[0].real
            lo, hi = np.where(at < y, middle, lo), np.where(at < y, hi, middle)
        return np.asarray((lo + hi) / 2.0)

    def _locate(self, y: Reals) -> tuple[np.ndarray, np.ndarray]:
        """Return how many bands end at or below each point, and whether it lies inside the next one."""
        bands = self._support
        band = np.searchsorted(bands.upper, y, side="right")
        return band, y > np.append(bands.lower, np.inf)[band]

    def _above(self, w: Complexes, y: Reals) -> Reals:
        """Return the number of eigenvalues above each y over m, from w(y + i0) in the open upper half plane; shape (p,)."""
        angle = np.empty(len(w))
        for part in self.population.blocks(len(w)):
            angles = np.arctan2(w.imag[part, None], w.real[part, None] - self.population.tau)
            angle[part] = angles @ self.population.weight
        own = np.angle(w)
        return np.asarray(
            (own * (1.0 - self.population.weight.sum()) + angle - y * w.imag / np.abs(w) ** 2) / np.pi,
            dtype=np.float64,
        )

    def _invert(self, target: Reals, band: np.ndarray) -> Reals:
        """Return the y inside ``band`` with ``target`` eigenvalues above it, over m: Newton in s = Re w within a bracket."""
        lo, hi = self._support.lower_w[band], self._support.upper_w[band]
        s = (lo + hi) / 2.0
        y = np.empty(len(s))
        active = np.arange(len(s))
        for _ in range(QUANTILE_STEPS):
            if not active.size:
                break
            w = s[active] + 1j * height(self.population, s[active])
            value, slope, _ = self.population.evaluate(w)
            y[active] = value.real
            excess = self._above(w, y[active]) - target[active]
            lo[active] = np.where(excess > 0, s[active], lo[active])
            hi[active] = np.where(excess > 0, hi[active], s[active])
            # Along the curve ψ′ dw is real: dx/ds = |ψ′|²/Re ψ′, and the count falls by Im m̃/π dx.
            with np.errstate(all="ignore"):
                rate = w.imag / np.abs(w) ** 2 / np.pi * np.abs(slope) ** 2 / slope.real
                trial = s[active] + excess / rate
            middle = (lo[active] + hi[active]) / 2.0
            inside = (trial > lo[active]) & (trial < hi[active])
            new = np.where(inside, trial, middle)
            moved = np.abs(new - s[active]) > 4e-16 * np.abs(s[active])
            s[active] = new
            active = active[moved & (np.abs(excess) > 1e-15 * (1.0 + target[active]))]
        return y


def _eigenvalues(population: ArrayLike) -> Reals:
    """Return the population as float64; `Population` checks the values."""
    try:
        values = np.asarray(population)
    except ValueError:
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "fiu":
        raise unusable("population", type(population).__name__, "give real eigenvalues of at least 0")
    return values.astype(np.float64)
