"""The two-layer network f(x) = γ aᵀσ(Wx) and the ways to choose its inner weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field, model_validator

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.names import allowed_names
from gradrank.foundation.random import stream, unit_rows, unit_vector
from gradrank.problem.activations import Activation, activation
from gradrank.problem.files import read_table
from gradrank.problem.inputs import Inputs
from gradrank.problem.specification import Specification

SCALINGS: dict[str, Callable[[int], float]] = {"ntk": lambda m: m**-0.5, "mf": lambda m: 1.0 / m}
INNER = {
    "sphere": "rows uniform on the unit sphere",
    "gaussian": "independent N(0, 1/d) entries",
    "aligned": "W + n^(−1/4) 1 qᵀ with rows scaled to norm one, W as for sphere",
    "orthogonal": "uniform on the unit sphere orthogonal to q",
    "data": "a normalised sample plus a uniform unit vector, scaled to norm one: depends on the data",
    "conv": "shifted copies of uniform unit filters: a one-dimensional convolution written as a matrix",
    "given": "given as `weights`",
}


@dataclass(frozen=True, eq=False)
class Network:
    """A drawn network f(x) = γ aᵀσ(Wx)."""

    W: torch.Tensor  # (m, d)
    a: torch.Tensor  # (m,)
    gamma: float
    activation: Activation
    inner: str  # how W was chosen, a key of INNER
    kernel_size: int | None = None  # of a convolution, whose filters the rows of W repeat

    @property
    def m(self) -> int:
        """Hidden width."""
        return int(self.W.shape[0])

    @property
    def independent(self) -> bool:
        """Whether W was drawn without looking at the data: what the theorems ask of it."""
        return self.inner not in ("data", "given")

    def to(self, dtype: torch.dtype, device: torch.device) -> Network:
        """Return the network cast and moved."""
        return replace(self, W=self.W.to(device=device, dtype=dtype), a=self.a.to(device=device, dtype=dtype))


def _scaling(value: Any) -> Any:
    if isinstance(value, str):
        if value not in SCALINGS:
            raise ValueError(f"{allowed_names(value, SCALINGS)}, or a number above 0")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"give one of {', '.join(SCALINGS)}, or a number above 0")
    return float(value)


def _activation(value: Any) -> Any:
    activation(value)
    return value


class TwoLayer(Specification):
    """A two-layer network: inner weights W (m × d), outer weights a_j = ±1, output scale γ."""

    m: int = Field(1250, ge=1)
    """Hidden width."""
    activation: Annotated[Any, BeforeValidator(_activation)] = "sigmoid"
    """σ by name, as module:name, or a function of a tensor."""
    scaling: Annotated[Any, BeforeValidator(_scaling)] = "ntk"
    """γ: "ntk" (1/√m), "mf" (1/m), or a number."""
    inner: Literal["sphere", "gaussian", "aligned", "orthogonal", "data", "conv", "given"] = "sphere"
    """How W is chosen."""
    kernel_size: int | None = Field(None, ge=1)
    """Filter length k of "conv": m must be a multiple of the d − k + 1 positions."""
    weights: Any = None
    """W itself for "given": an (m, d) array, or the path of a file that holds one."""

    @model_validator(mode="after")
    def _consistent(self) -> TwoLayer:
        if (self.weights is None) == (self.inner == "given"):
            raise ValueError("weights: give them together with inner = 'given', and only then")
        if (self.kernel_size is None) == (self.inner == "conv"):
            raise ValueError("kernel_size: give it together with inner = 'conv', and only then")
        return self

    @property
    def gamma(self) -> float:
        """The output scale γ."""
        return SCALINGS[self.scaling](self.m) if isinstance(self.scaling, str) else float(self.scaling)

    def draw(self, inputs: Inputs, seed: int) -> Network:
        """Draw the weights, in float64 on the CPU; W and a have streams of their own."""
        n, d = inputs.shape
        require_memory("network.m", 8.0 * self.m * (d + n), "give a smaller m")
        W = self._inner(inputs, seed, n, d)
        signs = stream(seed, "network.outer").integers(0, 2, self.m) * 2.0 - 1.0
        sigma = activation(self.activation)
        return Network(W, torch.from_numpy(signs), self.gamma, sigma, self.inner, self.kernel_size)

    def _inner(self, inputs: Inputs, seed: int, n: int, d: int) -> torch.Tensor:
        rng = stream(seed, "network.inner")
        if self.inner == "given":
            return self._given(d)
        if self.inner == "gaussian":
            return torch.from_numpy(rng.standard_normal((self.m, d)) / d**0.5)
        if self.inner == "conv":
            return self._convolution(rng, d)
        W = torch.from_numpy(unit_rows(rng, self.m, d))
        if self.inner == "sphere":
            return W
        if self.inner == "data":
            chosen = stream(seed, "network.samples").integers(0, n, self.m)
            return _unit(_unit(inputs.X[torch.from_numpy(chosen)]) + W)
        q = inputs.direction
        if q is None:
            raise unusable(
                "network.inner", self.inner, "the inputs have no known spike direction; give sphere, gaussian or data"
            )
        if self.inner == "aligned":
            return _unit(W + n**-0.25 * q)
        return _unit(W - torch.outer(W @ q, q))

    def _convolution(self, rng: np.random.Generator, d: int) -> torch.Tensor:
        assert self.kernel_size is not None
        k, positions = self.kernel_size, d - self.kernel_size + 1
        if positions < 1:
            raise unusable("network.kernel_size", k, f"give a length of at most d = {d}")
        if self.m % positions:
            raise unusable(
                "network.m", self.m, f"filters of length {k} over d = {d} need a multiple of {positions} rows"
            )
        filters = [torch.from_numpy(unit_vector(rng, k)) for _ in range(self.m // positions)]
        W = torch.zeros(self.m, d, dtype=torch.float64)
        for index, kernel in enumerate(filters):
            for position in range(positions):
                W[index * positions + position, position : position + k] = kernel
        return W

    def _given(self, d: int) -> torch.Tensor:
        if isinstance(self.weights, (str, Path)):
            array = read_table(Path(self.weights), field="network.weights").X
        elif isinstance(self.weights, torch.Tensor):
            array = self.weights.detach().cpu().numpy()
        else:
            try:
                array = np.asarray(self.weights)
            except ValueError:
                raise InputError(
                    f"network.weights: rows of different lengths are not allowed; give ({self.m}, {d})"
                ) from None
        if array.dtype.kind not in "fiub":
            raise InputError(f"network.weights: entries of type {array.dtype} are not allowed; give real numbers")
        if array.shape != (self.m, d):
            raise InputError(f"network.weights: the shape {array.shape} is not allowed; give (m, d) = ({self.m}, {d})")
        W = torch.from_numpy(np.array(array, dtype=np.float64))
        if not bool(torch.isfinite(W).all()):
            raise InputError("network.weights: an entry is NaN or infinite; give finite numbers")
        return W


def _unit(rows: torch.Tensor) -> torch.Tensor:
    """Scale the rows to norm one."""
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / torch.where(norms > 0, norms, torch.ones_like(norms))
