"""`SpikedGaussian`: X = X_B + n^ν z qᵀ with bulk rows N(0, Σ̂), λ_k(Σ̂) = k^(−α)."""

from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field, model_validator

from gradrank.foundation.errors import InputError
from gradrank.foundation.memory import require_memory
from gradrank.foundation.names import allowed_names
from gradrank.foundation.random import stream, unit_vector
from gradrank.problem.inputs import Covariance, Inputs
from gradrank.problem.specification import Specification

NAMED_DIRECTIONS = ("random", "eigenvector", "none")


def _direction(value: Any) -> Any:
    """Accept one of the names, or a vector as a list, an array or a tensor."""
    if isinstance(value, str):
        if value not in NAMED_DIRECTIONS:
            raise ValueError(f"{allowed_names(value, NAMED_DIRECTIONS)}, or a vector of length d")
        return value
    try:
        vector = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("give a name or a vector of numbers") from None
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise ValueError("give one finite vector of length d, not all zero")
    return tuple(vector.tolist())


class SpikedGaussian(Specification):
    """Gaussian inputs with one spike: X = X_B + ζ z qᵀ, ζ = n^ν, z ~ N(0, I_n), rows of X_B ~ N(0, Σ̂) (LRG, section 2)."""

    kind: Literal["spiked-gaussian"] = "spiked-gaussian"
    n: int = Field(750, ge=2)
    """Samples."""
    d: int = Field(1000, ge=2)
    """Input dimension."""
    nu: float = Field(0.3, ge=0)
    """Spike exponent ν: the strength is ζ = n^ν (ν = 0 still has a spike, of strength 1)."""
    alpha: float = Field(0.0, ge=0)
    """Decay exponent α of the bulk's eigenvalues λ_k = k^(−α)."""
    direction: Annotated[Any, BeforeValidator(_direction)] = "random"
    """Spike direction q: "random" (uniform on the sphere), "eigenvector" of Σ̂, "none" (no spike), or a vector."""
    eigenvector: int = Field(1, ge=1)
    """Which eigenvector q is, counted from the largest eigenvalue, where the direction is "eigenvector"."""
    basis: Literal["canonical", "haar"] = "canonical"
    """Eigenvectors of Σ̂: the coordinate axes, or a uniformly random rotation of them."""

    @model_validator(mode="after")
    def _fits(self) -> "SpikedGaussian":
        if not isinstance(self.direction, str) and len(self.direction) != self.d:
            raise ValueError(f"direction: has length {len(self.direction)}; give a vector of length d = {self.d}")
        if self.eigenvector > self.d:
            raise ValueError(f"eigenvector: {self.eigenvector} is not allowed; give a number of at most d = {self.d}")
        return self

    @property
    def has_spike(self) -> bool:
        """Whether there is a spike at all."""
        return not (isinstance(self.direction, str) and self.direction == "none")

    def draw(self, seed: int) -> Inputs:
        """Draw bulk, scores and direction, in float64 on the CPU; each from its own stream."""
        n, d = self.n, self.d
        require_memory("inputs", 8.0 * (n * d + (2 * d * d if self.basis == "haar" else 0)), "give a smaller n or d")
        try:
            strength = float(n) ** self.nu
        except OverflowError:
            raise InputError(f"inputs.nu: {self.nu} is not allowed; n^ν must be a finite number") from None
        eigenvalues = np.arange(1, d + 1, dtype=np.float64) ** -self.alpha
        basis = _haar(stream(seed, "inputs.basis"), d) if self.basis == "haar" else None
        bulk = torch.from_numpy(stream(seed, "inputs.bulk").standard_normal((n, d)))
        bulk *= torch.from_numpy(np.sqrt(eigenvalues))
        if basis is not None:
            bulk = bulk @ basis.T
        covariance = Covariance(torch.from_numpy(eigenvalues), basis)
        if not self.has_spike:
            return Inputs(bulk=bulk, covariance=covariance)
        scores = torch.from_numpy(stream(seed, "inputs.scores").standard_normal(n))
        return Inputs(bulk, scores, self._direction(seed, basis), strength, covariance)

    def _direction(self, seed: int, basis: torch.Tensor | None) -> torch.Tensor:
        """Return the unit vector q, shape (d,)."""
        if self.direction == "random":
            return torch.from_numpy(unit_vector(stream(seed, "inputs.direction"), self.d))
        if self.direction == "eigenvector":
            axes = torch.eye(self.d, dtype=torch.float64) if basis is None else basis
            return axes[:, self.eigenvector - 1].clone()
        q = np.array(self.direction, dtype=np.float64)
        q /= np.abs(q).max()  # squares of very large or small entries would overflow or vanish
        return torch.from_numpy(q / np.linalg.norm(q))


def _haar(rng: np.random.Generator, d: int) -> torch.Tensor:
    """Draw an orthogonal matrix from the Haar measure: QR of a Gaussian matrix with the signs of R's diagonal."""
    Q, R = torch.linalg.qr(torch.from_numpy(rng.standard_normal((d, d))))
    return torch.mul(Q, torch.sign(torch.diagonal(R)))
