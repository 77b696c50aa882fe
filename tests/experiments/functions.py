"""Functions of cells for the tests of the engine; importable by its workers."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import torch

import gradrank as gr


def line(a: float, b: str, seed: int) -> dict[str, object]:
    return {"y": a * np.arange(3.0) + seed, "length": len(b)}


def fails_at_two(a: int, seed: int) -> dict[str, object]:
    if a == 2:
        raise ValueError("two is\nnot allowed")
    return {"y": a + seed}


def wrong_shape(a: int, seed: int) -> dict[str, object]:
    return {"y": np.zeros(a)}


def no_output(a: int, seed: int) -> dict[str, object]:
    return {"x": 1.0}


def norms(nu: float, seed: int, pause: float = 0.0) -> dict[str, object]:
    """A real cell: floating-point work whose last digits depend on the threads."""
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80, nu=nu), network=gr.TwoLayer(m=100))
    time.sleep(pause)
    return {"norm": gr.decompose(problem.draw(seed)).norms()["residue_spike"], "threads": torch.get_num_threads()}


def kills_its_worker_once(a: int, seed: int, folder: str) -> dict[str, object]:
    """Cell 3 dies of SIGKILL the first time that it is tried."""
    marker = Path(folder) / "killed"
    if a == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": float(a * 10 + seed)}


def kills_its_worker(a: int, seed: int) -> dict[str, object]:
    """Cell 1 dies of SIGKILL each time, and cell 9 at once in whatever process is there first."""
    if a in (1, 9):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": float(a)}
