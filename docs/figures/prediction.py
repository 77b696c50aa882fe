"""Draw the three figures of docs/prediction.md: spectra, outliers with their overlaps, and where the law fails.

python docs/figures/prediction.py            # about 3 minutes on two cores, writes prediction-*.png beside itself
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import gradrank as gr
from gradrank.report.figures import png, styled

HERE = Path(__file__).parent
TARGETS = "triple-index"


def synthetic(nu: float, activation: str, alpha: float = 0.0, inner: str = "sphere") -> gr.Problem:
    """Return the paper's synthetic problem at (750, 1000, 1250)."""
    return gr.Problem(
        inputs=gr.SpikedGaussian(n=750, d=1000, nu=nu, alpha=alpha),
        targets=TARGETS,
        network=gr.TwoLayer(m=1250, activation=activation, inner=inner),
    )


def spectra() -> Figure:
    """Histograms of all singular values with the predicted density, for synthetic and real data."""
    mnist = gr.DataSetInputs(name="mnist-5k", n=750, standardise="symmetric-range")
    cases = {
        "ν = 0.3, α = 0, Sigmoid": synthetic(0.3, "sigmoid"),
        "ν = 1/8, α = 5/9, ReLU": synthetic(1 / 8, "relu", 5 / 9),
        "ν = 3/4, α = 0, Tanh": synthetic(0.75, "tanh"),
        "MNIST pixels in [−1, 1], Tanh": gr.Problem(
            inputs=mnist, targets="one-vs-rest", network=gr.TwoLayer(activation="tanh")
        ),
    }
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    for axes, (title, problem) in zip(figure.subplots(2, 2).flat, cases.items(), strict=True):
        draw = problem.draw(0)
        values = gr.decompose(draw).gradient.singular_values()
        prediction = gr.predict_spectrum(draw)
        compared = prediction.compare(values)
        kept = values.numpy()[: prediction.size]
        bins = np.geomspace(kept[-1], kept[0] * 1.01, 70)
        axes.hist(kept, bins=bins.tolist(), color="0.85", edgecolor="0.6", linewidth=0.3, label="measured")
        expected = -np.diff(
            prediction.bulk.above(bins)
        )  # counts: a band of its own is drawn within its bin, not as a comb
        axes.plot(np.sqrt(bins[:-1] * bins[1:]), expected, color="0.0", linewidth=1.2, label="predicted")
        outliers = [outlier.value for outlier in prediction.outliers]
        axes.plot(outliers, np.full(len(outliers), 1.6), "v", color="0.0", fillstyle="none", label="predicted outliers")
        measured, zeros = kept[: len(outliers)], np.zeros(len(outliers))
        axes.plot(measured, zeros, "|", color="0.0", markersize=11, clip_on=False, label="measured outliers")
        axes.axvline(prediction.upper_edge, color="0.0", linewidth=0.6, linestyle="--", label="predicted edge")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=2)
        axes.set_ylim(0, None)
        axes.set_title(f"{title}: KS {compared.ks:.4f}", loc="left")
        axes.set_xlabel("singular value")
        axes.set_ylabel("count")
    figure.axes[0].legend(loc="upper right", fontsize=7)
    return figure


def outliers() -> Figure:
    """Positions and overlaps of the outliers over draws of the weights at fixed data."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    positions, overlaps = figure.subplots(1, 2)
    for nu, marker in ((0.15, "o"), (0.3, "s"), (0.45, "^")):
        problem = synthetic(nu, "relu")
        base = problem.draw(0)
        for seed in range(8):
            draw = replace(base, network=problem.network.draw(base.inputs, seed))
            prediction = gr.predict_spectrum(draw)
            leading = gr.decompose(draw).gradient.top(len(prediction.outliers))
            left, _ = leading.vectors()
            for index, outlier in enumerate(prediction.outliers):
                label = f"ν = {nu}" if seed == index == 0 else None
                positions.plot(outlier.value, float(leading.values[index]), marker, color="0.3", fillstyle="none")
                cosine = float(left[:, index].double() @ outlier.direction)
                overlaps.plot(outlier.overlap, cosine**2, marker, color="0.3", fillstyle="none", label=label)
    for axes, name in ((positions, "singular value"), (overlaps, "squared overlap")):
        ends = axes.get_xlim()
        axes.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
        axes.set_xlabel(f"predicted {name}")
        axes.set_ylabel(f"measured {name}")
    positions.set_xscale("log")
    positions.set_yscale("log")
    overlaps.legend()
    return figure


def failures() -> Figure:
    """Distance of measured from predicted spectra against ν: without and with conditioning, and for trained weights."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    against_nu, trained = figure.subplots(1, 2)
    nus = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
    for kind, line in (("none", "o--"), ("auto", "s-")):
        distances = []
        for nu in nus:
            draw = synthetic(float(nu), "tanh").draw(0)
            prediction = gr.predict_spectrum(draw, conditioning=kind)
            distances.append(prediction.compare(gr.decompose(draw).gradient.singular_values()).ks)
        against_nu.plot(nus, distances, line, color="0.2", fillstyle="none", label=f"conditioning = {kind!r}")
    against_nu.set_xlabel("spike exponent ν (Tanh, α = 0)")
    draw = synthetic(0.3, "tanh").draw(0)
    steps, distances = [0, 1, 2, 5, 10, 20], []
    W = draw.network.W.clone()
    for step in range(max(steps) + 1):
        moved = replace(draw, network=replace(draw.network, W=W))
        gradient = gr.decompose(moved).gradient
        if step in steps:
            plain = gr.predict_spectrum(
                draw.X, residue=moved.residue, activation="tanh", scale=draw.network.gamma, m=draw.network.m
            )
            distances.append(plain.compare(gradient.singular_values()).ks)
        W = W - (1.0 / draw.network.gamma) * gradient.dense().T
    trained.plot(steps, distances, "o-", color="0.2", fillstyle="none")
    trained.set_xlabel("steps of gradient descent on W (ν = 0.3)")
    trained.set_xticks(steps, [str(step) for step in steps])
    for axes in (against_nu, trained):
        axes.set_yscale("log")
        axes.set_ylabel("KS distance")
    against_nu.legend()
    return figure


if __name__ == "__main__":
    for name, draw_figure in (("spectra", spectra), ("outliers", outliers), ("failures", failures)):
        (HERE / f"prediction-{name}.png").write_bytes(png(styled(draw_figure)))
