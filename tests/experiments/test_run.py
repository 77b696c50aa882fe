"""Runs on a real Dask cluster of two processes: the same numbers whatever happens to the processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from gradrank.experiments.cluster import Where, connected, slurm_cluster
from gradrank.experiments.experiment import Experiment
from gradrank.experiments.run import Progress, run
from gradrank.experiments.store import State, Store
from gradrank.foundation.errors import ClusterError, IncompleteError, InputError, StorageError

TWO = Where(workers=2)


def experiment(function: str, values: list[Any], seeds: int = 1, **fields: Any) -> Experiment:
    usual: dict[str, Any] = {"grid": {"a": values}, "outputs": {"y": []}}
    return Experiment("test", f"functions:{function}", seeds=list(range(seeds)), **{**usual, **fields})


def real(pause: float = 0.0, cells: int = 5, threads: int = 1) -> Experiment:
    grid = {"nu": [round(0.1 * index, 1) for index in range(cells)]}
    return experiment(
        "norms", [], 2, grid=grid, outputs={"norm": [], "threads": []}, fixed={"pause": pause}, threads=threads
    )


@pytest.fixture(scope="module")
def norms(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The numbers of an undisturbed run with one worker."""
    path = tmp_path_factory.mktemp("one") / "s.zarr"
    run(real(), path, Where(workers=1)).check()
    return np.asarray(xarray.open_zarr(path)["norm"].values)


def test_results_progress_and_a_second_call(tmp_path: Path) -> None:
    grid = {"a": [0.5, 1.5], "b": ["x", "yy"]}
    one = experiment("line", [], 3, grid=grid, outputs={"y": ["k"], "length": []}, coordinates={"k": [1, 2, 3]})
    seen: list[Progress] = []
    outcome = run(one, tmp_path / "s.zarr", TWO, seen.append)
    outcome.check()
    assert (outcome.total, outcome.computed) == (12, 12)
    assert [progress.done for progress in seen] == list(range(1, 13))
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert data["length"].values[0].tolist() == [[1.0] * 3, [2.0] * 3]
    for i, a in enumerate((0.5, 1.5)):
        for seed in range(3):
            assert data["y"].values[i, 0, seed].tolist() == [seed, a + seed, 2 * a + seed]
    start = time.perf_counter()
    again = run(one, tmp_path / "s.zarr", TWO, seen.append)
    assert again.computed == 0
    assert time.perf_counter() - start < 2.0  # no cluster is started for nothing
    assert len(seen) == 12


@pytest.mark.slow
def test_numbers_do_not_depend_on_the_number_of_workers(tmp_path: Path, norms: np.ndarray) -> None:
    run(real(), tmp_path / "s.zarr", TWO).check()
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert data["norm"].values.tobytes() == norms.tobytes()
    assert (data["threads"] == 1).all()


def test_threads_belong_to_the_specification(tmp_path: Path) -> None:
    run(real(cells=1, threads=2), tmp_path / "s.zarr", Where(workers=1)).check()
    assert (xarray.open_zarr(tmp_path / "s.zarr")["threads"] == 2).all()
    with pytest.raises(InputError, match="threads is 2, not 1"):
        run(real(cells=1), tmp_path / "s.zarr", TWO)


def test_a_cell_that_fails_keeps_its_error_and_the_others_go_on(tmp_path: Path) -> None:
    outcome = run(experiment("fails_at_two", [1, 2, 3], 2), tmp_path / "s.zarr", TWO)
    assert sorted(cell.index for cell, _ in outcome.failed) == [(1, 0), (1, 1)]
    with pytest.raises(
        IncompleteError, match=r"2 of 6 cells failed.* a = 2, seed = .: ValueError: two is not allowed \(functions.py:"
    ):
        outcome.check()
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert (data["state"] == State.DONE).values.tolist() == [[True, True], [False, False], [True, True]]
    assert "two is not allowed" in str(data["error"].values[1, 0])
    assert run(experiment("fails_at_two", [1, 2, 3], 2), tmp_path / "s.zarr", TWO).computed == 2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("wrong_shape", "ValueError: output 'y' has the shape (1,), not ()"),
        ("no_output", "output 'y' is missing; the function returned x"),
        ("nowhere", "cannot be imported"),
    ],
)
def test_a_function_that_breaks_its_promise(tmp_path: Path, function: str, message: str) -> None:
    outcome = run(experiment(function, [1]), tmp_path / "s.zarr", Where(workers=1))
    assert message in outcome.failed[0][1]


def test_a_worker_killed_in_mid_run(tmp_path: Path) -> None:
    """SIGKILL of one of two worker processes: its cell is run again, and nothing is lost."""
    one = experiment("kills_its_worker_once", list(range(8)), 2, fixed={"folder": str(tmp_path)})
    run(one, tmp_path / "s.zarr", TWO).check()
    assert (tmp_path / "killed").exists()
    data = xarray.open_zarr(tmp_path / "s.zarr")
    assert data["y"].values.tolist() == [[10.0 * a, 10.0 * a + 1] for a in range(8)]


@pytest.mark.slow
def test_a_cell_that_always_kills_its_worker_has_failed(tmp_path: Path) -> None:
    outcome = run(experiment("kills_its_worker", [0, 1, 2]), tmp_path / "s.zarr", Where(workers=1))
    failed = {cell.index: message for cell, message in outcome.failed}
    assert "the worker process died each time" in failed[(1, 0)]
    assert Store.existing(tmp_path / "s.zarr").state()[(0, 2), 0].tolist() == [State.DONE, State.DONE]


@pytest.mark.slow
def test_several_cells_that_kill_their_workers_at_once(tmp_path: Path) -> None:
    """A nanny gives up on a process that dies while it starts: the pool must not run empty."""
    outcome = run(experiment("kills_its_worker", [0, 1, 9, 2], 2), tmp_path / "s.zarr", TWO)
    assert sorted(cell.index[0] for cell, _ in outcome.failed) == [1, 1, 2, 2]
    assert all("the worker process died each time" in message for _, message in outcome.failed)
    assert int((Store.existing(tmp_path / "s.zarr").state() == State.DONE).sum()) == 4


def test_one_run_writes_at_a_time(tmp_path: Path) -> None:
    one = experiment("no_output", [1])
    with Store.open(tmp_path / "s.zarr", one), pytest.raises(StorageError, match="another run is writing to"):
        run(one, tmp_path / "s.zarr", Where(workers=1))
    Store.open(tmp_path / "s.zarr", one)


def test_a_cell_that_was_mended_has_no_error(tmp_path: Path) -> None:
    one, path = experiment("fails_at_two", [2, 3]), tmp_path / "s.zarr"
    with Store.open(path, one) as store:
        first, second = one.cells()
        store.write_error(first, "ValueError: two is not allowed", 0.1, "here")
        store.write(second, {"y": np.array(3.0)}, 0.1, "here")
        store.write(first, {"y": np.array(2.0)}, 0.1, "here")
        assert store.errors() == {}
        store.write_error(second, "ValueError: not now", 0.1, "here")
    with Store.open(path, one) as store:
        store.write(second, {"y": np.array(3.0)}, 0.1, "here")
    assert xarray.open_zarr(path)["error"].values.ravel().tolist() == ["", ""]


MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would this
sys.path.insert(0, {tests!r})
from test_run import TWO, real, run
if __name__ == "__main__":
    run(real(pause=0.2), {path!r}, TWO, lambda progress: print(progress.done, flush=True))
"""


def interrupted(path: Path, signal_number: int, script: Path) -> subprocess.Popen[str]:
    """Start a run in a process of its own and send the signal after two cells."""
    script.write_text(MAIN.format(tests=str(Path(__file__).parent), path=str(path)))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    while process.stdout.readline().strip() != "2":
        assert process.poll() is None
    os.kill(process.pid, signal_number)
    return process


@pytest.mark.slow
def test_the_main_process_killed_and_started_again(tmp_path: Path, norms: np.ndarray) -> None:
    path = tmp_path / "s.zarr"
    process = interrupted(path, signal.SIGKILL, tmp_path / "main.py")
    process.communicate(timeout=60)
    there = int((Store.existing(path).state() == State.DONE).sum())
    assert 2 <= there < 10
    outcome = run(real(pause=0.2), path, TWO)
    outcome.check()
    assert outcome.computed == 10 - there
    assert xarray.open_zarr(path)["norm"].values.tobytes() == norms.tobytes()


@pytest.mark.slow
def test_ctrl_c_says_what_is_there_and_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    process = interrupted(path, signal.SIGINT, tmp_path / "main.py")
    _, error = process.communicate(timeout=60)
    assert "gradrank.foundation.errors.Interrupted: interrupted; " in error
    assert "of 10 cells are in" in error
    assert int((Store.existing(path).state() == State.DONE).sum()) >= 2


@pytest.mark.slow
def test_processes_leave_ctrl_c_to_the_main_one(tmp_path: Path) -> None:
    """A terminal sends it to all of them: workers that took it printed their tracebacks. Also those that replace a dead one."""
    with connected(Where(workers=2), 1) as client:
        blocked = {}
        for _ in range(2):
            deadline = time.monotonic() + 60
            while len(blocked := client.run(_blocks_ctrl_c)) < 2 and time.monotonic() < deadline:
                time.sleep(0.2)
            assert list(blocked.values()) == [True, True]
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            time.sleep(1)
    assert not _blocks_ctrl_c()


def _blocks_ctrl_c() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_scheduler_that_is_there(tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        run(
            experiment("kills_its_worker_once", [1, 2], fixed={"folder": ""}),
            tmp_path / "s.zarr",
            Where(scheduler=cluster.scheduler_address),
        ).check()
    assert (Store.existing(tmp_path / "s.zarr").state() == State.DONE).all()


def test_two_runs_beside_each_other(tmp_path: Path) -> None:
    """The usual port of a dashboard is taken by the first."""
    from distributed import LocalCluster

    one = experiment("line", [], grid={"a": [0.5], "b": ["x"]}, outputs={"length": []})
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:8787", host="127.0.0.1"):
        run(one, tmp_path / "s.zarr", Where(workers=1)).check()


def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.experiments.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"scheduler: 'tcp://127\.0\.0\.1:1' does not answer"):
        run(experiment("no_output", [1]), tmp_path / "s.zarr", Where(scheduler="tcp://127.0.0.1:1"))
    assert not (tmp_path / "s.zarr").exists()
    for address in (
        "foo",
        "tls://127.0.0.1:1",
        "ucx://127.0.0.1:1",
        "tcp://ü:8786",
        "tcp://host:65536",
        "tcp://host:0",
    ):
        with pytest.raises(InputError, match=f"scheduler: '{address}' is not allowed; give an address such as tcp://"):
            Where(scheduler=address)
    Where(scheduler="tcp://[::1]:8786")
    with pytest.raises(InputError, match="scheduler: is not allowed together"):
        Where(scheduler="tcp://127.0.0.1:1", workers=2)
    with pytest.raises(InputError, match="workers: 0 is not allowed"):
        Where(workers=0)


def test_the_job_script_of_slurm(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    options = tmp_path / "slurm.toml"
    options.write_text(
        'queue = "short"\ncores = 8\nmemory = "16GB"\nwalltime = "01:00:00"\njob_extra_directives = ["--qos=low"]\n'
    )
    cluster = slurm_cluster(options, threads=2)
    try:
        script = cluster.job_script()
    finally:
        cluster.close()
    for line in (
        "#SBATCH -p short",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=15G",
        "#SBATCH -t 01:00:00",
        "#SBATCH --qos=low",
        "export OMP_NUM_THREADS=2",
    ):
        assert line in script, line
    assert "--nworkers 4" in script
    assert "--nthreads 1" in script  # one cell at a time in a process


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('cores = 1\nmemory = "1GB"\n', "cluster.cores: 1 is not allowed; give at least the 2 threads"),
        ('cores = true\nmemory = "1GB"\n', "cluster.cores: True is not allowed"),
        ('cores = 2\nmemory = "1GB"\nn_workers = 4\n', "cluster.n_workers: no such option"),
        ('cores = 2\nmemory = "1GB"\nasynchronous = true\n', "cluster.asynchronous: no such option"),
        ('cores = 2\nmemory = "1GB"\ninterface = "zz9"\n', "cluster: the options .*interface.* are not usable"),
        ("cores = 2\n", "cluster.memory: is missing"),
        ('cores = 2\nmemory = "1GB"\nque = "short"\n', "cluster.que: no such option of SLURMCluster; .* mean 'queue'"),
        ("cores", "is not TOML"),
        ('cores = 2\nmemory = "lots"\n', "cluster.memory: 'lots' is not allowed; give an amount such as"),
        (
            'cores = 4\nmemory = "1GB"\nprocesses = 0\n',
            "cluster.processes: 0 is not allowed; give 1 to 2, 2 cores for each",
        ),
        (
            'cores = 2\nmemory = "1GB"\njob_script_prologue = "module load x"\n',
            "cluster.job_script_prologue: .* a list of lines",
        ),
    ],
)
def test_options_of_slurm_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("dask_jobqueue")
    options = tmp_path / "slurm.toml"
    options.write_text(text)
    with pytest.raises(InputError, match=message):
        slurm_cluster(options, threads=2)


@pytest.mark.parametrize(
    ("sbatch", "message"),
    [
        (None, "there is no sbatch on this machine"),
        ("#!/bin/sh\necho invalid account >&2\nexit 1\n", "sbatch refuses the job .*invalid account"),
    ],
)
def test_slurm_that_takes_no_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str | None, message: str
) -> None:
    pytest.importorskip("dask_jobqueue")
    options = tmp_path / "slurm.toml"
    options.write_text('cores = 1\nmemory = "1GB"\n')
    if sbatch is not None:
        program = tmp_path / "bin" / "sbatch"
        program.parent.mkdir()
        program.write_text(sbatch)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    with pytest.raises(ClusterError, match=message):
        run(experiment("no_output", [1]), tmp_path / "s.zarr", Where(slurm=options))
    assert not (tmp_path / "s.zarr").exists()
