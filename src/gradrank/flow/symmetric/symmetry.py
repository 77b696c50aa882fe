"""Whether a target has a symmetry, and how well a network keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradrank.flow.symmetric.particles import ParticleFlow, orthogonal
from gradrank.flow.symmetric.targets import Target
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import finite, whole
from gradrank.foundation.random import stream

POINTS = 4000
TOLERANCE = 1e-9  # of the target's size


@dataclass(frozen=True, eq=False)
class SymmetryError:
    """f_t − sign·f_t∘T along a flow, over Gaussian points."""

    root_mean_square: np.ndarray  # (T,)
    largest: np.ndarray  # (T,) over the points
    size: np.ndarray  # (T,) largest |f_t| at the points


def check_symmetry(target: Target, T: Any, d: int, sign: float = 1.0, *, seed: int = 0) -> None:
    """Check f*∘T = sign·f* at 4000 Gaussian points of R^d.

    Raises
    ------
    InputError
        If T is not orthogonal, or the target has no such symmetry; the message says by how much it fails.
    """
    _check_sign(sign)
    matrix = orthogonal(T, whole("d", d, 1))
    X = stream(whole("seed", seed, 0), "symmetric.points").standard_normal((POINTS, d))
    try:
        values = target.value(X)
        gap = np.abs(target.value(X @ matrix.T) - sign * values).max()
    except (AttributeError, ValueError, IndexError) as error:
        raise InputError(f"target: has no values at points of dimension {d} ({' '.join(str(error).split())})") from None
    if not gap <= TOLERANCE * max(1e-300, np.abs(values).max()):
        word = "invariant" if sign > 0 else "odd"
        raise InputError(
            f"target: is not {word} under T: f*(Tx) and {sign:+g}·f*(x) differ by up to {gap:.3g}; give another map"
        )


def symmetry_error(flow: ParticleFlow, T: Any, sign: float = 1.0, *, seed: int = 0) -> SymmetryError:
    """Return how far f_t is from sign·f_t∘T at 4000 Gaussian points, for every time of a flow.

    For T orthogonal with f*∘T = ±f*, the measure of the neurons keeps the symmetry of its start (Hajjar and Chizat 2023,
    arXiv:2211.08771, proposition on symmetries): exactly for neurons closed under (a, b) → (±a, Tb), to O(m^(−½))
    for independent ones.

    Raises
    ------
    InputError
        If T is not orthogonal, or the sign is not ±1.
    """
    _check_sign(sign)
    d = flow.states[0].B.shape[1]
    matrix = orthogonal(T, d)
    X = stream(whole("seed", seed, 0), "symmetric.points").standard_normal((POINTS, d))
    gaps, sizes = [], []
    for state in flow.states:
        values = state.output(X)
        gaps.append(state.output(X @ matrix.T) - sign * values)
        sizes.append(np.abs(values).max())
    table = np.array(gaps)
    return SymmetryError(np.sqrt((table**2).mean(axis=1)), np.abs(table).max(axis=1), np.array(sizes))


def _check_sign(sign: Any) -> None:
    if abs(finite("sign", sign)) != 1:
        raise unusable("sign", sign, "give 1 or −1")
