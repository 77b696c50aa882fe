"""How an activation is shaped with the width n, so that n and the depth can grow together (Li, Nica and Roy 2022)."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from gradrank.foundation.errors import unusable


class Shaping(Protocol):
    """What the samplers need of a shaped activation."""

    def normaliser(self, width: int) -> float:
        """Return c, with which V' = (c/n) Σ φ_s(z)φ_s(z)ᵀ keeps its size."""

    def apply_(self, z: torch.Tensor, width: int) -> torch.Tensor:
        """Replace z by φ_s(z)."""

    def drift(self, V: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Return the drift of dV, shape (…, p, p)."""

    def drift_flow(self, V: torch.Tensor, time: float, width: int | None = None) -> torch.Tensor:
        """Return V after that time of the drift alone, positive semidefinite for every time."""

    def excess(self, V: torch.Tensor, width: int) -> torch.Tensor:
        """Return n Cov(V′^{αα}/V^{αα}, V′^{ββ}/V^{ββ}) − 2ρ² of one layer to first order in 1/n, (…, p, p): zero in the limit."""

    @property
    def growth(self) -> float:
        """The b of the diagonal's drift bV(V − 1); 0 where it has none."""


def shaped(shaping: Any) -> Any:
    """Return what has all that the samplers need, or raise an `InputError`."""
    if isinstance(shaping, type) or not all(
        hasattr(shaping, name) for name in ("normaliser", "apply_", "drift_flow", "excess")
    ):
        raise unusable("shaping", shaping, "give ShapedReLU(c_plus, c_minus) or ShapedSmooth(phi, a)")
    return shaping


def correlation(V: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ρ (…, p, p), in [−1, 1], and the scales √(V^{αα}V^{ββ})."""
    root = torch.diagonal(V, dim1=-2, dim2=-1).clamp(min=0).sqrt()
    scale = root[..., :, None] * root[..., None, :]
    tiny = torch.finfo(V.dtype).tiny
    return (V / scale.clamp(min=tiny)).clamp(-1.0, 1.0), scale
