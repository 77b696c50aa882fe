"""The main job on a synthetic problem and on real digits: tables here, figures and one page in a folder.

Run it as ``make demo`` or ``python examples/demo.py FOLDER``.
"""

import sys
from pathlib import Path

from rich.console import Console

import gradrank as gr

synthetic = gr.Problem(
    inputs=gr.SpikedGaussian(n=750, d=1000, nu=0.3, alpha=0.0),
    targets="triple-index",
    network=gr.TwoLayer(m=1250, activation="sigmoid", scaling="ntk", inner="sphere"),
    loss="mse",
)
digits = gr.Problem(
    inputs=gr.DataSetInputs(name="mnist-5k", n=750, standardise="zscore"),
    targets=gr.LabelTargets(coding="one-vs-rest", positive=0),
    network=gr.TwoLayer(m=1250, activation="tanh", scaling="ntk", inner="sphere"),
    loss="logistic",
)

results = {
    "Synthetic: one spike in Gaussian inputs": gr.measure(synthetic),
    "Real digits: MNIST, 0 against the rest": gr.measure(digits),
}
console = Console(highlight=False, markup=False)
for title, result in results.items():
    console.print(f"\n{title}", style="bold")
    gr.show(result, console)

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
page = gr.write_page(results, folder, overwrite=True)
console.print(f"\npage with all figures: {page.resolve()}", soft_wrap=True)
