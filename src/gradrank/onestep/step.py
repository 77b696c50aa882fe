"""One gradient step on the inner weights, and the spikes that it leaves in them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import at_least_zero, finite
from gradrank.gradient.loss_gradient import loss_gradient
from gradrank.problem.draw import Draw

LARGEST = 300.0  # of log η


def step_size(eta: float, exponent: float, m: int) -> float:
    """Return η = c m^s for a constant c and an exponent s.

    Raises
    ------
    InputError
        If c is negative, one of the two is not finite, or η overflows.
    """
    c, s = at_least_zero("eta", eta), finite("exponent", exponent)
    if not s * math.log(m) < LARGEST:
        raise unusable("exponent", exponent, f"m^exponent overflows for m = {m}; give a smaller one")
    return float(c * float(m) ** s)


def stepped(draw: Draw, eta: float) -> Draw:
    """Return the draw with inner weights W₁ = W₀ − η √m ∇_W L, where ∇_W L = Gᵀ, shape (m, d).

    This is the step of Ba et al. 2022 (arXiv:2205.01445), section 2, whose network N^(−1/2) aᵀσ(Wx) with a_j ~ N(0, 1/N)
    has the output scale 1/m ("mf") with outer weights of variance one. With the scale 1/√m ("ntk") the gradient, and so
    the step, is √m times as large. The loss is the mean over the samples of ℓ(f, y), for "mse" ½(f − y)². Penalties of
    the draw act.

    Raises
    ------
    InputError
        If the step gives weights that are not finite.
    """
    W = draw.network.W
    if eta > 0:
        W = W - (eta * draw.network.m**0.5) * loss_gradient(draw).T
        if not bool(torch.isfinite(W).all()):
            raise InputError(f"eta: the step {eta:g} gives weights that are not finite; give a smaller one")
    return replace(draw, network=replace(draw.network, W=W, inner="given"))


def leading_directions(W: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest singular values of W (m, d), shape (k,), and their vectors in input space, shape (d, k)."""
    _, values, right = torch.linalg.svd(W, full_matrices=False)
    return values[:k], right[:k].T
