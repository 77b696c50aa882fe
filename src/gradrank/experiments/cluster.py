"""Where cells run: processes of this machine, a Dask scheduler that is there, or jobs of SLURM."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask

from gradrank.foundation.errors import ClusterError, InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.problem.problem import read_toml

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client

CONNECT_SECONDS = 20
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DEATHS = 3  # of the workers that ran a cell, after which the cell has failed
QUIET = ("distributed", "distributed.nanny", "distributed.worker", "distributed.core", "distributed.scheduler")


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


@contextmanager
def connected(where: Where, threads: int) -> Iterator[Client]:
    """Connect to the workers, and release them at the end.

    Raises
    ------
    ClusterError
        If no scheduler answers.
    InputError
        If the options of SLURM are wrong.
    """
    from distributed import Client

    _quiet()
    settings: dict[str, Any] = {"distributed.scheduler.allowed-failures": DEATHS}
    with dask.config.set(settings):
        if where.scheduler is not None:
            try:
                client = Client(where.scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise ClusterError(f"scheduler: '{where.scheduler}' does not answer ({_first_line(error)})") from None
            with client:
                yield client
            return
        with _cluster(where, threads) as cluster, Client(cluster, set_as_default=False) as client:
            yield client


def _cluster(where: Where, threads: int) -> Any:
    """Return processes of this machine, or jobs."""
    if where.slurm is not None:
        cluster = slurm_cluster(where.slurm, threads)
        cluster.scale(jobs=where.workers or 1)
        return cluster
    from distributed import LocalCluster

    # The libraries read these when they are loaded, so they must be there before the worker's Python starts.
    environment = {**dict.fromkeys(THREAD_VARIABLES, threads), "DASK_LOGGING__DISTRIBUTED": "critical"}
    with dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in environment.items()}):
        return LocalCluster(
            n_workers=where.workers or max(1, cores() // threads),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port: another run may have the usual one
            host="127.0.0.1",
        )


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
    known = {name for kind in (JobQueueCluster, Job, SLURMJob) for name in inspect.signature(kind).parameters}
    for name in given:
        if name not in known:
            raise InputError(f"cluster.{name}: no such option of SLURMCluster; {allowed_names(name, known)}")
    if "memory" not in given:
        raise InputError("cluster.memory: is missing; give the memory of a job, such as '16GB'")
    cores_of_job = given.setdefault("cores", threads)
    if not isinstance(cores_of_job, int) or cores_of_job < threads:
        raise unusable("cluster.cores", cores_of_job, f"give at least the {threads} threads of a cell")
    given.setdefault("processes", cores_of_job // threads)
    lines = [f"export {name}={threads}" for name in THREAD_VARIABLES]
    given["job_script_prologue"] = [*lines, *given.get("job_script_prologue", [])]
    return SLURMCluster(**given)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _quiet() -> None:
    """Keep Dask's log off the terminal: what matters of it comes back as results."""
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
