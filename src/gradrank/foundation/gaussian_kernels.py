"""Kernels E f(sᵢ u) g(sₖ u′) of pairs of correlated Gaussian variables, for a whole matrix of pairs at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft
import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.expectations import gaussian_expectation
from gradrank.foundation.smoothing import CUTOFF, Function, gauss_panels, pair_expectation, smoothed

# log(s + OFFSET) is the variable in which the kernel is interpolated: log s for large s, s for small.
OFFSET = 0.25
DEGREES = (6, 9, 13, 19, 28, 41, 60, 88, 128)
CHECKED_PAIRS = 12
# With a break off 0 the table is not smooth in s − s′ as |ρ| → 1: such pairs, unless too many, are integrated one by one.
NEARLY_COLLINEAR, MAX_SINGLE_PAIRS = 0.9, 3000
# Correlations this close to 1 between equal standard deviations are one variable: rounding of a Gram matrix.
SAME = 4e-15


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel matrix and how far it can be trusted."""

    value: torch.Tensor  # (n, n) float64
    error: float  # largest estimated off-diagonal error, relative to the largest √(E f² E g²)
    method: str  # "closed form", "Chebyshev table" or "Hermite series"


def gaussian_kernel(
    f: Function,
    g: Function,
    breaks_f: Sequence[float],
    breaks_g: Sequence[float],
    s: torch.Tensor,
    rho: torch.Tensor,
    tolerance: float = 1e-9,
) -> Kernel:
    """Return K_ik = E f(sᵢ u) g(sₖ u′), u and u′ standard normal of correlation ρ_ik.

    With ρ = |ρ| ± split into the common part c and two independent ones,

        K(s, s′, ±|ρ|) = E_c H_f(s; c) H_g(s′; ±c),  H_f(s; c) = E_a f(s (√|ρ| c + √(1 − |ρ|) a)),

    which needs one-dimensional quadratures only and stays exact where |ρ| → 1 and s is large. K is evaluated at
    Chebyshev nodes in log(s + ¼), log(s′ + ¼) and arcsin ρ, in which it is analytic whatever the kinks and jumps of f
    and g, and interpolated. A Hermite series truncated at 60 terms is off by 56 % at s = 10, ρ = 0.99 for tanh′.

    Parameters
    ----------
    f, g
        Elementwise functions of a float64 tensor, with structure at scale one around 0 and at their breaks.
    breaks_f, breaks_g
        Where f and g have kinks or jumps (`smoothing.find_breaks` finds them).
    s
        Standard deviations, shape (n,), at least 0.
    rho
        Correlations, shape (n, n), symmetric; clamped to [−1, 1]. The diagonal is taken as 1.
    tolerance
        Accuracy of the table relative to the largest √(E f² E g²).

    Returns
    -------
    Kernel
        ``error`` is the larger of the table's truncation and its difference from `smoothing.pair_expectation` over the
        pairs most likely to be wrong, relative to the largest √(E f² E g²). Pairs with |ρ| > 0.9 of functions that break off 0
        are integrated by `smoothing.pair_expectation` themselves, so that for them the error says nothing.

    Raises
    ------
    InputError
        If the shapes do not fit or s is negative or not finite.
    ConvergenceError
        If the table does not reach 1000 times the tolerance.
    """
    s = s.detach().to("cpu", torch.float64)
    n = len(s)
    if tuple(rho.shape) != (n, n) or not bool(((s >= 0) & torch.isfinite(s)).all()):
        raise InputError(f"gaussian_kernel: rho of shape ({n}, {n}) and finite s of at least 0 are needed")
    rho = rho.detach().to("cpu", torch.float64).clamp(-1.0, 1.0)
    value = torch.zeros(n, n, dtype=torch.float64)
    symmetric = f is g
    live = s > 0
    error = 0.0
    if int(live.sum()) > 0:
        live_value, error = _table_kernel(f, g, breaks_f, breaks_g, s[live], rho[live][:, live], tolerance, symmetric)
        value[live[:, None] & live[None, :]] = live_value.flatten()
    if not bool(live.all()):
        _fill_zero_rows(value, f, g, breaks_f, breaks_g, s)
    return Kernel(value, error, "Chebyshev table")


def _fill_zero_rows(
    value: torch.Tensor, f: Function, g: Function, breaks_f: Sequence[float], breaks_g: Sequence[float], s: torch.Tensor
) -> None:
    """Where sᵢ = 0 the argument is 0 for every w: K_ik = f(0) E g(sₖ u′)."""
    zero, origin = s == 0, torch.zeros(1, dtype=torch.float64)
    mean_f = gaussian_expectation(f, s, breaks=breaks_f).value
    mean_g = mean_f if f is g else gaussian_expectation(g, s, breaks=breaks_g).value
    value[zero, :] = f(origin) * mean_g
    value[:, zero] = (mean_f * g(origin))[:, None]


def _table_kernel(
    f: Function,
    g: Function,
    breaks_f: Sequence[float],
    breaks_g: Sequence[float],
    s: torch.Tensor,
    rho: torch.Tensor,
    tolerance: float,
    symmetric: bool,
) -> tuple[torch.Tensor, float]:
    """Interpolate all pairs of positive standard deviations, check the worst, and put the exact diagonal in."""
    same_size = (s[:, None] - s[None, :]).abs() <= SAME * s[:, None]
    same = (rho >= 1 - SAME) & same_size
    same.fill_diagonal_(True)
    exact = gaussian_expectation(
        lambda t: f(t) * g(t), s, breaks=tuple(dict.fromkeys([*breaks_f, *breaks_g])), tolerance=1e-12
    ).value
    if bool(same.all()):
        return torch.diag(exact) if len(s) == 1 else exact[:, None].expand(len(s), -1).clone(), 0.0
    scale = _size(f, g, breaks_f, breaks_g, s, exact, symmetric)
    if scale == 0.0:
        return torch.zeros_like(rho), 0.0
    other = rho.masked_fill(same, 0.0)
    single = _single_pairs(other, (*breaks_f, *breaks_g), symmetric)
    correlation, other = other, other.clone()
    other[single[:, 0], single[:, 1]] = 0.0
    if symmetric:
        other[single[:, 1], single[:, 0]] = 0.0
    theta = torch.arcsin(other)
    table = _Table(f, g, breaks_f, breaks_g, s, float(theta.abs().max()), tolerance * scale, symmetric)
    value = table.at(s, theta)
    for i, k in single.tolist():
        value[i, k] = pair_expectation(f, g, breaks_f, breaks_g, float(s[i]), float(s[k]), float(rho[i, k]))
    if symmetric:
        value = value.triu() + value.triu(1).T
    error = table.tail / scale
    for i, k in _suspects(s, correlation):
        by_conditioning = pair_expectation(f, g, breaks_f, breaks_g, float(s[i]), float(s[k]), float(correlation[i, k]))
        error = max(error, abs(by_conditioning - float(value[i, k])) / scale)
    if error > 1e3 * tolerance:
        raise ConvergenceError(
            f"Gaussian kernel: error {error:.1e} of the diagonal at standard deviations up to {float(s.max()):.3g}; "
            "a function with structure much finer than 1 away from its breaks is not resolved"
        )
    return torch.where(same, (exact[:, None] + exact[None, :]) / 2, value), error


def _size(
    f: Function,
    g: Function,
    breaks_f: Sequence[float],
    breaks_g: Sequence[float],
    s: torch.Tensor,
    exact: torch.Tensor,
    symmetric: bool,
) -> float:
    """Return max √(E f² E g²); E f g itself may vanish by parity."""
    if symmetric:
        return float(exact.abs().max())
    squares = [
        gaussian_expectation(lambda t, h=h: h(t) ** 2, s, breaks=tuple(breaks)).value  # type: ignore[misc]
        for h, breaks in ((f, breaks_f), (g, breaks_g))
    ]
    return float(torch.sqrt(squares[0] * squares[1]).max())


def _single_pairs(rho: torch.Tensor, breaks: tuple[float, ...], symmetric: bool) -> torch.Tensor:
    """Return the nearly collinear pairs (i, k), shape (number, 2), where a break off 0 spoils the table for them."""
    if not any(abs(b) > 1e-3 for b in breaks):
        return torch.empty(0, 2, dtype=torch.long)
    collinear = rho.abs() > NEARLY_COLLINEAR
    pairs = (collinear.triu() if symmetric else collinear).nonzero()
    return pairs if len(pairs) <= MAX_SINGLE_PAIRS else pairs[:0]


def _suspects(s: torch.Tensor, rho: torch.Tensor) -> list[tuple[int, int]]:
    """Return the pairs most likely to be wrong: |ρ| nearest to 1, s√(1 − ρ²) around one, largest s, and some others."""
    n = len(s)
    size = torch.sqrt(s[:, None] * s[None, :])
    off = ~torch.eye(n, dtype=torch.bool)
    across = size * torch.sqrt((1 - rho**2).clamp(min=0))
    criteria = (rho, -rho, size, -size, -(across - 1).abs() + rho.abs())
    pairs = [divmod(int(c.masked_fill(~off, -torch.inf).argmax()), n) for c in criteria]
    generator = np.random.default_rng(0)
    for _ in range(CHECKED_PAIRS - len(pairs)):
        i, k = generator.choice(n, 2, replace=False).tolist()
        pairs.append((i, k))
    return list(dict.fromkeys(pairs))


class _Table:
    """Chebyshev coefficients of K in (log(s + ¼), log(s′ + ¼), arcsin ρ)."""

    def __init__(
        self,
        f: Function,
        g: Function,
        breaks_f: Sequence[float],
        breaks_g: Sequence[float],
        s: torch.Tensor,
        angle: float,
        tolerance: float,
        symmetric: bool,
    ) -> None:
        self.f, self.g = (f, tuple(breaks_f)), (g, tuple(breaks_g))
        self.symmetric = symmetric
        logs = torch.log(s + OFFSET)
        self.centre, self.half = float(logs.min() + logs.max()) / 2, float(logs.max() - logs.min()) / 2
        self.angle = max(angle, 1e-6)
        # A few nodes along the other axes settle the degree along each.
        few_s = self._standard_deviations(np.array([-0.999, 0.0, 0.999]) if self.half > 1e-12 else np.zeros(1))
        q = self._degree(lambda nodes: self._values(few_s, nodes * self.angle), 2, tolerance)
        few_theta = self.angle * np.array([-0.999, 0.0, 0.7, 0.999])
        p = 1
        if self.half > 1e-12:
            p = self._degree(lambda nodes: self._values(self._standard_deviations(nodes), few_theta), 0, tolerance)
        nodes_s = self._standard_deviations(_nodes(p))
        coefficients = self._values(nodes_s, self.angle * _nodes(q))
        for axis in range(3):
            coefficients = _to_coefficients(coefficients, axis)
        self.coefficients = torch.from_numpy(coefficients)
        self.tail = max(_tail(coefficients, axis) for axis in range(3))

    def at(self, s: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
        """Evaluate for all pairs of s, with the angles θ of shape (n, n), by O(n²) memory."""
        x = (
            ((torch.log(s + OFFSET) - self.centre) / self.half).clamp(-1, 1)
            if self.half > 1e-12
            else torch.zeros_like(s)
        )
        basis = torch.from_numpy(np.polynomial.chebyshev.chebvander(x.numpy(), self.coefficients.shape[0] - 1))
        y = (theta / self.angle).clamp_(-1, 1)
        before, now = torch.ones_like(y), y.clone()
        total = torch.zeros_like(y)
        for q in range(self.coefficients.shape[2]):
            total.addcmul_(before, basis @ self.coefficients[:, :, q] @ basis.T)
            before.neg_().addcmul_(y, now, value=2.0)
            before, now = now, before
        return total

    def _standard_deviations(self, nodes: np.ndarray) -> np.ndarray:
        return np.maximum(np.exp(self.centre + self.half * nodes) - OFFSET, 1e-300)

    def _degree(self, values: Callable[[np.ndarray], np.ndarray], axis: int, tolerance: float) -> int:
        """Return the number of nodes at which the coefficients along the axis have fallen below the (absolute) tolerance."""
        for count in DEGREES:
            coefficients = _to_coefficients(values(_nodes(count)), axis)
            size = np.abs(coefficients).max(axis=tuple(a for a in range(3) if a != axis))
            if axis == 0 and not self.symmetric:  # f and g may need different degrees
                other = np.abs(_to_coefficients(values(_nodes(count)), 1)).max(axis=(0, 2))
                size = np.maximum(size, other)
            if size[-2:].max() <= tolerance:
                return int(np.flatnonzero(np.append(True, size[1:] > 0.1 * tolerance))[-1]) + 3
        return DEGREES[-1]

    def _values(self, s: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return K at all (s, s′, θ), shape (p, p, q); ±θ share their one-dimensional smoothings."""
        values = np.empty((len(s), len(s), len(theta)))
        done: dict[float, tuple[np.ndarray, np.ndarray]] = {}
        for j, angle in enumerate(theta.tolist()):
            key = round(abs(angle), 12)
            if key not in done:
                done[key] = self._common_part(s, abs(angle))
            values[:, :, j] = done[key][0 if angle >= 0 else 1]
        return values

    def _common_part(self, s: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Return K at ρ = sin θ and at −sin θ, each (p, p)."""
        apart = 2 * np.sin((np.pi / 2 - angle) / 2) ** 2  # 1 − ρ without cancellation
        along = np.sqrt(1 - apart)
        c, weight = self._common_nodes(s, float(along), float(np.sqrt(apart)))

        def smooth(function: Function, breaks: tuple[float, ...]) -> torch.Tensor:
            return torch.stack(
                [smoothed(function, breaks, t * along * c, t * float(np.sqrt(apart))) for t in s.tolist()]
            )

        h_f = smooth(*self.f)
        h_g = h_f if self.symmetric else smooth(*self.g)
        weighted = h_f * weight
        return (weighted @ h_g.T).numpy(), (weighted @ h_g.flip(1).T).numpy()

    def _common_nodes(self, s: np.ndarray, along: float, across: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return symmetric nodes and weights in c that resolve every s, and the layer of a smoothed break at each s."""
        largest = max(1.0, float(s.max()) * along)
        doublings = 2.0 ** np.arange(0, np.ceil(np.log2(largest)) + 1) / largest
        edges = np.concatenate([np.linspace(0.0, CUTOFF, 10), doublings])
        breaks = np.abs([*self.f[1], *self.g[1]])
        if len(breaks) and across < along:
            width = across / along
            layer = width * np.concatenate([[0.0], 2.0 ** np.arange(0, np.ceil(np.log2(1 / width)) + 1)])
            centres = np.unique(breaks[:, None] / (s * along)[None, :])
            around = np.abs(centres[:, None] + np.concatenate([-layer, layer])[None, :]).ravel()
            edges = np.concatenate([edges, around[around < CUTOFF]])
            edges = _thin(np.sort(edges), 0.4 * width)
        edges = np.unique(edges[edges <= CUTOFF])
        positive = torch.from_numpy(edges)
        c, weight = (a.flatten() for a in gauss_panels(positive[:-1], positive[1:]))
        weight = weight * torch.exp(-(c**2) / 2) / np.sqrt(2 * np.pi)
        return torch.cat([-c.flip(0), c]), torch.cat([weight.flip(0), weight])


def _thin(edges: np.ndarray, gap: float) -> np.ndarray:
    """Drop edges closer than the gap to the one kept before; 0 and the largest stay."""
    kept = [float(edges[0])]
    for edge in edges[1:-1].tolist():
        if edge - kept[-1] >= gap:
            kept.append(edge)
    return np.array([*kept, float(edges[-1])])


def _nodes(count: int) -> np.ndarray:
    return np.asarray(np.cos(np.pi * (np.arange(count) + 0.5) / count))


def _to_coefficients(values: np.ndarray, axis: int) -> np.ndarray:
    """Take values at the Chebyshev nodes of the first kind to coefficients along one axis."""
    coefficients = np.moveaxis(scipy.fft.dct(values, type=2, axis=axis), axis, 0) / values.shape[axis]
    coefficients[0] /= 2
    return np.moveaxis(coefficients, 0, axis)


def _tail(coefficients: np.ndarray, axis: int) -> float:
    """Return the largest of the last two coefficients along the axis; one node alone has no tail."""
    if coefficients.shape[axis] < 3:
        return 0.0
    return float(np.abs(np.moveaxis(coefficients, axis, 0)[-2:]).max())
