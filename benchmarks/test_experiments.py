"""The experiments' engine: its overhead per cell, and what a second worker gains."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from gradrank.experiments.cluster import THREAD_VARIABLES, Where
from gradrank.experiments.experiment import Experiment
from gradrank.experiments.run import run

SECTION = "Experiments on local processes"
PLAIN = "import sys, experiment_cells; [experiment_cells.busy(a, 0) for a in range(int(sys.argv[1]))]"


def experiment(function: str, cells: int) -> Experiment:
    return Experiment(function, f"experiment_cells:{function}", {"a": list(range(cells))}, [0], {"y": []})


def plain(processes: int, cells: int) -> float:
    """Return the seconds of the busy cells in bare processes, shared out beforehand: what the machine itself gains."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    command = [sys.executable, "-c", PLAIN, str(cells // processes)]
    begin = perf_counter()
    started = [subprocess.Popen(command, env=environment, cwd=Path(__file__).parent) for _ in range(processes)]
    assert [one.wait() for one in started] == [0] * processes
    return perf_counter() - begin


def test_overhead_per_cell(tmp_path: Path, clock: Callable, ledger) -> None:
    """Time 1000 trivial cells on two workers, the start of the cluster left in."""
    clock("trivial", lambda: run(experiment("trivial", 1000), tmp_path / "s.zarr", Where(workers=2)).check(), rounds=1)
    each = ledger.seconds["trivial"] / 1000
    ledger.row(
        SECTION,
        "1000 trivial cells, two workers, cluster start included",
        f"{1e3 * each:.1f} ms per cell",
        "below 25 ms",
    )


def test_two_workers_against_one(tmp_path: Path, clock: Callable, ledger) -> None:
    """Time 64 equal cells of about half a second with one and with two workers, one thread each, and in bare processes."""
    seconds = {}
    for workers in (1, 2):
        begin = perf_counter()
        run(experiment("busy", 64), tmp_path / f"{workers}.zarr", Where(workers=workers)).check()
        seconds[workers] = perf_counter() - begin
    clock("two again", lambda: run(experiment("busy", 64), tmp_path / "again.zarr", Where(workers=2)).check(), rounds=1)
    ratio = seconds[1] / seconds[2]
    bare = plain(1, 64) / plain(2, 64)
    ledger.row(
        SECTION,
        "64 equal cells: one worker over two, start included",
        f"{ratio:.2f} × ({seconds[2]:.1f} s); bare processes {bare:.2f} ×",
        "at least 1.7 ×",
    )
