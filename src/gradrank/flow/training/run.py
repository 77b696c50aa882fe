"""One run of descent: it looks, records, steps and saves, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gradrank.flow.training import checkpoint as checkpoints
from gradrank.flow.training.batches import Batches
from gradrank.flow.training.fault import fault
from gradrank.flow.training.held_out import samples_of
from gradrank.flow.training.identity import identity
from gradrank.flow.training.leading import LeadingTriplets
from gradrank.flow.training.parametrisation import parametrisation
from gradrank.flow.training.series import Series, append
from gradrank.flow.training.state import Start, State
from gradrank.flow.training.trackers import TopSingularValues, Tracker
from gradrank.flow.training.trajectory import Trajectory
from gradrank.foundation.errors import GradrankError, InputError
from gradrank.gradient.loss_gradient import loss_gradient
from gradrank.linalg.products import largest_entry
from gradrank.problem.draw import Draw

if TYPE_CHECKING:
    from gradrank.flow.training.descent import Descent

BETWEEN_CHECKPOINTS = 10  # steps


class Run:
    """A run between two steps; `finish` takes it to its end."""

    def __init__(
        self, draw: Draw, descent: Descent, trackers: Sequence[Tracker], test: Draw | None, path: Path | None
    ) -> None:
        self.draw, self.descent, self.trackers, self.path = draw, descent, trackers, path
        self.start = Start(draw, test)
        self.schedules = [tracker.schedule.steps(descent.steps) for tracker in trackers]
        self.rate = descent.step_size(draw.network.gamma)
        self.batches = None if descent.batch is None else Batches(len(draw.y), descent.batch, draw.seed)
        self.weights = parametrisation(descent.parametrisation, draw.network.W, descent.momentum)
        self.triplets = LeadingTriplets()
        self.series: dict[str, Series] = {}
        self.step, self.ended, self.status = 0, False, "ok"
        self.sound, self.sound_step = draw.network.W, 0  # the last weights that were looked at and found finite
        if path is not None:
            self.identity = identity(descent, draw, test, trackers)
            self._resume(path)

    def finish(self) -> Trajectory:
        """Go on to the last step, or to where the run has to stop."""
        while not self.ended:
            self._advance()
            if self.path is not None and (self.ended or self.step % BETWEEN_CHECKPOINTS == 0):
                self._save(self.path)
        return Trajectory(self.descent, self.series, self._with(self.sound), self.sound_step, self.status)

    def _advance(self) -> None:
        """Look at the present state, record it, and take one step."""
        W = self.weights.W
        if not largest_entry(W) < float("inf"):
            self._stop("a weight is not finite")
            return
        draw = self._with(W)
        due = [index for index, steps in enumerate(self.schedules) if self.step in steps]
        asked = [
            tracker.k for tracker in (self.trackers[index] for index in due) if isinstance(tracker, TopSingularValues)
        ]
        state = State(self.step, draw, self.start, self.triplets, max(asked, default=1))
        last = self.step == self.descent.steps
        # Of a run with batches only the recorded states are looked at in full: it costs as much as an epoch.
        if self.batches is None or due or last:
            reason = fault(draw, state.gradient if self.batches is None and not last else None)
            if reason is not None:
                self._stop(reason)
                return
        self.sound, self.sound_step = W, self.step
        for index in due:
            self._record(index, state)
            if self.ended:
                return
        if last:
            self.ended = True
            return
        gradient = state.gradient if self.batches is None else self._batch_gradient(draw)
        if gradient is not None:
            self.weights.step(gradient, self.rate)
            self.step += 1

    def _batch_gradient(self, draw: Draw) -> torch.Tensor | None:
        """Return the gradient over the batch of this step, or stop the run."""
        assert self.batches is not None
        some = samples_of(draw, self.batches.rows(self.step).to(draw.y.device))
        gradient = loss_gradient(some) if fault(some) is None else None
        reason = fault(some, gradient)
        if reason is not None:
            self._stop(reason)
            return None
        return gradient

    def _record(self, index: int, state: State) -> None:
        """Let one tracker look. What fails at its first look is a wrong tracker; later it is the run that went astray."""
        tracker = self.trackers[index]
        try:
            recorded = tracker.record(state)
        except (GradrankError, ArithmeticError, ValueError, RuntimeError) as error:  # numbers that went astray
            if all(one.owner != index for one in self.series.values()):
                raise
            reason = " ".join(str(error).split())
            kind = "" if isinstance(error, GradrankError) else f"{type(error).__name__}: "
            self._stop(f"{type(tracker).__name__} fails ({kind}{reason})", "")
            return
        append(self.series, recorded, tracker.dims, index, self.step)

    def _stop(self, reason: str, advice: str = "; give a smaller rate") -> None:
        """End the run early with a reason; at step 0 there is no run to keep."""
        if self.step == 0:
            raise InputError(
                f"draw: {reason} before the first step; give smaller inputs or labels, or a smaller scaling"
            )
        self.ended, self.status = True, f"stopped at step {self.step}: {reason}{advice}"

    def _with(self, W: torch.Tensor) -> Draw:
        """Return the draw with other inner weights, which no longer count as random."""
        return replace(self.draw, network=replace(self.draw.network, W=W, inner="given", kernel_size=None))

    def _save(self, path: Path) -> None:
        here = checkpoints.Checkpoint(
            step=self.step,
            position=self.weights.position,
            velocity=self.weights.velocity,
            block=self.triplets.block,
            sound=self.sound,
            sound_step=self.sound_step,
            series=self.series,
            ended=self.ended,
            status=self.status,
        )
        checkpoints.save(path, here, self.identity)

    def _resume(self, path: Path) -> None:
        """Go on from the file where there is one."""
        checkpoints.prepare(path)
        found = checkpoints.load(path, self.identity)
        if found is None:
            return
        device = self.draw.X.device
        self.step, self.ended, self.status, self.series = found.step, found.ended, found.status, found.series
        self.weights.position.copy_(found.position)
        if self.weights.velocity is not None and found.velocity is not None:
            self.weights.velocity.copy_(found.velocity)
        self.triplets.block = None if found.block is None else found.block.to(device)
        self.sound, self.sound_step = found.sound.to(device), found.sound_step
