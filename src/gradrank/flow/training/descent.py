"""`train`: gradient descent on the inner weights of a drawn network, with trackers (LRG, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gradrank.flow.training.run import Run
from gradrank.flow.training.schedule import check_schedule
from gradrank.flow.training.trackers import Tracker
from gradrank.flow.training.trajectory import Trajectory
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import LARGEST, above_zero
from gradrank.problem.draw import Draw
from gradrank.problem.specification import Specification


def _rate(value: Any) -> Any:
    if isinstance(value, str) and value == "1/gamma":
        return value
    try:
        return above_zero("rate", value)
    except InputError:
        raise ValueError(f"give '1/gamma' or a number above 0, of at most {LARGEST:g}") from None


class Descent(Specification):
    """Gradient descent on the inner weights W; the outer weights stay as drawn."""

    steps: int = Field(100, ge=1)
    """Number of steps; the states 0 (before the first step) to ``steps`` can be tracked."""
    rate: Annotated[Any, BeforeValidator(_rate)] = "1/gamma"
    """Step size η: a number, or "1/gamma" for 1/γ (√m under NTK, m under MF)."""
    parametrisation: Literal["weight-normalised", "plain"] = "weight-normalised"
    """"weight-normalised": rows keep their length and the step acts on v of w = v/‖v‖; "plain": the step acts on W."""
    batch: int | None = Field(None, ge=1)
    """Samples of a step, out of a new shuffle for each epoch (the last batch of an epoch may be smaller); None: all."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """μ of b ← μ b + g, v ← v − η b."""

    def step_size(self, gamma: float) -> float:
        """Return η for an output scale γ."""
        return 1.0 / gamma if self.rate == "1/gamma" else float(self.rate)


def train(
    draw: Draw,
    descent: Descent | None = None,
    trackers: Sequence[Tracker] = (),
    *,
    test: Draw | None = None,
    checkpoint: str | Path | None = None,
) -> Trajectory:
    """Train the inner weights of a draw and return what the trackers recorded.

    The loss is (1/n) Σ ℓ(f(x_i), y_i) with the draw's regularisers; the noise of the inputs is the draw's, the same at every
    step. G_t is ∂L/∂W over all samples, before the projection of weight normalisation; with batches, trackers still see
    all samples. Where an output, the loss, the gradient or a weight is no longer finite, the run stops: the trajectory up to
    there is returned, and its ``status`` says at which step and why.

    Parameters
    ----------
    draw
        From ``problem.draw(seed)``.
    descent
        Steps, step size, parametrisation, batches and momentum.
    trackers
        From `gradrank.flow.training.trackers`, or your own (see `Tracker`).
    test
        Samples kept apart, for `HeldOutLoss`; see `gradrank.flow.training.held_out`.
    checkpoint
        A file: written every 10 steps and at the end, gone on from where it exists. A run that was interrupted ends with the
        same bits as one that was not, on the same machine with the same number of threads.

    Raises
    ------
    InputError
        If an argument does not fit, the network is not finite at step 0, a tracker fails at its first look, or the
        checkpoint is of another specification.
    StorageError
        If the checkpoint cannot be written.
    """
    descent = Descent() if descent is None else descent
    trackers = _checked(draw, descent, trackers, test)
    if checkpoint is not None and not isinstance(checkpoint, (str, Path)):
        raise InputError(f"checkpoint: a {type(checkpoint).__name__} is not allowed; give the path of a file")
    return Run(draw, descent, trackers, test, None if checkpoint is None else Path(checkpoint)).finish()


def _checked(draw: Draw, descent: Descent, trackers: Sequence[Tracker], test: Draw | None) -> tuple[Tracker, ...]:
    """Return the trackers, or say which argument does not fit."""
    if not isinstance(draw, Draw):
        raise InputError(f"draw: a {type(draw).__name__} is not allowed; give what problem.draw(seed) returns")
    if not isinstance(descent, Descent):
        raise InputError(f"descent: a {type(descent).__name__} is not allowed; give a Descent")
    if not isinstance(trackers, Sequence) or isinstance(trackers, str):
        raise InputError(f"trackers: a {type(trackers).__name__} is not allowed; give a list of trackers")
    for tracker in trackers:
        if isinstance(tracker, type) or not isinstance(tracker, Tracker):
            name = tracker.__name__ if isinstance(tracker, type) else type(tracker).__name__
            raise InputError(f"trackers: {name} is no tracker; give objects such as Loss() or TopSingularValues(k=2)")
        check_schedule(tracker, tracker.schedule)
    n, d, _ = draw.shape
    if descent.batch is not None and descent.batch > n:
        raise unusable("descent.batch", descent.batch, f"give a number of at most n = {n}, or None for all samples")
    if test is not None:
        if not isinstance(test, Draw):
            raise InputError(f"test: a {type(test).__name__} is not allowed; give a draw")
        like = (test.shape[1], test.X.dtype, test.X.device)
        if like != (d, draw.X.dtype, draw.X.device):
            raise InputError(
                f"test: d, dtype and device are {like}; give those of the draw, {(d, draw.X.dtype, draw.X.device)}"
            )
    return tuple(trackers)
