"""A leaky ReLU whose two slopes approach one with the width (Li, Nica and Roy 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.numbers import finite, whole
from gradrank.initialization.shaping import correlation

SERIES = 1e-2  # below this angle sin θ − θ cos θ is its series: the difference would lose all digits


def angle_defect(theta: torch.Tensor) -> torch.Tensor:
    """Return sin θ − θ cos θ for θ in [0, π] without cancellation."""
    series = theta**3 / 3 * (1 - theta**2 / 10 * (1 - theta**2 / 28))
    return torch.where(theta < SERIES, series, torch.sin(theta) - theta * torch.cos(theta))


@dataclass(frozen=True)
class ShapedReLU:
    """φ_s(x) = s₊ max(x, 0) + s₋ min(x, 0) with s_± = 1 + c_±/√n."""

    c_plus: float
    c_minus: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "c_plus", finite("c_plus", self.c_plus))
        object.__setattr__(self, "c_minus", finite("c_minus", self.c_minus))

    @property
    def growth(self) -> float:
        """0: the diagonal has no drift."""
        return 0.0

    def slopes(self, width: int) -> tuple[float, float]:
        """Return s₊ and s₋."""
        root = math.sqrt(whole("width", width, 1))
        return 1 + self.c_plus / root, 1 + self.c_minus / root

    def normaliser(self, width: int) -> float:
        """Return c = 2/(s₊² + s₋²)."""
        plus, minus = self.slopes(width)
        if plus == minus == 0:
            raise InputError(f"width: {width} is not allowed; both slopes are zero there, give another width")
        return 2 / (plus**2 + minus**2)

    def strength(self, width: int | None = None) -> float:
        """Return (c₊ − c₋)², times c for a finite width: that removes the bias of order n^(−½)."""
        return (self.c_plus - self.c_minus) ** 2 * (1.0 if width is None else self.normaliser(width))

    def apply_(self, z: torch.Tensor, width: int) -> torch.Tensor:
        """Replace z by φ_s(z)."""
        plus, minus = self.slopes(width)
        if plus > 0:
            return torch.nn.functional.leaky_relu_(z, minus / plus).mul_(plus)
        return torch.where(z > 0, plus * z, minus * z)

    def excess(self, V: torch.Tensor, width: int) -> torch.Tensor:
        """Return r²E[sgn(z z′) z²z′²] = r²(2/π)[(1 + 2ρ²) arcsin ρ + 3ρ√(1 − ρ²)], r = (s₊² − s₋²)/(s₊² + s₋²), (…, p, p).

        3r² on the diagonal: a layer's relative variance is (2 + 3r²)/n, exactly. Derived for this project.
        """
        plus, minus = self.slopes(width)
        r = (plus**2 - minus**2) / (plus**2 + minus**2)
        rho, _ = correlation(V)
        signed = (1 + 2 * rho**2) * torch.arcsin(rho) + 3 * rho * (1 - rho**2).clamp(min=0).sqrt()
        return r * r * (2 / math.pi) * signed

    def kernel(self, rho: torch.Tensor, width: int) -> torch.Tensor:
        """Return c E[φ_s(g₁)φ_s(g₂)] for standard Gaussians of correlation ρ."""
        plus, minus = self.slopes(width)
        mixed = ((plus - minus) / 2) ** 2 / ((plus**2 + minus**2) / 2)
        return _mixed_kernel(rho, mixed)

    def nu(self, rho: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Return ν(ρ) = ((c₊ − c₋)²/2π)(√(1 − ρ²) − ρ arccos ρ), the drift of V^{αβ}/√(V^{αα}V^{ββ})."""
        return self.strength(width) / (2 * math.pi) * angle_defect(torch.arccos(rho.clamp(-1, 1)))

    def drift(self, V: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Return ν(ρ)√(V^{αα}V^{ββ})."""
        rho, scale = correlation(V)
        return self.nu(rho, width) * scale

    def drift_flow(self, V: torch.Tensor, time: float, width: int | None = None) -> torch.Tensor:
        """Return V + time · drift, as a convex mixture of two positive semidefinite kernels."""
        mixed = self.strength(width) * time / 4
        if mixed > 1:
            raise InputError(
                f"step: a drift of {time:.3g} is not allowed; give at most {4 / self.strength(width):.3g} for these slopes"
            )
        if mixed == 0:
            return V
        rho, scale = correlation(V)
        mapped = _mixed_kernel(rho, mixed) * scale
        diagonal = torch.diagonal(V, dim1=-2, dim2=-1)
        return torch.diagonal_scatter(mapped, diagonal, dim1=-2, dim2=-1)


def _mixed_kernel(rho: torch.Tensor, mixed: float) -> torch.Tensor:
    """Return (1 − w)ρ + w (2/π)(√(1 − ρ²) + ρ arcsin ρ), the kernel of a leaky ReLU of mixture w."""
    absolute = (2 / math.pi) * ((1 - rho**2).clamp(min=0).sqrt() + rho * torch.arcsin(rho))
    return (1 - mixed) * rho + mixed * absolute
