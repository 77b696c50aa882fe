"""What has gone wrong in a state of training."""

import torch

from gradrank.foundation.errors import InputError
from gradrank.linalg.products import largest_entry
from gradrank.problem.draw import Draw


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
