"""`run`: the cells of an experiment that are not in its store yet, on workers, each written as soon as it is done."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradrank.experiments.cells import Result, evaluate
from gradrank.experiments.cluster import Where, connected
from gradrank.experiments.experiment import Cell, Experiment
from gradrank.experiments.store import Store, is_new
from gradrank.foundation.errors import ClusterError, IncompleteError, Interrupted

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 4  # cells per worker that are given out at a time
KILLED = "the worker process died each time it was tried, as it does where memory runs out"


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    total: int
    done: int  # in the store, of earlier runs too
    failed: int
    computed: int  # by this run


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    path: Path
    total: int
    computed: int
    failed: tuple[tuple[Cell, str], ...]
    seconds: float

    def check(self) -> None:
        """Raise an error that names the first cell that failed, if there is one.

        Raises
        ------
        IncompleteError
            If a cell failed.
        """
        if self.failed:
            cell, message = self.failed[0]
            raise IncompleteError(
                f"{len(self.failed)} of {self.total} cells failed, the others are in '{self.path}'; the first, {cell}: {message}"
            )


def run(
    experiment: Experiment,
    path: str | Path,
    where: Where | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Compute every cell that the store does not hold yet; cells that failed before are tried again.

    This process alone writes, in the order in which cells are finished. Killed at any moment it loses the cells in flight
    only: a second call finishes the rest, with the same numbers. A worker that dies is replaced and its cell run again.

    Parameters
    ----------
    experiment
        What to compute.
    path
        The store; made where there is none.
    where
        Workers; by default processes of this machine. From a script, keep the call under ``if __name__ == "__main__":``.
    on_progress
        Called after every cell.

    Raises
    ------
    InputError
        If the path holds something else.
    StorageError, ClusterError
        If the disk refuses, another run is writing to the store, or no workers can be reached. What is done is kept.
    Interrupted
        On Ctrl-C.
    """
    start, where = time.perf_counter(), where or Where()
    if not is_new(Path(path)):
        with Store.open(Path(path), experiment) as store:
            pending = store.pending(experiment)
            if not pending:
                return Outcome(Path(path), experiment.size, 0, (), time.perf_counter() - start)
            with connected(where, experiment.threads) as client:
                failed = _computed(client, experiment, store, pending, on_progress)
    else:  # made once there are workers: what is wrong with them leaves nothing behind
        with connected(where, experiment.threads) as client, Store.open(Path(path), experiment) as store:
            pending = store.pending(experiment)
            failed = _computed(client, experiment, store, pending, on_progress)
    return Outcome(Path(path), experiment.size, len(pending), tuple(failed), time.perf_counter() - start)


def _computed(
    client: Client,
    experiment: Experiment,
    store: Store,
    pending: list[Cell],
    on_progress: Callable[[Progress], None] | None,
) -> list[tuple[Cell, str]]:
    """Write every cell as it comes, and return those that failed."""
    done, failed = experiment.size - len(pending), []
    try:
        for computed, (cell, result) in enumerate(_stream(client, experiment, pending), start=1):
            if result.error:
                store.write_error(cell, result.error, result.seconds, result.host)
                failed.append((cell, result.error))
            else:
                store.write(cell, result.arrays, result.seconds, result.host)
                done += 1
            if on_progress is not None:
                on_progress(Progress(experiment.size, done, len(failed), computed))
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {done} of {experiment.size} cells are in '{store.path}', and the same command computes the others"
        ) from None
    return failed


def _stream(client: Client, experiment: Experiment, cells: list[Cell]) -> Iterator[tuple[Cell, Result]]:
    client.wait_for_workers(1)
    workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    suspects = []
    for cell, result in _in_flight(client, experiment, cells, AHEAD * workers):
        if result is None:
            suspects.append(cell)
        else:
            yield cell, result
    # Dask blames every cell that a dead worker held. Alone, a cell can only be killed by itself.
    for cell, result in _in_flight(client, experiment, suspects, 1):
        yield cell, result or Result(error=KILLED)


def _in_flight(
    client: Client, experiment: Experiment, cells: list[Cell], number: int
) -> Iterator[tuple[Cell, Result | None]]:
    """Yield the cells as they come, ``number`` given out at a time; None for one whose workers died again and again."""
    from distributed import as_completed

    shapes = {name: experiment.inner_shape(name) for name in experiment.outputs}
    waiting = iter(cells)
    flying: dict[Future, Cell] = {}

    def submit(count: int) -> list[Future]:
        new = {}
        for cell in itertools.islice(waiting, count):
            arguments = {**experiment.fixed, **cell.parameters, "seed": cell.seed}
            future = client.submit(
                evaluate, experiment.function, arguments, shapes, experiment.threads, pure=False, retries=0
            )
            new[future] = cell
        flying.update(new)
        return list(new)

    completed = as_completed(submit(number), loop=client.loop)
    for future in completed:
        yield flying.pop(future), _result(future)
        future.release()
        completed.update(submit(1))


def _result(future: Any) -> Result | None:
    """Return what a worker returned, or None where the workers that held the cell died each time."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()  # type: ignore[no-any-return]
    except KilledWorker:
        return None
    except FutureCancelledError as error:
        raise ClusterError(f"the scheduler is gone ({error}); what is done is kept") from None
