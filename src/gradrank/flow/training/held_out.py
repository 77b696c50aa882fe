"""Samples kept apart: one draw cut into two, one to train on and one to test with."""

from __future__ import annotations

from dataclasses import replace

import torch

from gradrank.foundation.errors import unusable
from gradrank.problem.draw import Draw
from gradrank.problem.inputs import Inputs


def hold_out(draw: Draw, samples: int) -> tuple[Draw, Draw]:
    """Return the draw without its last ``samples`` rows, and those rows; both share directions, targets and network.

    Two seeds of one problem differ in their directions and cannot test each other. The spike strength of both parts is that
    of all rows, n^ν.

    Raises
    ------
    InputError
        If fewer than two rows would be left for training, or none for testing.
    """
    n = len(draw.y)
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= n - 2:
        raise unusable("samples", samples, f"give a whole number from 1 to {n - 2}")
    return draw.take(slice(0, n - samples)), draw.take(slice(n - samples, n))


def samples_of(draw: Draw, rows: torch.Tensor) -> Draw:
    """Return some samples of a draw as plain inputs, for one step on a batch."""
    return replace(draw, inputs=Inputs(given=draw.X[rows]), y=draw.y[rows])
