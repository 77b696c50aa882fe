"""The gradient of the training loss by the inner weights, multiplied out, as a step needs it."""

import torch

from gradrank.gradient.factored_gradient import backpropagated_signal, jacobian_signal
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
