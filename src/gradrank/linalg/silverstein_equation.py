"""Silverstein's equation ψ(w) = z for w = −1/m̃, solved for all z at once by a damped Newton iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradrank.foundation.errors import ConvergenceError, unusable

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

RESIDUAL = 1e-12  # largest residual, relative to the larger of |z| and |w|
ROUNDING = 1e-15  # at this relative residual an iteration stops
OFF_THE_CURVE = 1e-4  # what rounding may add to 1 there at a solution
OUTSIDE = 0.1  # how far beyond 1 the sum a/|w − τ|² may go on the way to a point of the real axis
SAME = 1e-14  # eigenvalues closer than this, relatively, are one
NEGLIGIBLE = 1e-100  # eigenvalues below this share of the largest are zero: their squares would leave the number range
BLOCK = 2**17  # elements of one block of points × eigenvalues: fits the cache


@dataclass(frozen=True, eq=False)
class Population:
    """Distinct positive population eigenvalues, divided by the largest, with their weights.

    In w = −1/m̃ Silverstein's equation reads z = ψ(w) = w (1 + Σ c_k τ_k/(w − τ_k)), c_k = multiplicity / m. The
    imaginary part Im ψ = Im w · (1 − Σ a_k/|w − τ_k|²), a_k = c_k τ_k², is positive on a domain Ω above the graph of a
    function of Re w, and ψ is one-to-one from Ω onto the upper half plane.
    """

    tau: Reals  # (u,), increasing, the last is 1
    weight: Reals  # (u,) c_k = multiplicity / m
    count: int  # positive eigenvalues, with repetition
    scale: float  # the largest eigenvalue

    @classmethod
    def of(cls, values: Reals, columns: int) -> Population:
        """Merge equal eigenvalues and drop the zeros; raises InputError where there is none, or one below zero."""
        values = np.sort(np.asarray(values, dtype=np.float64).reshape(-1))
        if not values.size or not np.isfinite(values).all() or values[0] < 0 or values[-1] <= 0:
            shown = float(values[0]) if values.size and not values[0] >= 0 else values.tolist()[-3:]
            raise unusable("population", shown, "give finite eigenvalues of at least 0, one of them positive")
        scale = float(values[-1])
        tau = values / scale
        tau = tau[tau > NEGLIGIBLE]
        first = np.flatnonzero(np.diff(tau, prepend=-1.0) > SAME * tau)
        multiplicity = np.diff(first, append=len(tau))
        mean = np.add.reduceat(tau, first) / multiplicity
        mean[multiplicity == 1] = tau[first[multiplicity == 1]]
        return cls(tau=mean, weight=multiplicity / columns, count=len(tau), scale=scale)

    @property
    def a(self) -> Reals:
        """The weights a_k = c_k τ_k² of the poles of ψ; shape (u,)."""
        return self.weight * self.tau**2

    def blocks(self, points: int) -> Iterator[slice]:
        """Yield slices of the points, small enough for points × eigenvalues to stay in the cache."""
        size = max(1, BLOCK // len(self.tau))
        return (slice(start, start + size) for start in range(0, points, size))

    def evaluate(self, w: Complexes) -> tuple[Complexes, Complexes, Reals]:
        """Return ψ(w), ψ′(w) = 1 − Σ a/(w − τ)² and Σ a/|w − τ|², each of the shape (p,) of ``w``."""
        value, slope, size = np.empty_like(w), np.empty_like(w), np.empty(len(w))
        first, a = (self.weight * self.tau).astype(np.complex128), self.a
        with np.errstate(all="ignore"):
            for part in self.blocks(len(w)):
                inverse = 1.0 / (w[part, None] - self.tau)
                value[part] = w[part] * (1.0 + inverse @ first)
                real, imaginary = inverse.real, inverse.imag
                squares, mixed = real * real, imaginary * imaginary
                size[part] = (squares + mixed) @ a
                slope[part] = 1.0 - ((squares - mixed) @ a + 2j * ((real * imaginary) @ a))
        return value, slope, size

    def psi(self, a: Reals) -> Reals:
        """Return ψ(a) for real a off the poles; shape (p,)."""
        return self.evaluate(a.astype(np.complex128))[0].real

    def newton(self, z: Complexes, start: Complexes, max_iterations: int) -> tuple[Complexes, Reals]:
        """Return solutions w of ψ(w) = z in the closure of Ω from starting values there, and residuals; shapes (p,).

        The Newton flow dw/dt = −(ψ(w) − z)/ψ′(w) moves ψ(w) on the straight line to z, which stays in the upper half
        plane: w stays in Ω and ends at the one root there. Newton's steps follow it, halved until they do. Residuals are
        relative to the larger of |z| and |w|, infinite where w is not in the closure of Ω.
        """
        w = start.copy()
        value, slope, size = self.evaluate(w)
        damping = np.ones(len(z))
        active = np.arange(len(z))
        for _ in range(max_iterations):
            error = np.abs(value[active] - z[active])
            settled = (error <= ROUNDING * np.maximum(np.abs(z[active]), np.abs(w[active]))) | (damping[active] < 1e-9)
            active, error = active[~settled], error[~settled]
            if not active.size:
                break
            with np.errstate(all="ignore"):
                trial = w[active] - damping[active] * (value[active] - z[active]) / slope[active]
            new = self.evaluate(trial)
            better = np.abs(new[0] - z[active]) <= (1.0 - damping[active] / 4.0) * error
            inside = np.where(w[active].imag > 0, trial.imag > 0, trial.imag == 0) & (new[2] <= 1.0 + OUTSIDE)
            ok = better & inside
            moved = active[ok]
            w[moved], value[moved], slope[moved], size[moved] = trial[ok], new[0][ok], new[1][ok], new[2][ok]
            damping[active] = np.where(ok, np.minimum(1.0, 2.0 * damping[active]), damping[active] / 4.0)
        residual = np.abs(value - z) / np.maximum(np.maximum(np.abs(z), np.abs(w)), np.finfo(np.float64).tiny)
        return w, np.where((residual >= 0) & (size <= 1.0 + OFF_THE_CURVE), residual, np.inf)


def refuse_unsolved(z: Complexes, residual: Reals, scale: float, max_iterations: int) -> None:
    """Raise ConvergenceError, naming the first z (times ``scale``) and its residual, where one is above `RESIDUAL`."""
    bad = np.flatnonzero(~(residual <= RESIDUAL))
    if bad.size:
        raise ConvergenceError(
            f"Silverstein's equation: not solved at z = {complex(z[bad[0]]) * scale:.6g} ({bad.size} of {len(z)} points; "
            f"relative residual {residual[bad[0]]:.1e} after at most {max_iterations} steps)"
        )
