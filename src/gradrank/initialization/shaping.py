"""How an activation is shaped with the width n, so that n and the depth can grow together (Li, Nica and Roy 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.expectations import gaussian_expectation
from gradrank.foundation.numbers import above_zero, finite
from gradrank.problem.activations import Activation, activation

SERIES = 1e-2  # below this angle sin θ − θ cos θ is its series: the difference would lose all digits


class Shaping(Protocol):
    """What the samplers need of a shaped activation."""

    def normaliser(self, width: int) -> float:
        """Return c, with which V' = (c/n) Σ φ_s(z)φ_s(z)ᵀ keeps its size."""

    def apply_(self, z: torch.Tensor, width: int) -> torch.Tensor:
        """Replace z by φ_s(z)."""

    def drift(self, V: torch.Tensor, width: int | None = None) -> torch.Tensor:
        """Return the drift of dV, shape (…, p, p)."""

    def drift_map(self, V: torch.Tensor, step: float, width: int | None = None) -> torch.Tensor:
        """Return V after a step of the drift alone, positive semidefinite for every step."""

    def excess(self, V: torch.Tensor, width: int) -> torch.Tensor:
        """Return n Cov(V′^{αα}/V^{αα}, V′^{ββ}/V^{ββ}) − 2ρ² of one layer to first order in 1/n, (…, p, p): zero in the limit."""

    @property
    def growth(self) -> float:
        """The b of the diagonal's drift bV(V − 1); 0 where it has none."""


def shaped(shaping: Any) -> Any:
    """Return what has all that the samplers need, or raise an `InputError`."""
    if isinstance(shaping, type) or not all(
        hasattr(shaping, name) for name in ("normaliser", "apply_", "drift_map", "excess")
    ):
        raise unusable("shaping", shaping, "give ShapedReLU(c_plus, c_minus) or ShapedSmooth(phi, a)")
    return shaping


def angle_defect(theta: torch.Tensor) -> torch.Tensor:
    """Return sin θ − θ cos θ for θ in [0, π] without cancellation."""
    series = theta**3 / 3 * (1 - theta**2 / 10 * (1 - theta**2 / 28))
    return torch.where(theta < SERIES, series, torch.sin(theta) - theta * torch.cos(theta))


def correlation(V: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ρ (…, p, p), in [−1, 1], and the scales √(V^{αα}V^{ββ})."""
    root = torch.diagonal(V, dim1=-2, dim2=-1).clamp(min=0).sqrt()
    scale = root[..., :, None] * root[..., None, :]
    tiny = torch.finfo(V.dtype).tiny
    return (V / scale.clamp(min=tiny)).clamp(-1.0, 1.0), scale


@dataclass(frozen=True)
class ShapedReLU:
    """φ_s(x) = s₊ max(x, 0) + s₋ min(x, 0) with s_± = 1 + c_±/√n."""

    c_plus: float
    c_minus: float

    def __post_init__(self) -> None:
        finite("c_plus", self.c_plus)
        finite("c_minus", self.c_minus)

    @property
    def growth(self) -> float:
        """0: the diagonal has no drift."""
        return 0.0

    def slopes(self, width: int) -> tuple[float, float]:
        """Return s₊ and s₋."""
        return 1 + self.c_plus / math.sqrt(width), 1 + self.c_minus / math.sqrt(width)

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

    def drift_map(self, V: torch.Tensor, step: float, width: int | None = None) -> torch.Tensor:
        """Return V + step · drift, as a convex mixture of two positive semidefinite kernels."""
        mixed = self.strength(width) * step / 4
        if mixed > 1:
            raise InputError(
                f"step: a drift of {step:.3g} is not allowed; give at most {4 / self.strength(width):.3g} for these slopes"
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


@dataclass(frozen=True, eq=False)
class ShapedSmooth:
    """φ_s(x) = s φ(x/s) with s = a√n, for φ with φ(0) = 0 and φ′(0) = 1.

    With ``normalised`` (the paper's c = 1/E φ_s(g)²) a diagonal of one stays near one; without, c = 1.
    """

    phi: Any
    a: float = 1.0
    normalised: bool = True

    def __post_init__(self) -> None:
        above_zero("a", self.a)
        at_zero, slope = self._derivatives[:2]
        if abs(at_zero) > 1e-12:
            raise InputError(
                f"phi: φ(0) = {at_zero:.4g} is not allowed; give a function with φ(0) = 0, such as φ − φ(0)"
            )
        if abs(slope - 1) > 1e-9:
            raise InputError(
                f"phi: φ′(0) = {slope:.4g} is not allowed; give a function with φ′(0) = 1, such as φ/φ′(0)"
            )

    @cached_property
    def function(self) -> Activation:
        """The activation."""
        return activation(self.phi, "phi")

    @cached_property
    def _derivatives(self) -> tuple[float, float, float, float]:
        """φ, φ′, φ″ and φ‴ at 0, by autograd."""
        x = torch.zeros((), dtype=torch.float64, requires_grad=True)
        y = self.function.value(x)
        found = [float(y.detach())]
        for _ in range(3):
            if not y.requires_grad:
                found.append(0.0)
                continue
            (y,) = torch.autograd.grad(y, x, create_graph=True, allow_unused=True)
            y = torch.zeros((), dtype=torch.float64) if y is None else y
            found.append(float(y.detach()))
        if not all(math.isfinite(value) for value in found):
            raise InputError("phi: a derivative at 0 is not finite; give a function that is smooth there")
        beside = self.function.derivative(torch.tensor([-2e-4, -1e-4, 1e-4, 2e-4], dtype=torch.float64)) - found[1]
        left, right = (float(beside[1] - beside[0]), float(beside[3] - beside[2]))
        if abs(right - left) > 1e-6 + 0.1 * (abs(right) + abs(left)):  # times 1e4: φ″ from either side
            raise InputError(
                "phi: the derivatives from the left and the right of 0 differ; give a function that is smooth there"
            )
        return found[0], found[1], found[2], found[3]

    @property
    def second(self) -> float:
        """φ″(0)."""
        return self._derivatives[2]

    @property
    def third(self) -> float:
        """φ‴(0)."""
        return self._derivatives[3]

    @property
    def growth(self) -> float:
        """The b = (¾φ″(0)² + φ‴(0))/a² of the diagonal: finite-time explosion is possible iff b > 0."""
        return (0.75 * self.second**2 + self.third) / self.a**2

    def normaliser(self, width: int) -> float:
        """Return c = 1/E φ_s(g)², g ~ N(0, 1), or 1."""
        return _smooth_normaliser(self, width) if self.normalised else 1.0

    def apply_(self, z: torch.Tensor, width: int) -> torch.Tensor:
        """Replace z by φ_s(z)."""
        s = self.a * math.sqrt(width)
        return self.function.value(z / s) * s

    def excess(self, V: torch.Tensor, width: int) -> torch.Tensor:
        """Return [φ″²(9 + 6ρ²)V^{αβ} + (3φ″²/2 + 2φ‴)ρ²(V^{αα} + V^{ββ})]/(a²n), from moments of φ_s to order 1/n, (…, p, p).

        (18φ″² + 4φ‴)V/(a²n) on the diagonal. Derived for this project.
        """
        rho, _ = correlation(V)
        v = torch.diagonal(V, dim1=-2, dim2=-1)
        odd = self.second**2 * (9 + 6 * rho**2) * V
        even = (1.5 * self.second**2 + 2 * self.third) * rho**2 * (v[..., :, None] + v[..., None, :])
        return (odd + even) / (self.a**2 * width)

    def drift(self, V: torch.Tensor, _width: int | None = None) -> torch.Tensor:
        """Return (φ″²/4a²)(V^{αα}V^{ββ} + V^{αβ}(2V^{αβ} − 3)) + (φ‴/2a²)V^{αβ}(V^{αα} + V^{ββ} − 2).

        Without the −3 and the −2 where c = 1. The width plays no part.
        """
        v = torch.diagonal(V, dim1=-2, dim2=-1)
        outer, total = v[..., :, None] * v[..., None, :], v[..., :, None] + v[..., None, :]
        three, two = (3.0, 2.0) if self.normalised else (0.0, 0.0)
        even = self.second**2 / (4 * self.a**2) * (outer + V * (2 * V - three))
        return even + self.third / (2 * self.a**2) * V * (total - two)

    def drift_map(self, V: torch.Tensor, step: float, _width: int | None = None) -> torch.Tensor:
        """Return e^(−b step)[D V D + step (φ″²/4a²)(vvᵀ + 2V∘V)] with D = diag exp(φ‴ step v/2a²), v = diag V.

        Sums of products of positive semidefinite matrices, entry by entry. The width plays no part.
        """
        v = torch.diagonal(V, dim1=-2, dim2=-1)
        D = torch.exp(self.third * step / (2 * self.a**2) * v)
        moved = V * D[..., :, None] * D[..., None, :]
        moved = moved + step * self.second**2 / (4 * self.a**2) * (v[..., :, None] * v[..., None, :] + 2 * V * V)
        return moved * (math.exp(-self.growth * step) if self.normalised else 1.0)


@lru_cache(maxsize=64)
def _smooth_normaliser(shaping: ShapedSmooth, width: int) -> float:
    s, value = shaping.a * math.sqrt(width), shaping.function.value
    found = gaussian_expectation(lambda g: (value(g / s) * s) ** 2, torch.ones(1, dtype=torch.float64))
    return 1 / float(found.value[0])
