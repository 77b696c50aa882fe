"""Conditioning the neurons on their component κ = wᵀq along one large direction of the inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri

from gradrank.foundation.errors import InputError
from gradrank.gradient.kernel import scales_and_correlations
from gradrank.gradient.setting import Setting
from gradrank.linalg.operators import Dense

NODES_PER_CLASS = 400
LARGE_SPIKE = 0.8  # ratio of the deviations of κ xᵀq and w_⊥ᵀx from which the neurons are conditioned on κ


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Classes of neurons by κ = wᵀq; what is left of w is isotropic, orthogonal to q."""

    direction: torch.Tensor  # (d,) unit q
    kappa: torch.Tensor  # (J,) root mean square κ of each class, with its sign
    weights: torch.Tensor  # (J,) shares of the neurons, adding to one
    kind: str  # "population", "realised" or "κ = 0"
    values: torch.Tensor  # (V,) the κ that the classes were cut from, increasing

    def spread(self, m: int) -> torch.Tensor:
        """Return m of the values, evenly spread over them; shape (m,)."""
        chosen = torch.linspace(0.5 / m, 1 - 0.5 / m, m, dtype=torch.float64) * len(self.values)
        return self.values[chosen.long().clamp(max=len(self.values) - 1)]

    def split(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return t = Xq (n,), the standard deviations of w_⊥ᵀx (n,) and the correlations (n, n) of the rest of the rows.

        ‖w‖² = 1 on average, so that a component of w orthogonal to q has the variance (1 − E κ²)/(d − 1).
        """
        t = X @ self.direction
        s, rho = scales_and_correlations(X - t[:, None] * self.direction)
        d = X.shape[1]
        rest = max(0.0, 1.0 - float(self.weights @ self.kappa.square()))
        return t, s * math.sqrt(rest * d / max(1, d - 1)), rho


def choose_conditioning(setting: Setting, kind: str, classes: int) -> Conditioning | None:
    """Return the classes of κ, or None where the neurons need not be told apart; ``kind`` as in `predict_spectrum`.

    Raises
    ------
    InputError
        If the classes of given weights are asked for plain inputs.
    """
    if kind == "realised" and setting.W is None:
        raise InputError("conditioning: 'realised' needs a draw with its weights; give population or none")
    q = setting.spike_direction
    if setting.inner == "orthogonal" and q is not None:
        zero = torch.zeros(1, dtype=torch.float64)
        return Conditioning(q, zero, zero + 1.0, "κ = 0", zero)
    aligned = setting.inner == "aligned" and q is not None
    if not aligned:
        if kind == "none" or (kind == "auto" and setting.weight_decay > 0):
            return None
        q = leading_direction(setting.X)
        if kind == "auto" and along_direction(setting.X, q) < LARGE_SPIKE:
            return None
    assert q is not None
    if kind == "realised" and setting.W is not None:
        return realised_classes(q, setting.W, classes)
    return population_classes(q, classes, len(setting.X) ** -0.25 if aligned else 0.0)


def leading_direction(X: torch.Tensor) -> torch.Tensor:
    """Return the first right singular vector of X, shape (d,)."""
    right = Dense(X).top(1, tolerance=1e-7).right
    assert right is not None
    return right[:, 0]


def along_direction(X: torch.Tensor, direction: torch.Tensor) -> float:
    """Return the ratio of the deviations of κ xᵀq and of w_⊥ᵀx over random w ~ N(0, I/d) and the rows x of X."""
    X = X / X.abs().max().clamp(min=torch.finfo(X.dtype).tiny)  # no square leaves the number range
    along = float((X @ direction).square().mean())
    across = max(float(X.square().sum(dim=1).mean()) - along, 0.0)
    return math.sqrt(along / across) if across > 0 else math.inf


def population_classes(direction: torch.Tensor, classes: int, offset: float = 0.0) -> Conditioning:
    """Return classes of equal probability of κ ~ N(0, 1/d), or of rows (w + c q)/‖w + c q‖ for an offset c."""
    d = len(direction)
    levels = (np.arange(classes * NODES_PER_CLASS) + 0.5) / (classes * NODES_PER_CLASS)
    kappa = ndtri(levels) / math.sqrt(d)
    if offset:
        kappa = (kappa + offset) / np.sqrt(1.0 + 2.0 * offset * kappa + offset**2)
    return _binned(direction, kappa, classes, "population")


def realised_classes(direction: torch.Tensor, W: torch.Tensor, classes: int) -> Conditioning:
    """Return classes of equal size of the κ_j = w_jᵀq of given weights W (m, d)."""
    kappa = np.sort((W.detach().to("cpu", torch.float64) @ direction).numpy())
    return _binned(direction, kappa, min(classes, len(kappa)), "realised")


def _binned(direction: torch.Tensor, kappa: np.ndarray, classes: int, kind: str) -> Conditioning:
    """Cut sorted values into classes, each at its root mean square: Σκ², which the data spike grows with, is kept."""
    parts = np.array_split(kappa, classes)
    nodes = [math.copysign(math.sqrt(float(np.mean(part**2))), float(part.mean())) for part in parts]
    weights = [len(part) / len(kappa) for part in parts]
    nodes_, weights_ = (torch.tensor(a, dtype=torch.float64) for a in (nodes, weights))
    return Conditioning(direction, nodes_, weights_, kind, torch.from_numpy(kappa))
