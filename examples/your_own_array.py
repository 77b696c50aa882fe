"""From your own .npy file to a table and a plot, in Python and on the command line."""

import tempfile
from pathlib import Path

import numpy as np

import gradrank as gr

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
X = rng.standard_normal((400, 300)) + 3.0 * np.outer(rng.standard_normal(400), np.ones(300) / 300**0.5)
np.save(folder / "mine.npy", X)

# The same as: gradrank measure --data mine.npy --activation relu -o result
problem = gr.Problem(inputs=gr.FileInputs(path=folder / "mine.npy"), network=gr.TwoLayer(m=500, activation="relu"))
result = gr.measure(problem)
print("norms", {name: round(norm, 4) for name, norm in result.norms.items()})
print("shares", {name: round(share, 3) for name, share in result.shares.items()})
print("page", result.save(folder / "result"))

# An array in memory works too, with your labels.
y = np.sign(X[:, 0])
labelled = gr.Problem(inputs=gr.ArrayInputs(X=X, y=y), targets="signs", network=gr.TwoLayer(m=500), loss="logistic")
result = gr.measure(labelled)
print("u1 with q", round(result.alignments["u1"]["q"], 3), "by chance", round(result.chance["left"], 3))
