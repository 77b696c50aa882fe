"""`sample_network`: the covariances of a random network, exactly in law, without its weight matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from gradrank.foundation.devices import device_named
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.numbers import whole
from gradrank.foundation.random import stream
from gradrank.initialization.arguments import cholesky, covariance
from gradrank.initialization.shaping import Shaping, shaped

CHUNK = 1 << 20  # preactivations at a time: what bounds the memory, and stays in cache


def sample_network(
    v0: Any,
    depth: int,
    width: int,
    shaping: Shaping,
    samples: int,
    seed: int = 0,
    *,
    layers: Sequence[int] | None = None,
    device: str = "cpu",
) -> torch.Tensor:
    """Draw V_d = (c/n) Σ_i φ_s(z_{d,i})φ_s(z_{d,i})ᵀ for the p inputs of a network with ``depth`` hidden layers of n neurons.

    The rows of z_{l+1} given V_l are independent N(0, V_l), so that the weights need not be drawn: z = L g with
    LLᵀ = V_l and standard Gaussian g of shape (p, n) (Li, Nica and Roy 2022, arXiv:2206.02768, section 2). z_1 has
    rows N(0, V_0).

    Parameters
    ----------
    v0
        V_0, the inputs' Gram matrix over their dimension, shape (p, p).
    depth, width
        Hidden layers d and neurons n; d/n is the time T of the SDE.
    shaping
        `ShapedReLU` or `ShapedSmooth`.
    samples, seed
        How many networks, and the seed. The numbers depend on the seed only, not on the device.
    layers
        Layers whose V is returned, 0 … depth; the last one unless given.
    device
        "cpu" or "cuda".

    Returns
    -------
    torch.Tensor
        Shape (samples, p, p), or (samples, len(layers), p, p) where layers are given; float64.

    Raises
    ------
    InputError
        If V_0 is not positive semidefinite, a size is not usable, or a layer is not there.
    """
    start, where, shaping = covariance(v0), device_named(device), shaped(shaping)
    depth, width, samples = whole("depth", depth, 1), whole("width", width, 1), whole("samples", samples, 1)
    wanted = _layers(layers, depth)
    p = len(start)
    require_memory("samples", 8.0 * samples * len(wanted) * p * p, "give fewer samples or layers")
    found = torch.empty(samples, len(wanted), p, p, dtype=torch.float64, device=where)
    generator = torch.Generator().manual_seed(
        int(stream(whole("seed", seed, 0), "initialization.network").integers(2**62))
    )
    size = max(1, CHUNK // (p * width))
    for first in range(0, samples, size):
        rows = min(size, samples - first)
        V = start.to(where).expand(rows, p, p)
        _record(found[first : first + rows], V, wanted, 0)
        for layer in range(1, depth + 1):
            V = _layer(V, width, shaping, generator)
            _record(found[first : first + rows], V, wanted, layer)
    bad = ~torch.isfinite(found).all(-1).all(-1).all(-1)
    if bool(bad.any()):
        found[bad] = torch.where(torch.isfinite(found[bad]).all(-1).all(-1)[..., None, None], found[bad], math.inf)
        warnings.warn(
            f"{int(bad.sum())} of {samples} networks overflowed and are returned as infinity",
            RuntimeWarning,
            stacklevel=2,
        )
    return found[:, 0] if layers is None else found


def _layer(V: torch.Tensor, width: int, shaping: Shaping, generator: torch.Generator) -> torch.Tensor:
    g = torch.randn(V.shape[0], V.shape[1], width, dtype=torch.float64, generator=generator).to(V.device)
    L = cholesky(V)
    if V.shape[1] == 2:  # by hand: many tiny products cost more than their arithmetic
        g[:, 1] *= L[:, 1, 1, None]
        g[:, 1].addcmul_(L[:, 1, 0, None], g[:, 0])
        g[:, 0] *= L[:, 0, 0, None]
        h = shaping.apply_(g, width)
    else:
        h = shaping.apply_(L @ g, width)
    return torch.bmm(h, h.transpose(1, 2)) * (shaping.normaliser(width) / width)


def _record(found: torch.Tensor, V: torch.Tensor, wanted: Sequence[int], layer: int) -> None:
    for place, number in enumerate(wanted):
        if number == layer:
            found[:, place] = V


def _layers(layers: Sequence[int] | None, depth: int) -> list[int]:
    if layers is None:
        return [depth]
    if not isinstance(layers, Sequence) or isinstance(layers, str):
        raise unusable("layers", layers, "give a list of layers")
    found = [whole("layers", layer, 0) for layer in layers]
    if not found or max(found) > depth:
        raise InputError(f"layers: {list(layers)} is not allowed; give numbers from 0 to depth = {depth}")
    return found
