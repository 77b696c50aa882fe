"""How far the features' non-linear parts depend on each other, which the equivalents for actual weights take to be independent."""

from __future__ import annotations

import numpy as np
import torch
from numpy.polynomial.hermite_e import hermevander
from scipy.special import factorial

from gradrank.foundation.errors import InputError
from gradrank.onestep.conditional_moments import NODES, WIDTH, trapezoid
from gradrank.onestep.functions import Scalar

MOST = 0.65  # of `dependence`; the risk is off by up to 4 % at 0.3, 15 % at 0.45, 70 % at 0.75
SPAN, POINTS = 4.0, 17  # of the rule over the spike's coordinate
ROWS = 512  # neurons at a time
NEGLIGIBLE = 1e-13  # of a variance


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
    """Return the root of Σ_ij r_i r_j R_ij²/Σ_i r_i², what the non-linear parts of a neuron share with the others.

    R_ij = Σ_k q_k c_ij^k for i ≠ j, k = 2 … 5, with c_ij the cosines of the rows (m, d) across the spike's direction v (d,),
    q_k the share of the k-th Hermite coefficient in the non-linear variance of σ, higher ones counted with the fourth and
    fifth, and r_i that variance for a neuron. Left out are the mean of the columns and what c³ has of c for random rows,
    3c/(d + 1): both are harmless. Random rows give about q₂√(2m)/d; rows that all come twice one, and p equal pairs among m
    rows √(2p/m). Derived and measured for this project.
    """
    s = W @ v
    across = W - np.outer(s, v)
    rho = np.linalg.norm(across, axis=1)
    orders, rest = _non_linear(sigma, s, rho)
    total = float(rest @ rest)
    if not total > 0:
        return 0.0
    unit = across / np.where(rho > 0, rho, 1.0)[:, None]
    C = unit @ unit.T
    np.fill_diagonal(C, 0.0)
    R = C * C * (orders[0] + C * (orders[1] + C * (orders[2] + C * orders[3]))) - C * (orders[1] * 3 / (W.shape[1] + 1))
    share = rest / rest.sum()
    means = R @ share
    R += float(means @ share) - means[:, None] - means[None, :]
    np.fill_diagonal(R, 0.0)
    return float(np.sqrt(rest @ (R * R) @ rest / total))


def _non_linear(sigma: Scalar, s: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of the orders 2 to 5, and Var_u σ(s_j k + ρ_j u) less its linear part for every neuron, over k."""
    (k, over_k), (u, over_u) = trapezoid(SPAN, POINTS), trapezoid(WIDTH, NODES)
    hermite = hermevander(u, 5) / np.sqrt(factorial(np.arange(6)))
    squares, total = np.empty((len(s), 6)), np.empty(len(s))
    for first in range(0, len(s), ROWS):
        part = slice(first, first + ROWS)
        points = s[part, None, None] * k[None, :, None] + rho[part, None, None] * u
        values = sigma.value(torch.from_numpy(points)).numpy()
        squares[part] = np.einsum("k,jkh->jh", over_k, (values @ (over_u[:, None] * hermite)) ** 2)
        total[part] = ((values**2) @ over_u) @ over_k
    rest = total - squares[:, 0] - squares[:, 1]
    rest = np.where((rest > NEGLIGIBLE * total) & (rho > NEGLIGIBLE * np.hypot(s, rho)), rest, 0.0)
    size = float(rest.sum())
    if not size > 0:
        return np.zeros(4), np.zeros(len(s))
    orders = squares[rest > 0].sum(axis=0)[2:] / size
    left, high = max(1 - float(orders.sum()), 0.0), float(orders[2:].sum())
    orders[2:] *= 1 + left / high if high > 0 else 1.0  # higher orders are even and odd as the fourth and the fifth
    return orders, rest
