"""What tells two runs apart, as short texts: a checkpoint is only gone on with by the run that wrote it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gradrank.problem.draw import Draw

DIGITS = 12  # of a digest, shown in an error
PROBE = torch.linspace(-3.0, 3.0, 25, dtype=torch.float64)  # a function is known by its values


def identity(descent: Any, draw: Draw, test: Draw | None, trackers: Sequence[Any]) -> dict[str, str]:
    """Return name → text for the descent, the draw, the test samples and each tracker."""
    texts = {f"descent.{name}": str(value) for name, value in descent.model_dump().items()}
    texts |= _draw("draw", draw)
    texts |= _draw("test", test) if test is not None else {"test": "none"}
    texts["trackers"] = str(len(trackers))
    return texts | {f"trackers.{index}": _text(tracker) for index, tracker in enumerate(trackers)}


def _draw(name: str, draw: Draw) -> dict[str, str]:
    network, loss = draw.network, draw.loss
    return {
        f"{name}.shape": str(draw.shape),
        f"{name}.dtype": str(draw.X.dtype).removeprefix("torch."),
        f"{name}.device": draw.X.device.type,
        f"{name}.seed": str(draw.seed),
        f"{name}.gamma": str(network.gamma),
        f"{name}.activation": f"{network.activation.name} {_text(network.activation.value(PROBE))}",
        f"{name}.loss": f"{loss.name} {_text(loss.value(PROBE, PROBE.flip(0)))}",
        f"{name}.regularisers": str(draw.regularisers),
        f"{name}.X": _text(draw.X),
        f"{name}.y": _text(draw.y),
        f"{name}.W": _text(network.W),
        f"{name}.a": _text(network.a),
        f"{name}.directions": _text({**draw.target_directions, "q": draw.inputs.direction}),
        f"{name}.bulk": _text(draw.inputs.bulk),
    }


def _text(value: Any) -> str:
    """Return a short text that is the same for equal values."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return f"{array.dtype}{list(array.shape)} {digest[:DIGITS]}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_text(entry)}" for name, entry in value.items()) + "}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = (f"{one.name}={_text(getattr(value, one.name))}" for one in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, (str, int, float, tuple, list)) or value is None:
        return repr(value)
    schedule = getattr(value, "schedule", None)
    return f"{type(value).__name__}({'' if schedule is None else f'schedule={_text(schedule)}'})"
