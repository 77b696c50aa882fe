"""The predicted spectrum against one eigendecomposition of the same size, and its memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest
import torch

import gradrank as gr

SECTION = "Predicted spectrum, (750, 1000, 1250) float64"
CASES = {"sigmoid": 0.3, "relu": 0.3, "tanh": 0.45}


def drawn(nu: float, activation: str) -> gr.Draw:
    problem = gr.Problem(inputs=gr.SpikedGaussian(nu=nu), network=gr.TwoLayer(activation=activation))
    draw = problem.draw(0)
    assert draw.residue.shape == (750,)  # formed before the clock starts
    return draw


@pytest.mark.parametrize(("activation", "nu"), CASES.items())
def test_prediction(activation: str, nu: float, clock: Callable, ledger) -> None:
    """Time the prediction and the eigendecomposition in turn."""
    draw = drawn(nu, activation)
    eigen: list[float] = []

    def eigendecomposition() -> tuple[tuple[gr.Draw], dict]:
        gram = draw.X @ draw.X.T
        begin = perf_counter()
        torch.linalg.eigh(gram)
        eigen.append(perf_counter() - begin)
        return (draw,), {}

    clock(f"prediction {activation}", gr.predict_spectrum, setup=eigendecomposition, rounds=9)
    seconds = ledger.seconds[f"prediction {activation}"]
    ledger.row(
        SECTION,
        f"{activation}, ν = {nu}: prediction over an n × n eigendecomposition",
        f"{seconds / median(eigen):.2f} × ({1e3 * seconds:.0f} ms)",
        "below 6 ×, below 1000 ms",
    )


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_conditioned_prediction(activation: str, clock: Callable, ledger) -> None:
    draw = drawn(0.75, activation)
    clock(f"conditioned {activation}", gr.predict_spectrum, setup=lambda: ((draw,), {}), rounds=1)
    seconds = ledger.seconds[f"conditioned {activation}"]
    ledger.row(SECTION, f"{activation}, ν = 0.75, conditioned on κ", f"{seconds:.1f} s", "below 60 s")


def test_memory(benchmark, ledger) -> None:
    """Measure, in processes of their own, the growth of the peak memory at two sizes: O(n² + nd)."""
    program = Path(__file__).with_name("prediction_memory.py")

    def growth() -> list[float]:
        sizes = ("750", "1500")
        return [
            float(subprocess.run([sys.executable, program, n], capture_output=True, text=True, check=True).stdout)
            for n in sizes
        ]

    small, large = benchmark.pedantic(growth, rounds=1, iterations=1)
    ledger.row(
        SECTION,
        "growth of the peak memory over 8 (n² + nd) bytes, n = 750 and 1500 with d = 4n/3",
        f"{small:.1f} × and {large:.1f} ×",
        "the same order: O(n² + nd)",
    )
