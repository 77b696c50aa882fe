"""Where cells run: processes of this machine, a Dask scheduler that is there, or jobs of SLURM."""

from __future__ import annotations

import inspect
import logging
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.utils

from gradrank.foundation.errors import ClusterError, InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.problem.problem import read_toml

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client, LocalCluster

CONNECT_SECONDS = 20
SUBMIT_SECONDS = 60
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
OURS = {"n_workers", "asynchronous", "loop", "job_cls", "scheduler_cls", "security", "config_name", "silence_logs"}
DEATHS = 3  # of the workers that ran a cell, after which the cell has failed
LOST_SECONDS = 2  # between looks at whether processes are missing that their nannies did not replace
ADDRESS = re.compile(r"tcp://(?:[\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", re.ASCII)
QUIET = tuple(
    f"distributed{name}" for name in ("", ".client", ".nanny", ".worker", ".core", ".scheduler", ".deploy", ".process")
)


@dataclass(frozen=True)
class Where:
    """Where to run; by default in as many processes of this machine as its cores allow at the experiment's threads."""

    workers: int | None = None  # processes on this machine; with ``slurm``: jobs
    scheduler: str | None = None  # address of a running Dask scheduler
    slurm: Path | None = None  # TOML file with the options of dask_jobqueue.SLURMCluster

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise unusable("workers", self.workers, "give a whole number of at least 1")
        if self.scheduler is not None and (self.slurm is not None or self.workers is not None):
            raise InputError("scheduler: is not allowed together with workers or a cluster; give one of them")
        if self.scheduler is not None:
            found = ADDRESS.fullmatch(self.scheduler)
            if found is None or not 0 < int(found[1]) < 2**16:
                raise unusable("scheduler", self.scheduler, "give an address such as tcp://host:8786")


@contextmanager
def connected(where: Where, threads: int) -> Iterator[Client]:
    """Connect to the workers, and release them at the end.

    Raises
    ------
    ClusterError
        If no scheduler answers, or SLURM takes no jobs.
    InputError
        If the options of SLURM are wrong.
    """
    from distributed import Client

    _quiet()
    settings: dict[str, Any] = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS} seconds",
    }
    with dask.config.set(settings):
        if where.scheduler is not None:
            try:
                client = Client(where.scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise ClusterError(f"scheduler: '{where.scheduler}' does not answer ({_first_line(error)})") from None
            with client:
                yield client
            return
        if where.slurm is not None:
            with (
                _jobs(where.slurm, threads, where.workers or 1) as cluster,
                Client(cluster, set_as_default=False) as client,
            ):
                yield client
            return
        count = where.workers or max(1, cores() // threads)
        with (
            _processes(count, threads) as cluster,
            Client(cluster, set_as_default=False) as client,
            _kept_up(cluster, count),
        ):
            yield client


@contextmanager
def shared(where: Where, threads: int) -> Iterator[Where]:
    """Start the workers once for several runs of the same threads per cell.

    Raises
    ------
    ClusterError, InputError
        As `connected`.
    """
    if where.scheduler is not None:
        yield where
        return
    with connected(where, threads) as client:
        yield Where(scheduler=client.scheduler.address)


@contextmanager
def _kept_up(cluster: LocalCluster, count: int) -> Iterator[None]:
    """Replace processes for good: a nanny gives up on one that dies while it starts, as a cell that kills it at once makes it."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(LOST_SECONDS):
            if len(cluster.scheduler_info["workers"]) < count:
                cluster.scale(count)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _jobs(options: Path, threads: int, count: int) -> SLURMCluster:
    """Submit jobs, once SLURM has said that it would take them: Dask only logs a refusal, and would wait forever."""
    cluster = slurm_cluster(options, threads)
    try:
        _require_accepted(cluster.job_script())
    except ClusterError:
        cluster.close()
        raise
    cluster.scale(jobs=count)
    return cluster


def _require_accepted(script: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(script)
        file.flush()
        try:
            found = subprocess.run(
                ["sbatch", "--test-only", file.name], capture_output=True, text=True, timeout=SUBMIT_SECONDS
            )
        except FileNotFoundError:
            raise ClusterError(
                "cluster: there is no sbatch on this machine; start from a login node of the cluster"
            ) from None
        except subprocess.TimeoutExpired:
            raise ClusterError(f"cluster: sbatch did not answer within {SUBMIT_SECONDS} seconds") from None
    if found.returncode:
        reason = " ".join(f"{found.stderr} {found.stdout}".split())
        raise ClusterError(f"cluster: sbatch refuses the job ({reason[-300:]})")


def _processes(count: int, threads: int) -> LocalCluster:
    """Start processes of this machine."""
    from distributed import LocalCluster

    # The libraries read these when they are loaded, so they must be there before the worker's Python starts.
    environment = {**dict.fromkeys(THREAD_VARIABLES, threads), "DASK_LOGGING__DISTRIBUTED": "critical"}
    with dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in environment.items()}):
        # The cluster's thread and its processes inherit that they take no Ctrl-C, which is for this process to handle.
        resource_tracker.ensure_running()  # its start, by the first process, would let Ctrl-C through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # any free port: another run may have the usual one
                host="127.0.0.1",
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def slurm_cluster(options: Path, threads: int) -> SLURMCluster:
    """Return a cluster of SLURM jobs with the options of a TOML file, a process per ``threads`` cores.

    The file holds arguments of `dask_jobqueue.SLURMCluster` by name: queue, account, cores, memory, walltime, processes,
    job_extra_directives and so on. ``processes`` is cores/threads where it is left out.

    Raises
    ------
    InputError
        If the file cannot be read, an option is wrong, or dask-jobqueue is not installed.
    """
    try:
        from dask_jobqueue import SLURMCluster
        from dask_jobqueue.core import Job, JobQueueCluster
        from dask_jobqueue.slurm import SLURMJob
    except ImportError:
        raise InputError("cluster: 'slurm' needs dask-jobqueue; pip install 'gradrank[cluster]'") from None
    given = read_toml(options)
    known = {name for kind in (JobQueueCluster, Job, SLURMJob) for name in inspect.signature(kind).parameters} - OURS
    for name in given:
        if name not in known:
            raise InputError(f"cluster.{name}: no such option of SLURMCluster; {allowed_names(name, known)}")
    if "memory" not in given:
        raise InputError("cluster.memory: is missing; give the memory of a job, such as '16GB'")
    try:
        dask.utils.parse_bytes(given["memory"])
    except (AttributeError, TypeError, ValueError):
        raise unusable("cluster.memory", given["memory"], "give an amount such as '16GB'") from None
    cores_of_job = given.setdefault("cores", threads)
    if isinstance(cores_of_job, bool) or not isinstance(cores_of_job, int) or cores_of_job < threads:
        raise unusable("cluster.cores", cores_of_job, f"give at least the {threads} threads of a cell")
    processes = given.setdefault("processes", cores_of_job // threads)
    if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= cores_of_job // threads:
        raise unusable("cluster.processes", processes, f"give 1 to {cores_of_job // threads}, {threads} cores for each")
    # Dask runs as many cells at once in a process as it believes to have cores: one, whatever the job is given.
    given["cores"] = processes
    given.setdefault("job_cpu", cores_of_job)
    own = given.get("job_script_prologue", [])
    if not isinstance(own, list) or not all(isinstance(line, str) for line in own):
        raise unusable("cluster.job_script_prologue", own, "give a list of lines")
    given["job_script_prologue"] = [*(f"export {name}={threads}" for name in THREAD_VARIABLES), *own]
    try:
        return SLURMCluster(**given)
    except Exception as error:  # whatever Dask or the network raises for them
        raise InputError(f"cluster: the options {', '.join(given)} are not usable ({_first_line(error)})") from None


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _quiet() -> None:
    """Keep Dask's log off the terminal: what matters of it comes back as results."""
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
