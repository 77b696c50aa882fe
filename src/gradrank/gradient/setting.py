"""`Setting`: what the law of a gradient's columns depends on, of a draw or of plain arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.problem.activations import Activation
from gradrank.problem.activations import activation as named_activation
from gradrank.problem.draw import Draw

DECLINED = {
    "data": "the weights depend on the data",
    "given": "given weights may depend on the data, as trained ones do",
    "conv": "the rows repeat the filters and are not independent",
}


@dataclass(frozen=True, eq=False)
class Setting:
    """A two-layer network's gradient before its weights are drawn: all that its columns' law depends on."""

    X: torch.Tensor  # (n, d) float64
    residue: torch.Tensor  # (n,) float64
    activation: Activation
    gamma: float
    m: int
    jacobian: float = 0.0  # λ of the Jacobian penalty
    weight_decay: float = 0.0
    inner: str = "sphere"  # "sphere", "gaussian", "aligned" or "orthogonal"
    spike_direction: torch.Tensor | None = None  # (d,) what "aligned" and "orthogonal" refer to
    W: torch.Tensor | None = None  # (m, d) the draw's own weights, for "realised" classes only

    @property
    def signal_weights(self) -> torch.Tensor:
        """√m (γ/n) r, shape (n,): what σ′ is multiplied with in a column of √m G."""
        return self.residue * (self.gamma * math.sqrt(self.m) / len(self.X))

    @property
    def penalty_weights(self) -> torch.Tensor:
        """√m λ(γ²/n) ‖x_i‖², shape (n,): what σ′σ″ is multiplied with."""
        factor = self.jacobian * self.gamma**2 * math.sqrt(self.m) / len(self.X)
        return torch.mul(torch.linalg.vector_norm(self.X, dim=1).square(), factor)

    def slope_product(self, x: torch.Tensor) -> torch.Tensor:
        """Return σ′(x) σ″(x)."""
        return torch.mul(self.activation.derivative(x), self.activation.second_derivative(x))


def setting_of_draw(draw: Draw, plain: dict[str, object]) -> Setting:
    """Return what the law depends on; refuses weights that depend on the data or repeat filters, and ``plain`` values."""
    if any(value is not None for value in plain.values()):
        raise InputError(
            "predict_spectrum: residue, activation, scale and m come from the draw; give them with plain X only"
        )
    network = draw.network
    if network.inner in DECLINED:
        raise InputError(
            f"network.inner: '{network.inner}' has no predicted spectrum, since {DECLINED[network.inner]}; "
            "count_spikes offers a null that keeps the factors"
        )
    q = draw.inputs.direction
    return Setting(
        X=draw.X.detach().to("cpu", torch.float64),
        residue=draw.residue.detach().to("cpu", torch.float64),
        activation=network.activation,
        gamma=network.gamma,
        m=network.m,
        jacobian=draw.regularisers.jacobian,
        weight_decay=draw.regularisers.weight_decay,
        inner=network.inner,
        spike_direction=None if q is None else q.detach().to("cpu", torch.float64),
        W=network.W.detach().to("cpu", torch.float64),
    )


def plain_setting(data: object, *, residue: object, activation: object, scale: float | None, m: int | None) -> Setting:
    """Return the setting of plain arrays, checked."""
    X, r = _real_array("data", data, 2), _real_array("residue", residue, 1)
    if X.shape[1] < 2:
        raise InputError(f"data: shape {tuple(X.shape)} is not allowed; give at least 2 columns")
    if len(r) != len(X):
        raise InputError(f"residue: length {len(r)} is not allowed; give one number for each of the {len(X)} rows of X")
    if isinstance(scale, bool) or not isinstance(scale, (int, float, np.number)) or not 0 < scale < math.inf:
        raise unusable("scale", scale, "give the output scale γ, a number above 0")
    if m is None or isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
        raise unusable("m", m, "give the width, a whole number of at least 1")
    if activation is None:
        raise InputError("activation: missing; give a name, module:name or a function of a tensor")
    return Setting(X, r, named_activation(activation, "activation"), float(scale), int(m))  # type: ignore[arg-type]


def _real_array(name: str, value: object, ndim: int) -> torch.Tensor:
    """Return a finite float64 tensor of the given number of dimensions."""
    shape = "(n, d)" if ndim == 2 else "(n,)"
    try:
        array = value.to_dense() if isinstance(value, torch.Tensor) else torch.from_numpy(np.asarray(value) + 0.0)
        wrong = array.is_complex()
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise InputError(f"{name}: a {type(value).__name__} is not allowed; give a real array of shape {shape}")
    array = array.detach().to("cpu", torch.float64)
    if array.ndim != ndim or array.numel() == 0:
        raise InputError(f"{name}: shape {tuple(array.shape)} is not allowed; give an array of shape {shape}")
    unusable_entries = int((~torch.isfinite(array)).sum())
    if unusable_entries:
        raise InputError(f"{name}: {unusable_entries} entries are NaN or infinite; give finite numbers")
    return array
