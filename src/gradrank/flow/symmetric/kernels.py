"""Closed Gaussian expectations of ReLU neurons: K(b, b′) = E relu(⟨b, x⟩)relu(⟨b′, x⟩), x ~ N(0, I), its even part and spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import eval_gegenbauer, roots_jacobi

TINY = 1e-300


def psi(rho: np.ndarray) -> np.ndarray:
    """Return K of unit vectors at correlation ρ: (√(1 − ρ²) + ρ(π − arccos ρ))/2π."""
    rho = np.clip(rho, -1.0, 1.0)
    return np.asarray((np.sqrt(1 - rho**2) + rho * (math.pi - np.arccos(rho))) / (2 * math.pi))


def psi_even(rho: np.ndarray) -> np.ndarray:
    """Return ψ − ρ/4 = (√(1 − ρ²) + ρ arcsin ρ)/2π."""
    rho = np.clip(rho, -1.0, 1.0)
    return np.asarray((np.sqrt(1 - rho**2) + rho * np.arcsin(rho)) / (2 * math.pi))


def psi_even_slope(rho: np.ndarray) -> np.ndarray:
    """Return ψ_e′ = arcsin ρ/2π."""
    return np.asarray(np.arcsin(np.clip(rho, -1.0, 1.0)) / (2 * math.pi))


def relu_gram(B: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return K(b_i, b′_j) for rows of (k, d) and (l, d), shape (k, l)."""
    sizes, other_sizes = np.linalg.norm(B, axis=1), np.linalg.norm(others, axis=1)
    scale = np.outer(sizes, other_sizes)
    return np.asarray(scale * psi((B @ others.T) / np.maximum(scale, TINY)))


def relu_field(B: np.ndarray, a: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return h_i = Σ_j a_j K(b_i, b′_j), shape (k,), and its gradient by b_i, shape (k, d).

    ∂_b K = (1/2π)[‖b′‖ sin θ b/‖b‖ + (π − θ)b′].
    """
    sizes, other_sizes = np.linalg.norm(B, axis=1), np.linalg.norm(others, axis=1)
    scale = np.maximum(np.outer(sizes, other_sizes), TINY)
    rho = np.clip((B @ others.T) / scale, -1.0, 1.0)
    theta, sine = np.arccos(rho), np.sqrt(1 - rho**2)
    h = (scale * (sine + rho * (math.pi - theta))) @ a / (2 * math.pi)
    radial = (sine @ (a * other_sizes)) / np.maximum(sizes, TINY)
    gradient = (radial[:, None] * B + ((math.pi - theta) * a) @ others) / (2 * math.pi)
    return np.asarray(h), np.asarray(gradient)


def sphere_nodes(d: int, count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for the first coordinate of a uniform point of S^{d−1}; ±1 for d = 1."""
    if d == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes, weights = roots_jacobi(count, (d - 3) / 2, (d - 3) / 2)
    return nodes, weights / weights.sum()


def zonal_eigenvalues(d: int, degrees: np.ndarray, kernel: Callable[[np.ndarray], np.ndarray] = psi) -> np.ndarray:
    """Return the eigenvalues of a function of the correlation on S^{d−1} with its uniform probability measure (Funk-Hecke).

    Gauss-Legendre in the angle, on either side of π/2, where kernels of ReLU may have a kink. For ψ: λ_1 = 1/(4d), λ_l = 0 for
    odd l ≥ 3.
    """
    degrees = np.asarray(degrees)
    x, w = np.polynomial.legendre.leggauss(int(degrees.max(initial=0)) + 48)
    half = math.pi / 4
    phi, w = np.concatenate([half * (x + 1), half * (x + 3)]), np.concatenate([w, w])
    density = np.sin(phi) ** (d - 2) * w
    values, cosine = kernel(np.cos(phi)) * density / density.sum(), np.cos(phi)
    result = np.empty(len(degrees))
    for place, degree in enumerate(degrees):
        if d == 2:
            result[place] = float(values @ np.cos(degree * phi))
        else:
            alpha = (d - 2) / 2
            at_one = float(eval_gegenbauer(degree, alpha, 1.0))
            result[place] = float(values @ eval_gegenbauer(degree, alpha, cosine)) / at_one
    return result
