"""The same covariances from networks with real weights: slow, and the check of `sample_network`."""

from __future__ import annotations

from typing import Any

import torch

from gradrank.foundation.numbers import whole
from gradrank.foundation.random import stream
from gradrank.initialization.arguments import cholesky, covariance
from gradrank.initialization.shaping import Shaping, shaped


class ShapedNetwork(torch.nn.Module):
    """Linear layers with N(0, 1) weights and shaped activations: z_{l+1} = √(c/n) W φ_s(z_l)."""

    def __init__(self, inputs: int, depth: int, width: int, shaping: Shaping, generator: torch.Generator) -> None:
        super().__init__()
        self.shaping, self.width = shaping, width
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(inputs if layer == 0 else width, width, bias=False, dtype=torch.float64)
            for layer in range(depth)
        )
        with torch.no_grad():
            for weight in self.parameters():
                weight.normal_(generator=generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return √c φ_s of the last layer for inputs (p, n_in), shape (p, width)."""
        h = x / x.shape[1] ** 0.5
        scale = float(self.shaping.normaliser(self.width) ** 0.5)
        for index, layer in enumerate(self.layers):
            z = layer(h if index == 0 else h / self.width**0.5)
            h = self.shaping.apply_(z, self.width) * scale
        found: torch.Tensor = h
        return found


def sample_real_network(v0: Any, depth: int, width: int, shaping: Shaping, samples: int, seed: int = 0) -> torch.Tensor:
    """Draw V_d as `sample_network` does, by forward passes through drawn weights; shape (samples, p, p).

    Raises
    ------
    InputError
        As `sample_network`.
    """
    start, shaping = covariance(v0), shaped(shaping)
    p = len(start)
    x = cholesky(start) * p**0.5  # p inputs of dimension p with the Gram matrix p V_0
    generator = torch.Generator().manual_seed(
        int(stream(whole("seed", seed, 0), "initialization.real").integers(2**62))
    )
    depth, width = whole("depth", depth, 1), whole("width", width, 1)
    found = torch.empty(whole("samples", samples, 1), p, p, dtype=torch.float64)
    with torch.inference_mode():
        for index in range(samples):
            network = ShapedNetwork(p, depth, width, shaping, generator)
            h = network(x)
            found[index] = h @ h.T / width
    return found
