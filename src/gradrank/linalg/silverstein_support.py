"""The support of Silverstein's law: its exact edges, and the curve w(x + i0) above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradrank.linalg.silverstein_equation import Population, Reals

MAX_STEPS = 100
CONVERGED = 4e-16


@dataclass(frozen=True, eq=False)
class Support:
    """Bands of the support: in w = −1/m̃ on the real axis, in x = ψ(w), and how many eigenvalues lie in and above.

    An edge is a real critical point of x(m̃) = −1/m̃ + (1/m) Σ τ/(1 + τ m̃), that is Σ a_k/(w − τ_k)² = 1 (Silverstein
    and Choi 1995, theorems 4.1 and 4.2). By exact separation a band holds as many eigenvalues as there are τ between
    its ends in w, except the lowest one, which holds at most m less those above it.
    """

    lower_w: Reals  # (b,), increasing
    upper_w: Reals  # (b,)
    lower: Reals  # (b,) ψ(lower_w)
    upper: Reals  # (b,) ψ(upper_w)
    above: Reals  # (b,) eigenvalues above the band, over m


def support(population: Population) -> Support:
    """Find all bands: from every pole τ to both sides, where a gap can open."""
    tau, a = population.tau, population.a
    reach = np.sqrt(a)  # the own term of a pole alone keeps Σ a/(w − τ)² ≥ 1 up to here
    gap = np.flatnonzero(tau[:-1] + reach[:-1] < tau[1:] - reach[1:])
    left, right = _gaps(population, (tau + reach)[gap], (tau - reach)[gap + 1])
    open_ = left < right
    left, right = left[open_], right[open_]
    outer = _critical(population, np.array([tau[0] - reach[0], tau[-1] + reach[-1]]), np.array([-1.0, 1.0]))
    if np.isclose(population.weight.sum(), 1.0, rtol=1e-14, atol=0.0):
        outer[0] = 0.0  # as many eigenvalues as columns: the density reaches down to zero
    lower_w, upper_w = np.append(outer[0], right), np.append(left, outer[1])
    lower, upper = population.psi(lower_w), population.psi(upper_w)
    lower[0] = lower[0] if lower[0] > 0 else 0.0
    apart = upper[:-1] < lower[1:]  # a gap lost in rounding is none
    first, last = np.append(True, apart), np.append(apart, True)
    tail = np.append(np.cumsum(population.weight[::-1])[::-1], 0.0)
    above = tail[np.searchsorted(tau, upper_w[last])]
    return Support(lower_w[first], upper_w[last], lower[first], upper[last], above)


def height(population: Population, s: Reals) -> Reals:
    """Return t ≥ 0 with Σ a/((s − τ)² + t²) = 1, or 0 where the sum stays below one: w = s + i t lies over real x.

    1/Σ a/((s − τ)² + u) is concave in u = t², so Newton's iteration for it grows monotonically to the root. Shape (p,).
    """
    a, t = population.a, np.zeros(len(s))
    for part in population.blocks(len(s)):
        squares = (s[part, None] - population.tau) ** 2
        u = np.maximum((a - squares).max(axis=1), 0.0)
        active = np.arange(len(u))
        for _ in range(MAX_STEPS):
            with np.errstate(all="ignore"):
                inverse = 1.0 / (squares[active] + u[active, None])
                G, H = inverse @ a, (inverse * inverse) @ a
                step = np.where(G > 1.0, (G * G - G) / H, 0.0)
            u[active] += step
            active = active[step > CONVERGED * u[active]]
            if not active.size:
                break
        t[part] = np.sqrt(u)
    return t


def _critical(population: Population, s: Reals, side: Reals) -> Reals:
    """Return the roots of Σ a/(s − τ)² = 1 next to the outermost poles, outwards (``side`` −1 or 1) from ``s``."""
    s = s.copy()
    for _ in range(MAX_STEPS):
        step = _newton(population, s)
        s += np.where(side * step > 0, step, 0.0)
        if bool((side * step <= CONVERGED * np.abs(s)).all()):
            break
    return s


def _gaps(population: Population, left: Reals, right: Reals) -> tuple[Reals, Reals]:
    """Move both ends of every gap between two poles inwards to the critical points; a gap that is none ends crossed.

    (Σ a/(s − τ)²)^(−1/2) is a power mean of linear functions, concave between two poles: Newton's iteration for it from
    either side is monotone and stops at the root, or runs past the other side's where there is none.
    """
    left, right = left.copy(), right.copy()
    active = np.arange(len(left))
    for _ in range(MAX_STEPS):
        if not active.size:
            break
        up, down = _newton(population, left[active]), _newton(population, right[active])
        # On the far side of the maximum the step turns round although the root was not passed: no root there.
        crossed = (up < -1e-9 * left[active]) | (down > 1e-9 * right[active])
        left[active] += np.maximum(up, 0.0)
        right[active] += np.minimum(down, 0.0)
        crossed |= left[active] >= right[active]
        left[active[crossed]] = right[active[crossed]]
        small = (up <= CONVERGED * left[active]) & (-down <= CONVERGED * right[active])
        active = active[~crossed & ~small]
    left[active] = right[active]  # still creeping: the two critical points coincide
    return left, right


def _newton(population: Population, s: Reals) -> Reals:
    """Return Newton's step for (Σ a/(s − τ)²)^(−1/2) = 1; shape (p,)."""
    a, step = population.a, np.empty(len(s))
    for part in population.blocks(len(s)):
        inverse = 1.0 / (s[part, None] - population.tau)
        squares = inverse * inverse
        G, T = squares @ a, (squares * inverse) @ a
        step[part] = (G * np.sqrt(G) - G) / T
    return step
