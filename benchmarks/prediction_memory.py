"""Print how much a prediction raises the peak memory, in units of 8 (n² + nd) bytes; the argument is n."""

import resource
import sys

import gradrank as gr

n = int(sys.argv[1])
d, m = 4 * n // 3, 5 * n // 3
small = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=100)).draw(0)
gr.predict_spectrum(small)  # loads what is loaded once
draw = gr.Problem(inputs=gr.SpikedGaussian(n=n, d=d), network=gr.TwoLayer(m=m)).draw(0)
assert draw.residue.shape == (n,)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gr.predict_spectrum(draw)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.stdout.write(f"{1024 * (after - before) / (8 * (n * n + n * d))}\n")
