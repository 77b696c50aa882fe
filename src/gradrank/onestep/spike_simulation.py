"""The spikes that a step leaves in the inner weights and in the features, simulated and counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gradrank.foundation.errors import unusable
from gradrank.foundation.numbers import finite, whole
from gradrank.linalg.operators import Dense
from gradrank.onestep.arguments import checked_ratio, checked_seeds
from gradrank.onestep.moments import moments
from gradrank.onestep.step import leading_directions, step_size, stepped
from gradrank.onestep.world import Sizes, World

ORDERS = 7  # Hermite polynomials of the spike's coordinate, and powers of the outer weights, that make up the signal
MARGIN = 1.02  # of the noise edge, above which a singular value counts: a few of the edge's own fluctuations
LEADING = 12


@dataclass(frozen=True, eq=False)
class WeightSpike:
    """The leading singular value of W₁ over seeds, and its vector's overlap with the teacher."""

    singular_values: np.ndarray  # (S,)
    overlaps: np.ndarray  # (S,) |⟨u₁, β⟩|², u₁ in input space
    eta: float
    seeds: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FeatureSpikes:
    """The spikes in the feature matrix S = σ(XW₁ᵀ)/√n over seeds."""

    counts: np.ndarray  # (S,) singular values above MARGIN times the noise edge
    singular_values: np.ndarray  # (S, 12) the leading ones
    edges: np.ndarray  # (S,) the largest of S without its signal
    strengths: np.ndarray  # (S, 7) of the k-th spike, |e_kᵀ S f_k|
    theta: float  # θ₁ = n^s
    n: int
    seeds: tuple[int, ...]


def simulate_weight_spike(
    eta: float,
    psi1: float,
    psi2: float,
    activation: Any,
    teacher: Any,
    noise: float,
    *,
    d: int = 500,
    seeds: int | Sequence[int] = 10,
    psi0: float | None = None,
    exponent: float = 0.0,
    outer: str = "gaussian",
    device: str = "cpu",
) -> WeightSpike:
    """Simulate the step of `gradrank.onestep.simulation.simulate`, and look at the weights only.

    Raises
    ------
    InputError
        If a value is not usable; the message names it.
    """
    chosen, sizes = checked_seeds(seeds), Sizes.of(d, psi1, psi2, psi0, 2)
    world = World.of(sizes, activation, teacher, noise, outer=outer, device=device)
    step = step_size(eta, exponent, sizes.m)
    values, overlaps = [], []
    for seed in chosen:
        draw = world.first_draw(seed)
        found, directions = leading_directions(stepped(draw, step).network.W, 1)
        values.append(float(found[0]))
        overlaps.append(float((directions[:, 0] @ draw.target_directions["beta"]) ** 2))
    return WeightSpike(np.array(values), np.array(overlaps), step, chosen)


def simulate_feature_spikes(
    s: float,
    activation: Any,
    teacher: Any,
    *,
    n: int = 2000,
    psi1: float = 4.0,
    psi2: float = 2.0,
    noise: float = 0.0,
    seeds: int | Sequence[int] = 4,
    device: str = "cpu",
) -> FeatureSpikes:
    """Count the spikes of the features after a step of spike strength θ₁ = n^s (Moniri et al. 2024, arXiv:2310.07891).

    Rows of W₀ have norm one, ã_j ~ N(0, 1), d = n/ψ₁, m = ψ₂d, and η is such that θ₁ = η μ₁‖v‖ for the v = Xᵀy/n₀ of the draw.
    With ζ = Xv/‖v‖ on fresh samples, the features hold Σ_k (E σ⁽ᵏ⁾/k!) He_k(ζ) (θ₁ã/√m)^k: the signal.

    The count: singular values of S/√n above 1.02 times the noise edge, which is the largest singular value of S/√n once He_0(ζ) …
    He_7(ζ) are projected out on the left and ã⁰ … ã⁷ on the right. (The edge of the features before the step over-counts: the
    bulk widens with the step.) The strength of the k-th spike is |e_kᵀ S f_k|/√n with e_k and f_k from orthonormalising
    He_k(ζ) and ã^k in this order; it grows as |E σ⁽ᵏ⁾| θ₁^k m^(−(k−1)/2).

    Raises
    ------
    InputError
        If a value is not usable; the message names it.
    """
    s = finite("s", s)
    if not 0 <= s < 0.5:
        raise unusable("s", s, "give an exponent of at least 0 and below ½")
    chosen, n = checked_seeds(seeds), whole("n", n, 8)
    d = round(n / checked_ratio("psi1", psi1))
    if d < 2:
        raise unusable("psi1", psi1, f"give at most {n / 2:g}: d = n/psi1 must be at least 2")
    world = World.of(Sizes.of(d, psi1, psi2, None, 2), activation, teacher, noise, device=device, unit_rows=True)
    if abs(world.slope) < 1e-9 * math.sqrt(moments(world.sigma).variance) or not moments(world.sigma).variance > 0:
        raise unusable("activation", world.sigma.name, "E σ′(z) = 0: the step has no spike")
    if not moments(world.teacher).variance + world.noise**2 > 0:
        raise unusable("teacher", world.teacher.name, "it is constant: nothing is learned")
    theta = float(n) ** s
    found = [_features(world, theta, seed) for seed in chosen]
    counts, values, edges, strengths = (np.array(column) for column in zip(*found, strict=True))
    return FeatureSpikes(counts, values, edges, strengths, theta, n, chosen)


def _features(world: World, theta: float, seed: int) -> tuple[int, np.ndarray, float, np.ndarray]:
    draw = world.first_draw(seed)
    v = draw.X.T @ draw.y / len(draw.y)
    size = float(torch.linalg.vector_norm(v))
    W = stepped(draw, theta / (world.slope * size)).network.W
    X, _ = world.samples(seed, "ridge", world.sizes.ridge, draw.target_directions["beta"])
    S = world.sigma.value(X @ W.T) / len(X) ** 0.5
    left, right = _basis(_hermite(X @ v / size)), _basis(_powers(draw.network.a))
    values = Dense(S).top(LEADING, vectors=False).values
    noise = S - left @ (left.T @ S)
    noise -= (noise @ right) @ right.T
    edge = float(Dense(noise).top(1, vectors=False).values[0])
    strengths = torch.diagonal(left.T @ S @ right)[1:].abs()
    return int((values > MARGIN * edge).sum()), values.cpu().numpy(), edge, strengths.cpu().numpy()


def _hermite(z: torch.Tensor) -> torch.Tensor:
    """Return He_0(z) … He_7(z), normalised for z ~ N(0, 1), as columns."""
    columns = [torch.ones_like(z), z]
    for k in range(1, ORDERS):
        columns.append(z * columns[k] - k * columns[k - 1])
    return torch.stack([column / math.sqrt(math.factorial(k)) for k, column in enumerate(columns)], dim=1)


def _powers(a: torch.Tensor) -> torch.Tensor:
    return torch.stack([a**k for k in range(ORDERS + 1)], dim=1)


def _basis(columns: torch.Tensor) -> torch.Tensor:
    """Return orthonormal columns, each in the span of those up to its place (Gram-Schmidt)."""
    Q: torch.Tensor = torch.linalg.qr(columns / torch.linalg.vector_norm(columns, dim=0)).Q
    return Q
