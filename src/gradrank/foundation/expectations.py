"""Expectations of a function of one Gaussian variable, right for kinks, jumps and any standard deviation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.special
import torch

from gradrank.foundation.errors import ConvergenceError

# Beyond 12 standard deviations the Gaussian weight is below 1e-32: less than rounding for any function that grows
# slower than exp(g²/4).
CUTOFF = 12.0
MAX_BISECTIONS = 60
MAX_PANELS = 2_000_000
# More standard deviations than this are interpolated from Chebyshev nodes, where that needs fewer evaluations.
DIRECT_LIMIT = 33


@dataclass(frozen=True, eq=False)
class Expectation:
    """Values of E f(s g), g ~ N(0, 1), with a bound on the error of each."""

    value: torch.Tensor  # (k,) float64, one for each standard deviation
    error: torch.Tensor  # (k,) float64, estimated absolute error
    method: str  # "closed form" or "adaptive Gauss-Kronrod"


def gaussian_expectation(
    f: Callable[[torch.Tensor], torch.Tensor],
    std: torch.Tensor,
    *,
    breaks: Sequence[float] = (),
    tolerance: float = 1e-12,
) -> Expectation:
    """Return E f(s g) for g ~ N(0, 1) and every standard deviation s in ``std``.

    Adaptive Gauss-Kronrod quadrature (21 nodes with the embedded 10-node Gauss rule as the error estimate; Laurie 1997)
    over panels that resolve both scales, the unit scale of f and the scale s of its argument: f has its structure near
    0, so the panels in t = s g start at 1/8 and double. Fixed Gauss-Hermite rules miss a feature of width 1 when s is
    large; these do not. All panels of all s are evaluated together, and those whose error is too large are halved.

    Parameters
    ----------
    f
        Function of a float64 tensor, applied elementwise.
    std
        Standard deviations, shape (k,), each at least 0.
    breaks
        Arguments t at which f has a kink or a jump. Unknown ones are found by bisection, at a higher cost.
    tolerance
        Largest estimated error, relative to max(1, E|f|).

    Raises
    ------
    ConvergenceError
        If the tolerance is not reached, or f is not finite somewhere; the message names the standard deviation.
    """
    s = std.detach().to("cpu", torch.float64).reshape(-1)
    if not bool(torch.isfinite(s).all()):
        raise ConvergenceError(
            "Gaussian expectation: a standard deviation is not finite; the weights or inputs are too large"
        )
    if s.numel() > DIRECT_LIMIT and bool((s > 0).all()):
        interpolated = _interpolate(lambda nodes: _adaptive(f, nodes, breaks, tolerance), s, tolerance)
        if interpolated is not None:
            return interpolated
    return _adaptive(f, s, breaks, tolerance)


def _interpolate(exact: Callable[[torch.Tensor], Expectation], s: torch.Tensor, tolerance: float) -> Expectation | None:
    """Interpolate the expectation in log s by a Chebyshev series, or return None where the direct way is cheaper.

    E f(s g) = ∫ f(t) φ(t/s)/s dt is analytic in s for Re s² > 0, whatever the kinks and jumps of f, so the series in
    log s converges geometrically. The sum of the last quarter of its coefficients is added to the error.
    """
    log_s = torch.log(s)
    lo, hi = float(log_s.min()), float(log_s.max())
    if hi - lo < 1e-14:
        one = exact(s[:1])
        return Expectation(one.value.expand(len(s)).clone(), one.error.expand(len(s)).clone(), one.method)
    degree = 16
    while degree + 1 < len(s):
        nodes = np.cos(np.pi * np.arange(degree + 1) / degree)
        at_nodes = exact(torch.exp(torch.from_numpy((lo + hi) / 2 + (hi - lo) / 2 * nodes)))
        coefficients = scipy.fft.dct(at_nodes.value.numpy(), type=1) / degree
        coefficients[[0, -1]] /= 2
        tail = float(np.abs(coefficients[-(degree // 4) :]).sum())
        if tail <= tolerance * max(1.0, float(np.abs(coefficients).max())):
            x = np.clip((2 * log_s.numpy() - lo - hi) / (hi - lo), -1.0, 1.0)
            value = torch.from_numpy(np.polynomial.chebyshev.chebval(x, coefficients))
            return Expectation(value, torch.full_like(s, float(at_nodes.error.max()) + tail), at_nodes.method)
        degree *= 2
    return None


def _adaptive(
    f: Callable[[torch.Tensor], torch.Tensor], s: torch.Tensor, breaks: Sequence[float], tolerance: float
) -> Expectation:
    """Integrate for every standard deviation by itself; see `gaussian_expectation`."""
    owner, lo, hi = _initial_panels(s, breaks)
    value, error, size = torch.zeros_like(s), torch.zeros_like(s), torch.zeros_like(s)
    for _ in range(MAX_BISECTIONS):
        integral, estimate, absolute = _panel_integrals(f, s[owner], lo, hi)
        if not bool(torch.isfinite(integral).all()):
            bad = float(s[owner[~torch.isfinite(integral)][0]])
            raise ConvergenceError(f"Gaussian expectation: the function is not finite at standard deviation {bad:.3g}")
        scale = (size + torch.zeros_like(s).index_add_(0, owner, absolute)).clamp(min=1.0)[owner]
        # The share of the tolerance that a panel may use falls with its probability, but never below what bisecting a
        # jump down to rounding leaves behind.
        indivisible = hi - lo <= 1e-15 * (1.0 + lo.abs())
        if bool((hopeless := indivisible & (estimate > tolerance * scale)).any()):
            bad = float(s[owner[hopeless][0]])
            raise ConvergenceError(f"Gaussian expectation: the integral diverges at standard deviation {bad:.3g}")
        done = (estimate <= 1e-2 * tolerance * scale) | indivisible
        value.index_add_(0, owner[done], integral[done])
        error.index_add_(0, owner[done], estimate[done])
        size.index_add_(0, owner[done], absolute[done])
        owner, lo, hi = owner[~done], lo[~done], hi[~done]
        if owner.numel() == 0:
            break
        if owner.numel() > MAX_PANELS:
            raise ConvergenceError(
                f"Gaussian expectation: more than {MAX_PANELS} panels needed near standard deviation {float(s[owner[0]]):.3g}"
            )
        middle = (lo + hi) / 2
        owner, lo, hi = owner.repeat(2), torch.cat([lo, middle]), torch.cat([middle, hi])
    else:
        raise ConvergenceError(
            f"Gaussian expectation: not converged at standard deviation {float(s[owner[0]]):.3g} "
            f"after {MAX_BISECTIONS} bisections"
        )
    _check_tails(f, s, tolerance * size.clamp(min=1.0))
    rounding = 1e-15 * size
    return Expectation(value, error + rounding, "adaptive Gauss-Kronrod")


def _check_tails(f: Callable[[torch.Tensor], torch.Tensor], s: torch.Tensor, allowed: torch.Tensor) -> None:
    """Refuse a function that still counts at the cutoff: its expectation may not exist."""
    ends = torch.stack([-CUTOFF * s, CUTOFF * s], dim=1)
    left = f(ends).abs().amax(dim=1) * float(np.exp(-(CUTOFF**2) / 2))
    if bool((bad := ~(left <= allowed)).any()):
        raise ConvergenceError(
            f"Gaussian expectation: the function grows too fast at standard deviation {float(s[bad][0]):.3g}: "
            f"it still counts {CUTOFF:.0f} standard deviations out"
        )


def _initial_panels(s: torch.Tensor, breaks: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (owner, lo, hi): panels in the variable g that cover [-CUTOFF, CUTOFF] for every s."""
    positive = s.clamp(min=1e-300)
    largest = float((CUTOFF * s).max()) if s.numel() else 1.0
    doublings = torch.tensor([2.0**k for k in range(-3, max(1, int(np.ceil(np.log2(max(largest, 1.0)))) + 1))])
    in_g = torch.tensor([0.0, 1.5, 3.0, 5.0, 8.0, CUTOFF], dtype=torch.float64)
    in_t = torch.cat([doublings.double(), -doublings.double(), torch.tensor(list(breaks), dtype=torch.float64)])
    edges = torch.cat([torch.cat([-in_g, in_g]).expand(len(s), -1), in_t[None, :] / positive[:, None]], dim=1)
    edges = edges.clamp(-CUTOFF, CUTOFF).sort(dim=1).values
    lo, hi = edges[:, :-1], edges[:, 1:]
    keep = hi - lo > 1e-14
    owner = torch.arange(len(s))[:, None].expand_as(lo)
    return owner[keep], lo[keep], hi[keep]


def _panel_integrals(
    f: Callable[[torch.Tensor], torch.Tensor], s: torch.Tensor, lo: torch.Tensor, hi: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the Kronrod integral, its error estimate and the integral of |f|, one for each panel.

    A jump between the last node and the end of a panel changes no value at a node: what the integrand is at the end,
    against what the polynomial through the nodes says, times the length of the gap, is added to the estimate.
    """
    half = (hi - lo) / 2
    g = (lo + hi)[:, None] / 2 + half[:, None] * NODES
    inset = 2e-12 * half + 1e-15 * torch.maximum(lo.abs(), hi.abs())  # a jump exactly at the end is none
    g = torch.cat([g, torch.stack([lo + inset, hi - inset], dim=1)], dim=1)
    weighted = f(s[:, None] * g) * torch.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
    weighted, ends = weighted[:, :-2], weighted[:, -2:]
    kronrod = half * (weighted @ KRONROD)
    gauss = half * (weighted @ GAUSS)
    surprise = (ends - weighted @ TO_ENDS).abs().sum(dim=1) * half * float(1 - NODES[-1])
    return kronrod, (kronrod - gauss).abs() + surprise, half * (weighted.abs() @ KRONROD)


def _kronrod_rule() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return nodes of the (10, 21) Gauss-Kronrod pair on [-1, 1] with the Kronrod and the Gauss weights."""
    nodes, _ = scipy.special.roots_legendre(10)
    # The Kronrod nodes are the zeros of the Stieltjes polynomial E with ∫ P₁₀ E t^k dt = 0 for k ≤ 10.
    stieltjes = _stieltjes_zeros(10)
    all_nodes = np.sort(np.concatenate([nodes, stieltjes]))
    vandermonde = np.polynomial.legendre.legvander(all_nodes, 20).T
    kronrod = np.linalg.solve(vandermonde, np.eye(21)[0] * 2.0)
    gauss = np.zeros(21)
    gauss[np.searchsorted(all_nodes, nodes - 1e-12)] = scipy.special.roots_legendre(10)[1]
    return torch.from_numpy(all_nodes), torch.from_numpy(kronrod), torch.from_numpy(gauss)


def _stieltjes_zeros(order: int) -> np.ndarray:
    """Return the order + 1 zeros of the Stieltjes polynomial that belongs to the Legendre polynomial ``order``."""
    legendre = np.polynomial.legendre
    nodes, weights = scipy.special.roots_legendre(2 * order + 4)
    p = legendre.legval(nodes, np.eye(order + 1)[order])
    basis = legendre.legvander(nodes, order + 1)  # (nodes, order + 2)
    gram = (basis[:, : order + 1] * (weights * p)[:, None]).T @ basis  # ∫ P_n P_j P_k, k ≤ n, j ≤ n + 1
    coefficients = np.append(np.linalg.lstsq(gram[:, :-1], -gram[:, -1], rcond=None)[0], 1.0)
    zeros = np.sort(legendre.legroots(coefficients).real)
    for _ in range(2):  # eigenvalues of a companion matrix are right to a few units in the last place, these to one
        zeros -= legendre.legval(zeros, coefficients) / legendre.legval(zeros, legendre.legder(coefficients))
    return np.asarray(zeros)


def _extrapolation(nodes: torch.Tensor) -> torch.Tensor:
    """Return weights, shape (21, 2), that take values at the nodes to the interpolating polynomial's at −1 and 1."""
    vandermonde = np.polynomial.legendre.legvander
    ends = vandermonde(np.array([-1.0, 1.0]), len(nodes) - 1)
    return torch.from_numpy(np.linalg.solve(vandermonde(nodes.numpy(), len(nodes) - 1).T, ends.T))


NODES, KRONROD, GAUSS = _kronrod_rule()
TO_ENDS = _extrapolation(NODES)
