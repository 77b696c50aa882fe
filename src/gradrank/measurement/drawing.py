"""Figures and the page of a measurement, from the general parts of `gradrank.report`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tomli_w
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradrank.measurement.ensemble import Ensemble, Mean
from gradrank.measurement.record import Measurement
from gradrank.measurement.wording import PART_LABELS, headline, labelled_directions, remarks, tables
from gradrank.report.figures import Expectation, alignment_panel, interval_panel, png, singular_value_panel, styled
from gradrank.report.page import Page, Picture, Section
from gradrank.version import __version__

SPIKES = ("residue_spike", "interpolant", "data_spike", "jacobian_spike")
CITATION = (
    "Cite gradrank (CITATION.cff of the repository) and the source of the decomposition: R. Sonthalia, M. Murray and "
    "G. Montúfar, Low Rank Gradients and Where to Find Them, NeurIPS 2025, arXiv:2510.01303."
)
CAPTIONS = {
    "spectrum": "Singular values of the gradient (ticks: the leading ones, or those above the predicted edge); vertical lines: "
    "spectral norms of its parts; curve, edge and triangles: the spectrum predicted from inputs and residue alone.",
    "norms": "Spectral norms of the gradient and of its parts: mean and standard error over the seeds.",
    "alignments": "|cosine| of the leading singular vectors with named directions; pale italics: within three times chance.",
}


def figures(result: Measurement | Ensemble) -> dict[str, Figure]:
    """Return the figures by name."""
    if isinstance(result, Ensemble):
        first = ("norms", lambda axes: _norms(result, axes))
    else:
        first = ("spectrum", lambda axes: _spectrum(result, axes))

    def single() -> Figure:
        figure = Figure(figsize=(6.4, 3.6))
        first[1](figure.subplots())
        return figure

    def alignments() -> Figure:
        left, right = _alignment_rows(result)
        figure = Figure(figsize=(6.4, 0.9 + 0.27 * (len(left) + len(right))), layout="constrained")
        _draw_alignments(result, list(figure.subplots(2, 1, height_ratios=[max(1, len(left)), max(1, len(right))])))
        return figure

    return {first[0]: styled(single), "alignments": styled(alignments)}


def pictures(result: Measurement | Ensemble) -> dict[str, bytes]:
    """Return the figures as PNG."""
    return {name: png(figure) for name, figure in figures(result).items()}


def overview(one: Measurement) -> Figure:
    """Return both figures of a measurement in one."""
    return _overview(one, lambda axes: _spectrum(one, axes))


def ensemble_overview(many: Ensemble) -> Figure:
    """Return both figures of an ensemble in one."""
    return _overview(many, lambda axes: _norms(many, axes))


def _overview(result: Measurement | Ensemble, first: object) -> Figure:
    def draw() -> Figure:
        figure = Figure(figsize=(11, 3.8), layout="constrained")
        spec = figure.add_gridspec(2, 2, height_ratios=[2, 1])
        first(figure.add_subplot(spec[:, 0]))  # type: ignore[operator]
        _draw_alignments(result, [figure.add_subplot(spec[0, 1]), figure.add_subplot(spec[1, 1])])
        return figure

    return styled(draw)


def _spectrum(one: Measurement, axes: Axes) -> None:
    marks = {PART_LABELS[name]: one.norms[name] for name in (*SPIKES, "remainder") if name in one.norms}
    expected = None
    if one.spectrum_prediction is not None:
        edge, rows = one.spectrum_prediction["edge"], one.spectrum_prediction["outliers"]
        outliers = [row["predicted"] for row in rows if row["predicted"] is not None]
        measured = [row["measured"] for row in rows if row["measured"] > edge]
        expected = Expectation(one.prediction_curve, edge, outliers, measured)
    singular_value_panel(axes, one.singular_values, marks, one.k, complete=one.full_spectrum, expected=expected)


def _norms(many: Ensemble, axes: Axes) -> None:
    rows = {PART_LABELS[name]: (mean.mean, mean.standard_error) for name, mean in many.norms.items()}
    interval_panel(axes, rows, f"spectral norm, mean ± standard error of {len(many.seeds)} seeds")


def _alignment_rows(result: Measurement | Ensemble) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    table = result.alignments

    def rows(letter: str, names: list[str]) -> dict[str, list[float]]:
        return {name: [_mean(table[f"{letter}{index + 1}"][name]) for index in range(one.k)] for name in names}

    return rows("u", list(one.left_alignments)), rows("v", list(one.right_alignments))


def _draw_alignments(result: Measurement | Ensemble, axes: list[Axes]) -> None:
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    left, right = _alignment_rows(result)
    ranks = range(1, one.k + 1)
    alignment_panel(
        axes[0], labelled_directions(left), [f"$u_{{{i}}}$" for i in ranks], one.chance["left"], "left vectors"
    )
    alignment_panel(
        axes[1], labelled_directions(right), [f"$v_{{{i}}}$" for i in ranks], one.chance["right"], "right vectors"
    )


def _mean(value: float | Mean) -> float:
    return value.mean if isinstance(value, Mean) else value


def sections(result: Measurement | Ensemble, images: dict[str, bytes]) -> list[Section]:
    """Return the result as sections of a page."""
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    drawn = [Picture(image, CAPTIONS[name]) for name, image in images.items()]
    seconds = float(np.sum([m.seconds for m in result.measurements])) if isinstance(result, Ensemble) else one.seconds
    made = f"gradrank {__version__}, " + ", ".join(
        f"{name} {value}" for name, value in one.environment.items() if name != "gradrank"
    )
    return [
        Section("What was found", [headline(result), *remarks(result)], tables(result)),
        Section("Figures", pictures=drawn),
        Section(
            "The problem",
            ["Save as problem.toml and run: gradrank measure --spec problem.toml"],
            code=tomli_w.dumps(one.description),
        ),
        Section("How it was made", [f"{made}; {seconds:.2f} s.", CITATION]),
    ]


def combined_page(titled: Mapping[str, tuple[Measurement | Ensemble, dict[str, bytes]]]) -> str:
    """Return one self-contained page of several results, each under its title."""
    parts = [
        Section(
            f"{title}: {section.heading.lower()}", section.paragraphs, section.tables, section.pictures, section.code
        )
        for title, (result, images) in titled.items()
        for section in sections(result, images)
    ]
    return Page("Low-rank structure of gradients", " · ".join(titled), parts).html()


def page(result: Measurement | Ensemble, images: dict[str, bytes]) -> str:
    """Return the self-contained HTML page of a result."""
    return Page("Low-rank structure of a gradient", headline(result), sections(result, images)).html()
