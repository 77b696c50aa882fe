"""Print how much a prediction raises the peak memory, in units of 8 (n² + nd) bytes; the argument is n."""

import sys
from pathlib import Path

import gradrank as gr


def peak() -> int:
    """Return the largest resident set since the last reset, in bytes; ru_maxrss would start at the parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


n = int(sys.argv[1])
d, m = 4 * n // 3, 5 * n // 3
small = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=100)).draw(0)
gr.predict_spectrum(small)  # loads what is loaded once
draw = gr.Problem(inputs=gr.SpikedGaussian(n=n, d=d), network=gr.TwoLayer(m=m)).draw(0)
assert draw.residue.shape == (n,)
Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
before = peak()
gr.predict_spectrum(draw)
sys.stdout.write(f"{(peak() - before) / (8 * (n * n + n * d))}\n")
