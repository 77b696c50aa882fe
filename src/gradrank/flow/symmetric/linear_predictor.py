"""Odd targets: the network stays a linear predictor ⟨w, x⟩, and w obeys an equation of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradrank.flow.symmetric.integration import integrate
from gradrank.flow.symmetric.targets import vector
from gradrank.foundation.arrays import real_array
from gradrank.foundation.errors import InputError
from gradrank.foundation.numbers import above_zero, finite, finite_times


def mobility(w: np.ndarray, s0: float) -> np.ndarray:
    """Return H(w) = ¼[R nnᵀ + ½(S_0 + R)(I − nnᵀ)], n = w/‖w‖, R = √(S_0² + 16‖w‖²); shape (d, d)."""
    size = float(np.linalg.norm(w))
    R = math.sqrt(s0**2 + 16 * size**2)
    across = np.eye(len(w)) * (s0 + R) / 8
    if size == 0:
        return across
    n = w / size
    return np.asarray(across + np.outer(n, n) * (R - (s0 + R) / 2) / 4)


def linear_predictor_flow(w_star: Any, covariance: Any, s0: float, times: Sequence[float]) -> np.ndarray:
    """Return w(t) with w′ = H(w)C(w* − w), w(0) = 0, shape (len(times), d).

    For inputs of a symmetric law with covariance C and an odd f*, w* = C⁻¹E[f*x], a network that starts from a =
    ±σ and b uniform on the σ-sphere is f_t(x) = ⟨w(t), x⟩ for m → ∞: the measure of its neurons stays a Lorentz
    boost of diag(σ², σ²I/d), which closes the equation in w (Hajjar and Chizat 2023, arXiv:2211.08771, for the
    reduction; the closed form is derived for this project). S_0 = σ²(1 + 1/d). The excess risk falls at least as
    exp(−½S_0 λ_min(C)t).

    Parameters
    ----------
    w_star
        The best linear predictor, shape (d,).
    covariance
        C, shape (d, d), symmetric and positive semidefinite.
    s0
        S_0 > 0.
    times
        Times of at least 0, in any order.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    w, C, S0 = _checked(w_star, covariance, s0)
    grid = finite_times(times)
    order = np.argsort(grid)
    size = float(np.linalg.norm(w)) or 1.0  # w and S_0 in units of ‖w*‖, so that the tolerance is relative to it
    unit = w / size

    def velocity(now: np.ndarray) -> np.ndarray:
        return np.asarray(size * (mobility(now, S0 / size) @ (C @ (unit - now))))

    found = np.empty((grid.size, len(w)))
    found[order] = integrate(
        velocity, np.zeros(len(w)), grid[order], tolerance=1e-12, name="linear predictor", method="DOP853"
    )
    return size * found


def isotropic_progress(size: float, s0: float, scale: float, times: Sequence[float]) -> np.ndarray:
    """Return ω(t) of w(t) = ω w*/‖w*‖ for C = scale·I in closed form, shape (len(times),).

    ω = (S_0/8)(z − 1/z) with (z − z₋)/(z₊ − z) = D, z_± = (4‖w*‖ ± R*)/S_0, D = ((1 − z₋)/(z₊ − 1))e^{scale R* t/4}.

    Raises
    ------
    InputError
        If a value is not usable.
    """
    size, s0, scale = above_zero("size", size), above_zero("s0", s0), above_zero("scale", scale)
    R = math.sqrt(16 * size**2 + s0**2)
    # z₊ − 1, 1 − z₋ and z − 1, none of which cancels; in terms of 1/D, which does not overflow
    upper, lower = (4 * size + 16 * size**2 / (R + s0)) / s0, 1 + s0 / (R + 4 * size)
    past = -scale * R * finite_times(times) / 4
    beyond = -upper * np.expm1(past) / (1 + upper / lower * np.exp(past))
    return np.asarray(s0 / 8 * beyond * (2 + beyond) / (1 + beyond))


def rates(w_star: Any, covariance: Any, s0: float) -> tuple[float, float]:
    """Return the guaranteed rate of the excess risk, ½S_0λ_min(C), and its asymptotic one, 2λ_min(H(w*)C)."""
    w, C, S0 = _checked(w_star, covariance, s0)
    values = np.linalg.eigvals(mobility(w, S0) @ C).real
    return S0 * float(np.linalg.eigvalsh(C)[0]) / 2, 2 * float(values.min())


def excess_risk(w: np.ndarray, w_star: Any, covariance: Any) -> np.ndarray:
    """Return ½(w* − w)ᵀC(w* − w) for rows of (T, d), shape (T,).

    Raises
    ------
    InputError
        If a value is not usable, or the shapes do not fit.
    """
    target, C = _linear(w_star, covariance)
    found = np.atleast_2d(real_array("w", w, "predictors (T, d)"))
    if found.ndim != 2 or found.shape[1] != len(target):
        raise InputError(f"w: shape {found.shape} is not allowed; give (T, {len(target)})")
    return np.asarray(0.5 * np.einsum("ti,ij,tj->t", target - found, C, target - found))


def _checked(w_star: Any, covariance: Any, s0: float) -> tuple[np.ndarray, np.ndarray, float]:
    return *_linear(w_star, covariance), above_zero("s0", s0)


def _linear(w_star: Any, covariance: Any) -> tuple[np.ndarray, np.ndarray]:
    w, C = vector("w_star", w_star), real_array("covariance", covariance, "a covariance matrix")
    for name, entries in (("w_star", w), ("covariance", C)):
        finite(name, float(np.abs(entries).max(initial=0)))
    if C.shape != (len(w), len(w)) or not np.allclose(
        C, C.T, rtol=0, atol=1e-12 * max(1.0, float(np.abs(C).max(initial=0)))
    ):
        raise InputError(
            f"covariance: shape {C.shape} is not allowed or it is not symmetric; give ({len(w)}, {len(w)})"
        )
    if np.linalg.eigvalsh(C)[0] < -1e-12 * np.abs(C).max():
        raise InputError("covariance: is not positive semidefinite; give a covariance matrix")
    return w, C
