"""What a step of descent moves: W itself, or the directions of its rows at fixed lengths."""

from __future__ import annotations

import torch

from gradrank.foundation.errors import InputError

PARAMETRISATIONS = ("weight-normalised", "plain")


class Plain:
    """W itself, with momentum as torch.optim.SGD has it: b ← μ b + g, W ← W − η b."""

    def __init__(self, W: torch.Tensor, momentum: float) -> None:
        self.position = W.clone()  # (m, d), what the step acts on
        self.momentum = momentum
        self.velocity = torch.zeros_like(W) if momentum > 0 else None

    @property
    def W(self) -> torch.Tensor:
        """The inner weights, a tensor of their own for every step: trackers may keep it."""
        return self.position.clone()

    def step(self, gradient: torch.Tensor, rate: float) -> None:
        """Move against the gradient G (d, m) of the loss by W."""
        self._move(gradient.T, rate)

    def _move(self, slope: torch.Tensor, rate: float) -> None:
        if self.velocity is not None:
            slope = self.velocity.mul_(self.momentum).add_(slope)
        self.position.add_(slope, alpha=-rate)


class WeightNormalised(Plain):
    """Rows w_j = s_j v_j/‖v_j‖ with the lengths s_j fixed at their start; the step acts on v, which starts as W.

    ∂L/∂v_j = (s_j/‖v_j‖)(I − v̂_j v̂_jᵀ) ∂L/∂w_j. The slope is orthogonal to v, so that ‖v_j‖ grows and the step in w shrinks:
    v is not scaled back to norm one.
    """

    def __init__(self, W: torch.Tensor, momentum: float) -> None:
        super().__init__(W, momentum)
        self.lengths = torch.linalg.vector_norm(W, dim=1)
        if not bool((self.lengths > 0).all()):
            row = int((self.lengths == 0).nonzero()[0])
            raise InputError(
                f"network: row {row} of the inner weights is zero and has no direction; give parametrisation = 'plain'"
            )

    @property
    def W(self) -> torch.Tensor:
        """The inner weights s_j v_j/‖v_j‖."""
        return self.position * self._shrinkage()[:, None]

    def step(self, gradient: torch.Tensor, rate: float) -> None:
        """Move v against the gradient G (d, m) of the loss by W."""
        shrinkage = self._shrinkage()
        along = torch.linalg.vecdot(gradient.T, self.position) * shrinkage * (shrinkage / self.lengths).square()
        slope = gradient.T * shrinkage[:, None]
        slope.addcmul_(self.position, along[:, None], value=-1.0)
        self._move(slope, rate)

    def _shrinkage(self) -> torch.Tensor:
        """Return s_j/‖v_j‖, exactly one at the start; NaN where the norm overflows, lest w_j pass for zero."""
        norms = torch.linalg.vector_norm(self.position, dim=1)
        shrinkage: torch.Tensor = self.lengths / torch.where(torch.isfinite(norms), norms, torch.nan)
        return shrinkage


def parametrisation(name: str, W: torch.Tensor, momentum: float) -> Plain:
    """Return the parametrisation of that name, started at W."""
    return (Plain if name == "plain" else WeightNormalised)(W, momentum)
