"""Prints the growth of resident memory of one report after the draw, at the large size; run as a process of its own."""

import ctypes
import gc
import re
from pathlib import Path

import gradrank as gr

N, D, M = 3000, 4000, 5000


def resident(field: str) -> int:
    """Return VmRSS or VmHWM of this process in bytes."""
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match
    return int(match.group(1)) * 1024


def main() -> None:
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=N, d=D), network=gr.TwoLayer(m=M), dtype="float32")
    small = gr.Problem(inputs=gr.SpikedGaussian(n=200, d=300), network=gr.TwoLayer(m=400), dtype="float32").draw(0)
    gr.decompose(small).norms()  # libraries and their work space are loaded before the measurement
    draw = problem.draw(0)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # start the peak anew
    parts = gr.decompose(draw)
    parts.leading(10)
    parts.norms()
    parts.alignments()
    budget = 4 * (N * D + M * D + N * M)
    print((resident("VmHWM") - before) / budget)


if __name__ == "__main__":
    main()
