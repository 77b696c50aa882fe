"""The gradient of the training loss by the inner weights, multiplied out, as a step of descent needs it."""

import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.factored_gradient import backpropagated_signal, jacobian_signal
from gradrank.linalg.products import largest_entry
from gradrank.problem.draw import Draw


def loss_gradient(draw: Draw) -> torch.Tensor:
    """Return G = XᵀΔ + λWᵀ, shape (d, m), with the signal of a Jacobian penalty inside Δ (LRG, sections 2 and 4).

    Its transpose is contiguous: a step moves the rows of W. The outputs, the residue and XWᵀ stay with the draw.
    """
    signal, _ = backpropagated_signal(draw)
    if draw.regularisers.jacobian > 0:
        signal += jacobian_signal(draw)
    by_rows = signal.T @ draw.X
    if draw.regularisers.weight_decay > 0:
        by_rows.add_(draw.network.W, alpha=draw.regularisers.weight_decay)
    return by_rows.T


def fault(draw: Draw, gradient: torch.Tensor | None = None) -> str | None:
    """Return what is not finite in a state of training, or None."""
    try:
        f = draw.outputs
    except InputError:  # raised for nothing else
        return "an output of the network is not finite"
    if not bool(torch.isfinite(draw.loss.value(f, draw.y).mean())):
        return "the loss is not finite"
    if gradient is not None and not largest_entry(gradient) < float("inf"):
        return "the gradient is not finite"
    return None
