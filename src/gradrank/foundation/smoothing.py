"""Gaussian smoothing H(y) = E f(y + τ v) of a function of one variable, and expectations of a pair made from it."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

Function = Callable[[torch.Tensor], torch.Tensor]

# Beyond 9 standard deviations the Gaussian weight is below 1e-18.
CUTOFF = 9.0
# A panel that stays unresolved below this width holds a kink or a jump.
SHORTEST_SMOOTH_PANEL = 1e-3
GAUSS_NODES, GAUSS_WEIGHTS = (torch.from_numpy(a) for a in np.polynomial.legendre.leggauss(12))


def gauss_panels(lo: torch.Tensor, hi: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Gauss-Legendre nodes and weights of the panels [lo, hi]; the last axis counts the nodes."""
    half = ((hi - lo) / 2)[..., None]
    return ((lo + hi) / 2)[..., None] + half * GAUSS_NODES, half * GAUSS_WEIGHTS


def smoothing_nodes(
    y: torch.Tensor, std: float | torch.Tensor, breaks: Sequence[float], panels: int = 12
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return nodes v and weights with E f(y + τ v) ≈ Σ weight · f(y + τ v), shapes (len(y) or 1, nodes); τ > 0 (len(y),) or one.

    The panels resolve the Gaussian and the structure of f: its breaks, and the neighbourhood of 0 where τ is large, by
    panels that double in t = y + τ v. Where neither is needed the nodes are the same for every y.
    """
    base = torch.linspace(-CUTOFF, CUTOFF, panels + 1, dtype=torch.float64)
    points = list(breaks)
    largest = float(std.max()) if isinstance(std, torch.Tensor) else std
    if largest > 1.5:
        doublings = 2.0 ** np.arange(0, max(1, int(np.ceil(np.log2(float(y.abs().max()) + CUTOFF * largest))) + 1))
        points += [0.0, *doublings, *-doublings]
    edges = base[None, :]
    if points:
        scale = torch.as_tensor(std, dtype=torch.float64).reshape(-1, 1)
        inserted = (torch.tensor(points, dtype=torch.float64)[None, :] - y[:, None]) / scale
        edges = torch.cat([edges.expand(len(y), -1), inserted.clamp(-CUTOFF, CUTOFF)], dim=1).sort(dim=1).values
    v, weight = gauss_panels(edges[:, :-1], edges[:, 1:])
    weight = weight * torch.exp(-(v**2) / 2) / np.sqrt(2 * np.pi)
    return v.flatten(1), weight.flatten(1)


def smoothed(f: Function, breaks: Sequence[float], y: torch.Tensor, std: float, panels: int = 12) -> torch.Tensor:
    """Return H(y) = E f(y + τ v), v ~ N(0, 1), shape (k,), for one standard deviation τ ≥ 0."""
    if std <= 0:
        return f(y)
    v, weight = smoothing_nodes(y, std, breaks, panels)
    return (f(y[:, None] + std * v) * weight).sum(dim=1)


def pair_expectation(
    f: Function, g: Function, breaks_f: Sequence[float], breaks_g: Sequence[float], s: float, s2: float, rho: float
) -> float:
    """Return E f(s u) g(s′ u′) for standard normal u, u′ of correlation ρ, by conditioning on u.

    E_u f(s u) H(u), H(u) = E_v g(s′ρ u + s′√(1 − ρ²) v): two nested Gauss-Legendre rules. The panels in u resolve f, g
    and, where ρ is near ±1, the layer of width √(1 − ρ²)/|ρ| around each break of g. Slow (milliseconds) and independent
    of the table of `gaussian_kernels`, which it checks.
    """
    across = float(np.sqrt(max(0.0, (1 - rho) * (1 + rho))))
    edges = set(np.linspace(-CUTOFF, CUTOFF, 25).tolist())
    for scale in (s, s2 * abs(rho)):
        if scale > 0:
            doublings = 2.0 ** np.arange(-2, 1 + np.ceil(np.log2(max(1.0, CUTOFF * scale)))) / scale
            edges.update([*doublings.tolist(), *(-doublings).tolist()])
    if s > 0:
        edges.update(b / s for b in breaks_f)
    if s2 * abs(rho) > 0:
        width = max(across / abs(rho), 1e-12)
        layer = width * 2.0 ** np.arange(-1, max(0.0, np.ceil(np.log2(1 / width))))
        for b in breaks_g:
            centre = b / (s2 * rho)
            edges.update([centre, *(centre + layer).tolist(), *(centre - layer).tolist()])
    sorted_edges = torch.tensor(sorted(e for e in edges if abs(e) <= CUTOFF), dtype=torch.float64)
    u, weight = (a.flatten() for a in gauss_panels(sorted_edges[:-1], sorted_edges[1:]))
    inner = smoothed(g, breaks_g, s2 * rho * u, s2 * across, panels=18)
    return float((f(s * u) * inner * weight * torch.exp(-(u**2) / 2)).sum() / np.sqrt(2 * np.pi))


def find_breaks(f: Function, limit: float) -> tuple[float, ...]:
    """Return where f has a kink or a jump within [−limit, limit], found by bisection.

    A panel is resolved where the polynomial through 12 Gauss nodes gives f at other points to 1e-9 of the largest |f|
    around 0; what is still unresolved at width 1e-3 is taken for a break and located as far as rounding allows.
    """
    probes = np.array([-1 + 1e-12, -0.41, 0.03, 0.55, 1 - 1e-12])
    vandermonde = np.polynomial.legendre.legvander
    degree = len(GAUSS_NODES) - 1
    to_probes = torch.from_numpy(
        np.linalg.solve(vandermonde(GAUSS_NODES.numpy(), degree).T, vandermonde(probes, degree).T)
    )
    at_probes = torch.from_numpy(probes)
    # Irregular edges: a break at a round number would fall on one, where it could not be seen.
    edges = torch.linspace(-limit, limit * 1.0123, 2 * int(np.ceil(limit)) + 3, dtype=torch.float64)
    lo, hi = edges[:-1], edges[1:]
    found: list[float] = []
    scale = float(f(torch.linspace(-limit, limit, 1001, dtype=torch.float64)).abs().max())
    while lo.numel():
        nodes, _ = gauss_panels(lo, hi)
        half, middle = (hi - lo) / 2, (lo + hi) / 2
        wrong = f(middle[:, None] + half[:, None] * at_probes) - f(nodes) @ to_probes
        bad = wrong.abs().amax(dim=1) > 1e-9 * scale
        width = float(hi[0] - lo[0])
        if width < SHORTEST_SMOOTH_PANEL and (width < 1e-12 * limit or not bool(bad.any())):
            found = middle.tolist()
            break
        keep = bad if width >= SHORTEST_SMOOTH_PANEL else _unresolved(bad, lo)
        lo, middle, hi = lo[keep], middle[keep], hi[keep]
        lo, hi = torch.stack([lo, middle], 1).flatten(), torch.stack([middle, hi], 1).flatten()
    merged: list[float] = []
    for b in sorted(found):
        if not merged or b - merged[-1] > SHORTEST_SMOOTH_PANEL:
            merged.append(b)
    return tuple(merged)


def _unresolved(bad: torch.Tensor, lo: torch.Tensor) -> torch.Tensor:
    """Keep, of each pair of halves, the unresolved ones, and both where both look resolved: the break is between them."""
    pairs = bad.reshape(-1, 2)
    neither = ~pairs.any(dim=1, keepdim=True)
    kept = (pairs | (neither & torch.tensor([True, False]))).flatten()
    return kept if len(kept) == len(lo) else bad
