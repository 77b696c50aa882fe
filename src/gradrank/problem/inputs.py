"""Drawn inputs X = X_B + ζ z qᵀ, with what is known about their population."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

ROW_CHUNK = 256


@dataclass(frozen=True, eq=False)
class Covariance:
    """Population covariance of a bulk row, Σ̂ = O diag(λ) Oᵀ."""

    eigenvalues: torch.Tensor  # (d,)
    basis: torch.Tensor | None  # (d, d) orthogonal O, or None for the canonical basis

    def quadratic(self, W: torch.Tensor) -> torch.Tensor:
        """Return w_jᵀ Σ̂ w_j, shape (m,), for the rows of W (m, d)."""
        result = W.new_empty(len(W))
        # Into slices of one array: small results kept between large temporaries would tear holes into the heap.
        for rows, part in zip(torch.split(W, ROW_CHUNK), torch.split(result, ROW_CHUNK), strict=True):
            coordinates = rows if self.basis is None else rows @ self.basis
            part.copy_(coordinates.square() @ self.eigenvalues)
        return result

    def plus(self, variance: float) -> Covariance:
        """Return Σ̂ + variance · I."""
        return replace(self, eigenvalues=self.eigenvalues + variance)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a draw: either bulk and spike apart (synthetic), or a plain matrix (real data)."""

    bulk: torch.Tensor | None = None  # (n, d) X_B
    scores: torch.Tensor | None = None  # (n,) z
    direction: torch.Tensor | None = None  # (d,) unit q
    strength: float = 0.0  # ζ
    covariance: Covariance | None = None  # of a row of the bulk
    given: torch.Tensor | None = None  # (n, d) X, where no split is known
    labels: np.ndarray | None = None  # (n,) that came with the data, untouched

    @property
    def knows_spike(self) -> bool:
        """Whether the split into bulk and spike is part of the draw."""
        return self.bulk is not None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        X = self.bulk if self.bulk is not None else self.given
        assert X is not None
        return X.shape[0], X.shape[1]

    @cached_property
    def X(self) -> torch.Tensor:
        """The inputs, shape (n, d), formed on demand from bulk and spike."""
        if self.given is not None:
            return self.given
        assert self.bulk is not None
        if self.scores is None or self.direction is None:
            return self.bulk
        return torch.addr(self.bulk, self.scores, self.direction, alpha=self.strength)

    def project(self, directions: torch.Tensor) -> torch.Tensor:
        """Return X B for directions B (d, k), shape (n, k), without forming X."""
        if self.given is not None:
            return self.given @ directions
        assert self.bulk is not None
        projected = self.bulk @ directions
        if self.scores is not None and self.direction is not None:
            projected = projected + self.strength * torch.outer(self.scores, self.direction @ directions)
        return projected

    def with_noise(self, variance: float, rng: np.random.Generator) -> Inputs:
        """Return inputs with independent N(0, variance) noise on every entry; the bulk takes it."""
        if variance == 0.0:
            return self
        noise = torch.from_numpy(rng.standard_normal(self.shape)).mul_(variance**0.5)
        if self.given is not None:
            return replace(self, given=self.given + noise)
        assert self.bulk is not None
        covariance = self.covariance.plus(variance) if self.covariance is not None else None
        return replace(self, bulk=self.bulk + noise, covariance=covariance)

    def take(self, rows: slice | torch.Tensor) -> Inputs:
        """Return some of the samples; direction, strength and population stay as they are."""

        def cut(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return None if tensor is None else tensor[rows]

        chosen = rows if isinstance(rows, slice) else rows.cpu().numpy()
        labels = None if self.labels is None else self.labels[chosen]
        return replace(self, bulk=cut(self.bulk), scores=cut(self.scores), given=cut(self.given), labels=labels)

    def to(self, dtype: torch.dtype, device: torch.device) -> Inputs:
        """Return the inputs cast and moved."""

        def moved(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return None if tensor is None else tensor.to(device=device, dtype=dtype)

        covariance = self.covariance
        if covariance is not None:
            eigenvalues, basis = moved(covariance.eigenvalues), moved(covariance.basis)
            assert eigenvalues is not None
            covariance = Covariance(eigenvalues, basis)
        return replace(
            self,
            bulk=moved(self.bulk),
            scores=moved(self.scores),
            direction=moved(self.direction),
            given=moved(self.given),
            covariance=covariance,
        )
