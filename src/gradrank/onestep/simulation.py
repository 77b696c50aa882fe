"""`simulate`: one step and a ridge regression in the setting of the theory, over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradrank.onestep.arguments import checked_ridges, checked_seeds
from gradrank.onestep.features import squared_errors
from gradrank.onestep.ridge import ridge_path
from gradrank.onestep.step import leading_directions, step_size, stepped
from gradrank.onestep.world import Sizes, World


@dataclass(frozen=True, eq=False)
class Simulation:
    """Test risks over seeds, and the spike of the inner weights."""

    ridges: np.ndarray  # (L,)
    risks: np.ndarray  # (S, L), without label noise
    singular_values: np.ndarray  # (S,) the largest of W₁
    overlaps: np.ndarray  # (S,) |⟨u₁, β⟩|² of its vector in input space
    eta: float  # as applied, c·m^s
    sizes: Sizes
    seeds: tuple[int, ...]

    @cached_property
    def risk(self) -> np.ndarray:
        """Mean over the seeds for every penalty, shape (L,)."""
        return np.asarray(self.risks.mean(axis=0))

    @cached_property
    def standard_error(self) -> np.ndarray:
        """Standard error of `risk`, shape (L,); NaN for a single seed."""
        if len(self.risks) < 2:
            return np.full(self.risks.shape[1], math.nan)
        return np.asarray(self.risks.std(axis=0, ddof=1) / math.sqrt(len(self.risks)))


def simulate(
    eta: float,
    ridges: float | Sequence[float] | np.ndarray,
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
    loss: Any = "mse",
    test: int | None = None,
    device: str = "cpu",
) -> Simulation:
    """Simulate one gradient step and the ridge regression on its features (Ba et al. 2022, arXiv:2205.01445).

    x ~ N(0, I_d), y = f*(βᵀx) + noise·ε, f(x) = m^(−1) Σ_j ã_j σ(w_jᵀx) with w_j ~ N(0, I/d) and ã_j ~ N(0, 1). The step
    W₁ = W₀ − η √m ∇L is taken on ψ₀d samples, the ridge min (1/n)‖y − Sw‖² + λ‖w‖² on S = σ(XW₁ᵀ) for n = ψ₁d fresh ones.
    σ and f* are centred (E σ(z) and E f*(z), z ~ N(0, 1), are subtracted).

    One call with many penalties costs little more than with one. The draws of a seed are the same for every η and
    exponent: differences between two calls are paired. Tests use fresh samples, which add √(2/test) of the risk to the
    scatter of a seed.

    Parameters
    ----------
    eta, exponent
        The step η = eta · m^exponent.
    ridges
        The penalties λ ≥ 0; 0 is the solution of least norm.
    psi1, psi2, psi0
        n/d, m/d and n₀/d; ψ₀ = ψ₁ unless given.
    activation, teacher
        Names, ``module:name``, or functions of a tensor.
    noise
        Standard deviation of the label noise.
    d
        Input dimension.
    seeds
        How many (0, 1, …), or which.
    outer
        ã_j: "gaussian", or "signs" (±1).
    loss
        Loss of the step, as for a `Problem`; the ridge regression has squared errors.
    test
        Test samples, 20 d unless given.
    device
        "cpu" or "cuda"; everything is drawn on the CPU in float64.

    Raises
    ------
    InputError
        If a value is not usable; the message names it.
    """
    grid, chosen = checked_ridges(ridges), checked_seeds(seeds)
    sizes = Sizes.of(d, psi1, psi2, psi0, test)
    step = step_size(eta, exponent, sizes.m)
    world = World.of(sizes, activation, teacher, noise, outer=outer, loss=loss, device=device)
    found = [_one(world, step, grid, seed) for seed in chosen]
    risks, values, overlaps = (np.array(column) for column in zip(*found, strict=True))
    return Simulation(grid, risks, values, overlaps, step, sizes, chosen)


def _one(world: World, step: float, grid: np.ndarray, seed: int) -> tuple[np.ndarray, float, float]:
    sizes, draw = world.sizes, world.first_draw(seed)
    beta, W = draw.target_directions["beta"], stepped(draw, step).network.W
    values, directions = leading_directions(W, 1)
    X, target = world.samples(seed, "ridge", sizes.ridge, beta)
    path = ridge_path(world.sigma.value(X @ W.T), world.labels(seed, "ridge", target), grid)
    X, target = world.samples(seed, "test", sizes.test, beta)
    errors = squared_errors(path, lambda rows: world.sigma.value(rows @ W.T), X, target)
    return errors.mean(dim=0).cpu().numpy(), float(values[0]), float((directions[:, 0] @ beta) ** 2)
