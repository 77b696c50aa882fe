"""How far the features' non-linear parts depend on each other, which the equivalents for actual weights take to be independent."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse.linalg import eigsh

from gradrank.foundation.errors import InputError
from gradrank.onestep.conditional_moments import NODES, WIDTH, trapezoid
from gradrank.onestep.functions import Scalar

MOST = 1.25  # of `dependence`; the risk is off by up to 3 % at 0.55, 15 % at 1, 40 % at 1.5
NEURONS, SPAN, POINTS = 64, 4.0, 17  # of the rule for the shares
DENSE = 200  # neurons up to which all eigenvalues are computed


def checked_dependence(W: np.ndarray, v: np.ndarray, sigma: Scalar) -> float:
    """Return `dependence`, or refuse the weights.

    Raises
    ------
    InputError
        If it is above `MOST`: for many more neurons than inputs with an activation that has a quadratic part, in
        few dimensions, and where rows repeat.
    """
    found = dependence(W, v, sigma)
    if found > MOST:
        raise InputError(
            f"weights: the non-linear parts of the features are correlated ({found:.2g}, at most {MOST} is allowed); "
            "give rows further from each other, fewer rows or a larger d, or simulate"
        )
    return found


def dependence(W: np.ndarray, v: np.ndarray, sigma: Scalar) -> float:
    """Return ‖R‖, R_ij = Σ_k q_k ⟨ŵ_i, ŵ_j⟩^k for i ≠ j, k = 2, 3 and 4, less what a constant and ⟨ŵ_i, ŵ_j⟩ explain.

    ŵ are the rows (m, d) across the spike's direction v (d,), of norm one; q_k the share of the k-th Hermite
    coefficient in the non-linear variance of σ, higher ones counted as the fourth. Random rows give about q₂√(8m)/d,
    a pair of equal rows one. Derived and measured for this project.
    """
    s = W @ v
    across = W - np.outer(s, v)
    rho = np.linalg.norm(across, axis=1)
    shares = _shares(sigma, s, rho)
    if not shares.any():
        return 0.0
    unit = across / np.where(rho > 0, rho, 1.0)[:, None]
    C = unit @ unit.T
    np.fill_diagonal(C, 0.0)
    R = C * C * (shares[0] + C * (shares[1] + C * shares[2]))
    size = float((C * C).sum())
    R -= C * (float((R * C).sum()) / size if size > 0 else 0.0)
    means = R.mean(axis=0)
    R += means.mean() - means[:, None] - means[None, :]
    if len(W) <= DENSE:
        return float(np.abs(np.linalg.eigvalsh(R)).max())
    largest = eigsh(R, k=1, which="LM", tol=1e-2, v0=np.cos(np.arange(len(W))), return_eigenvectors=False)
    return float(np.abs(largest[0]))


def _shares(sigma: Scalar, s: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Return the shares of the orders 2, 3 and above in Var_u σ(s_j k + ρ_j u) less its linear part, over neurons and k."""
    chosen = np.argsort(s)[np.linspace(0, len(s) - 1, min(len(s), NEURONS)).round().astype(int)]
    (k, over_k), (u, over_u) = trapezoid(SPAN, POINTS), trapezoid(WIDTH, NODES)
    points = s[chosen, None, None] * k[None, :, None] + rho[chosen, None, None] * u
    values = sigma.value(torch.from_numpy(points)).numpy()
    hermite = (np.ones_like(u), u, (u**2 - 1) / np.sqrt(2), (u**3 - 3 * u) / np.sqrt(6))
    squares = [float((((values @ (over_u * h)) ** 2) @ over_k).mean()) for h in hermite]
    total = float((((values**2) @ over_u) @ over_k).mean())
    rest = total - squares[0] - squares[1]
    if not rest > 1e-13 * total:
        return np.zeros(3)
    return np.array([squares[2], squares[3], max(rest - squares[2] - squares[3], 0.0)]) / rest
