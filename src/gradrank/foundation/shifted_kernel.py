"""Kernels E f(κ tᵢ + sᵢ u) g(κ tₖ + sₖ u′) with a common shift κ, by Hermite series of a shifted argument."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.gaussian_kernels import SAME, Kernel
from gradrank.foundation.smoothing import CUTOFF, Function, smoothing_nodes

TERMS = (24, 48, 96, 192)
BLOCK = 400_000  # values of f held at once
MOST_PANELS = 20_000  # of width 1.5 / s


def shifted_kernel(
    f: Function,
    g: Function,
    breaks_f: Sequence[float],
    breaks_g: Sequence[float],
    t: torch.Tensor,
    s: torch.Tensor,
    rho: torch.Tensor,
    kappa: torch.Tensor,
    weights: torch.Tensor | None = None,
    tolerance: float = 1e-8,
) -> Kernel:
    """Return Σ_j p_j E f(κ_j tᵢ + sᵢ u) g(κ_j tₖ + sₖ u′), u and u′ standard normal of correlation ρ_ik.

    With c_l(κ, i) = E f(κ tᵢ + sᵢ u) h_l(u), h_l the normalised Hermite polynomials,

        K_ik = Σ_l ρ_ik^l Σ_j p_j c_l(κ_j, i) c_l(κ_j, k),

    so that averaging over many κ costs one product of (n × J) matrices per term. The remainder after L terms is at most
    |ρ_ik|^L √(R_i R_k) with R_i = Σ_j p_j (E f² − Σ_{l<L} c_l²) (Cauchy-Schwarz), where f ≠ g: one factor of each. Meant
    for what is left after a large common direction is split off: s of order one and ρ not near ±1.

    Parameters
    ----------
    f, g, breaks_f, breaks_g
        Functions and their breaks, as for `gaussian_kernel`.
    t, s
        Loading on the common variable and standard deviation of the rest, each of shape (n,), in the units of the
        argument of f.
    rho
        Correlations of the rest, shape (n, n).
    kappa, weights
        Values of the common variable, shape (J,), and their weights p_j (equal and summing to one if None). One value
        gives the kernel conditioned on it.
    tolerance
        Terms are doubled until the remainder is below this times the largest diagonal entry, up to 192 terms.

    Returns
    -------
    Kernel
        The diagonal is the quadrature of E f g and not the series; ``error`` bounds the off-diagonal remainder.

    Raises
    ------
    InputError
        If the shapes do not fit.
    """
    t, s, kappa = (a.detach().to("cpu", torch.float64).reshape(-1) for a in (t, s, kappa))
    n = len(s)
    if len(t) != n or tuple(rho.shape) != (n, n):
        raise InputError(f"shifted_kernel: t of shape ({n},) and rho of shape ({n}, {n}) are needed")
    p = torch.full_like(kappa, 1 / max(1, len(kappa))) if weights is None else weights.detach().to("cpu", torch.float64)
    rho = rho.detach().to("cpu", torch.float64).clamp(-1.0, 1.0)
    same = (rho >= 1 - SAME) & ((s[:, None] - s).abs() <= SAME * s) & ((t[:, None] - t).abs() <= SAME * t.abs())
    same.fill_diagonal_(True)
    value, power = torch.zeros(n, n, dtype=torch.float64), torch.ones(n, n, dtype=torch.float64)
    done, error = 0, np.inf
    both = tuple(dict.fromkeys([*breaks_f, *breaks_g]))
    diagonal = hermite_coefficients(lambda x: f(x) * g(x), both, t, s, kappa, 0, 1)[0] @ p
    left_f = (
        diagonal.clone() if f is g else hermite_coefficients(lambda x: f(x) ** 2, breaks_f, t, s, kappa, 0, 1)[0] @ p
    )
    left_g = left_f if f is g else hermite_coefficients(lambda x: g(x) ** 2, breaks_g, t, s, kappa, 0, 1)[0] @ p
    scale = max(float(torch.sqrt(left_f * left_g).max()), 1e-300)
    for terms in TERMS:
        c_f = hermite_coefficients(f, breaks_f, t, s, kappa, done, terms)
        c_g = c_f if f is g else hermite_coefficients(g, breaks_g, t, s, kappa, done, terms)
        for a, b in zip(c_f, c_g, strict=True):
            value.addcmul_(power, (a * p) @ b.T)
            power.mul_(rho)
        left_f = left_f - (c_f**2 @ p).sum(dim=0)
        left_g = left_f if f is g else left_g - (c_g**2 @ p).sum(dim=0)
        remainder = power.abs() * torch.sqrt(left_f.clamp(min=0)[:, None] * left_g.clamp(min=0)[None, :])
        done, error = terms, float(remainder.masked_fill(same, 0.0).max()) / scale
        if error <= tolerance:
            break
    return Kernel(torch.where(same, (diagonal[:, None] + diagonal) / 2, value), error, "Hermite series")


def hermite_coefficients(
    f: Function,
    breaks: Sequence[float],
    t: torch.Tensor,
    s: torch.Tensor,
    kappa: torch.Tensor,
    first: int,
    last: int,
) -> torch.Tensor:
    """Return c_l(κ_j, i) for first ≤ l < last, shape (last − first, n, J).

    For sᵢ = 0 that is the constant f(κ_j tᵢ), on whichever side of a break it lies. Raises ConvergenceError for sᵢ beyond
    what panels of width 1.5/s can cover.
    """
    out = torch.zeros(last - first, len(s), len(kappa), dtype=torch.float64)
    fixed = s == 0
    if bool(fixed.any()):
        if first == 0:
            out[0, fixed] = f(t[fixed, None] * kappa)
        if not bool(fixed.all()):
            out[:, ~fixed] = hermite_coefficients(f, breaks, t[~fixed], s[~fixed], kappa, first, last)
        return out
    # h_l(u) exp(−u²/2) oscillates up to |u| = 2√l with wave number √l; a panel of 12 nodes takes one and a half waves.
    panels = max(12, int(np.ceil(2 * CUTOFF * np.sqrt(last) / 7)))
    step = max(1, BLOCK // (12 * panels * max(1, len(kappa))))
    if breaks:
        for i in range(0, len(s), step):
            y = (t[i : i + step, None] * kappa).flatten()
            std = s[i : i + step].repeat_interleave(len(kappa))
            v, weight = smoothing_nodes(y, std, breaks, panels)
            values = f(y[:, None] + std[:, None] * v) * weight
            for order, h in _hermite(v, first, last):
                out[order - first, i : i + step] = torch.linalg.vecdot(values, h).reshape(-1, len(kappa))
        return out
    edge = torch.zeros(1, dtype=torch.float64)
    largest = float(s.max())
    wanted = 2 * CUTOFF * largest / 1.5
    if not wanted <= MOST_PANELS:
        raise ConvergenceError(
            f"kernel: inputs give preactivations of standard deviation {largest:.1e}, too large for this activation's "
            "quadrature; give smaller inputs"
        )
    panels = max(panels, int(np.ceil(wanted)))
    v, weight = smoothing_nodes(edge, 1.0, (), panels)
    basis = torch.stack([h for _, h in _hermite(v[0], first, last)], dim=1) * weight[0][:, None]
    for i in range(0, len(s), step):
        argument = (t[i : i + step, None] * kappa)[:, :, None] + s[i : i + step, None, None] * v[0]
        out[:, i : i + step] = (f(argument) @ basis).permute(2, 0, 1)
    return out


def _hermite(u: torch.Tensor, first: int, last: int) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield (l, h_l(u)) for first ≤ l < last: √(l + 1) h_{l+1} = u h_l − √l h_{l−1}."""
    before, now = torch.zeros_like(u), torch.ones_like(u)
    for order in range(last):
        if order >= first:
            yield order, now
        before, now = now, (u * now).sub_(before, alpha=order**0.5).div_((order + 1) ** 0.5)
