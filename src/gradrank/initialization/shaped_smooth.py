"""A smooth activation, stretched with the width until it is nearly linear (Li, Nica and Roy 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.expectations import gaussian_expectation
from gradrank.foundation.numbers import above_zero, whole
from gradrank.initialization.shaping import correlation
from gradrank.problem.activations import Activation, activation

FINE = 0.02  # largest relative change of V in the first drift map of a flow; the hundredth may make twice that
SWELL = 0.1  # largest |b| times the step of a drift map
MAPS = 1500  # of one flow: the correlations relax more than 30 times in them
FAR = 1e130  # of V, above every cap; its square is finite


@dataclass(frozen=True, eq=False)
class ShapedSmooth:
    """φ_s(x) = s φ(x/s) with s = a√n, for φ with φ(0) = 0 and φ′(0) = 1.

    With ``normalised`` (the paper's c = 1/E φ_s(g)²) a diagonal of one stays near one; without, c = 1.
    """

    phi: Any
    a: float = 1.0
    normalised: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", above_zero("a", self.a))
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
        return _smooth_normaliser(self, whole("width", width, 1)) if self.normalised else 1.0

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

    def drift_map(self, V: torch.Tensor, step: float) -> torch.Tensor:
        """Return e^(−b step)[D V D + step (φ″²/4a²)(vvᵀ + 2V∘V)] with D = diag exp(φ‴ step v/2a²), v = diag V.

        Sums of products of positive semidefinite matrices, entry by entry; first order in step · V.
        """
        return self._schur(V, step) * (math.exp(-self.growth * step) if self.normalised else 1.0)

    def _schur(self, V: torch.Tensor, step: float) -> torch.Tensor:
        """Return the bracket of `drift_map`, which has its correlations."""
        v = torch.diagonal(V, dim1=-2, dim2=-1)
        D = torch.exp(self.third * step / (2 * self.a**2) * v)
        moved = V * D[..., :, None] * D[..., None, :]
        return moved + step * self.second**2 / (4 * self.a**2) * (v[..., :, None] * v[..., None, :] + 2 * V * V)

    def drift_flow(self, V: torch.Tensor, time: float, _width: int | None = None) -> torch.Tensor:
        """Return V after that time of the drift: the diagonal exactly, the correlations by drift maps of steps short for V.

        Where the diagonal explodes within the time, or V is not finite, it is `FAR` times the identity. The width plays no part.
        """
        v = torch.diagonal(V, dim1=-2, dim2=-1)
        end = self._diagonal_flow(v, time)
        gone = ~(end.amax(dim=-1, keepdim=True) < FAR)
        end = torch.where(gone, FAR, end)
        largest = torch.maximum(v, end).amax(dim=-1)
        rho, _ = correlation(self._correlation_flow(V, time, torch.where(gone[..., 0], 0.0, largest)))
        rho = torch.where(gone[..., None], 0.0, rho)
        root = end.sqrt()
        moved = rho * root[..., :, None] * root[..., None, :]
        return torch.diagonal_scatter(moved, end, dim1=-2, dim2=-1)

    def _diagonal_flow(self, v: torch.Tensor, time: float) -> torch.Tensor:
        """Return v after that time of v′ = bv(v − 1), or of v′ = bv² where c = 1; infinity where it explodes."""
        bt = self.growth * time
        if not self.normalised:
            above, below = v, 1 - bt * v
        elif bt > 0:
            above, below = v * math.exp(-bt), 1 + v * math.expm1(-bt)
        else:
            above, below = v, math.exp(bt) - v * math.expm1(bt)
        return torch.where(below > 0, above / below, math.inf)

    def _correlation_flow(self, V: torch.Tensor, time: float, largest: torch.Tensor) -> torch.Tensor:
        """Return matrices of the correlations of V after that time, given the largest diagonal entry of each within it.

        The diagonals are of first order. Without φ″ the correlations stay. Matrices that move fast get more maps, longer as they
        shrink and come to rest, which after `MAPS` of them they have.
        """
        if self.second == 0 or V.shape[-1] == 1:
            return V
        rate, growth = (self.second**2 + abs(self.third)) / self.a**2, abs(self.growth)
        fast, slow = rate * time * largest > FINE, rate * time * largest <= FINE
        moved = V.clone()
        if bool(slow.any()):
            moved[slow] = self._schur(V[slow], time)
        if bool(fast.any()):
            part, rest = V[fast], time
            for k in range(MAPS):
                change = FINE * (1 + k / 100)
                step = min(rest, change / (rate * float(torch.diagonal(part, dim1=-2, dim2=-1).max())))
                step = min(step, SWELL / growth) if growth > 0 else step
                part, rest = self.drift_map(part, step), rest - step
                if rest <= 0:
                    break
            moved[fast] = part
        return moved


@lru_cache(maxsize=64)
def _smooth_normaliser(shaping: ShapedSmooth, width: int) -> float:
    s, value = shaping.a * math.sqrt(width), shaping.function.value
    found = gaussian_expectation(lambda g: (value(g / s) * s) ** 2, torch.ones(1, dtype=torch.float64))
    return 1 / float(found.value[0])
