import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from gradrank.report.figures import alignment_panel, interval_panel, png, singular_value_panel, styled


def drawn(values: np.ndarray, *, complete: bool) -> Figure:
    figure = Figure()
    singular_value_panel(figure.subplots(), values, {"spike": 0.5}, 3, complete=complete)
    return figure


def test_histogram_counts_every_positive_value() -> None:
    values = np.sort(np.random.default_rng(0).uniform(0.01, 1, 200))[::-1]
    figure = drawn(np.append(values, np.zeros(50)), complete=True)
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert sum(heights) == 200


def test_spikes_are_marked_and_named() -> None:
    figure = drawn(np.array([1.0, 0.1, 0.05]), complete=True)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["leading values", "spike"]
    assert any(np.allclose(line.get_xdata(), 0.5) for line in figure.axes[0].lines)


@pytest.mark.parametrize("values", [np.zeros(5), np.array([0.3]), np.full(4, 0.2)])
@pytest.mark.parametrize("complete", [True, False])
def test_degenerate_spectra_render(values: np.ndarray, complete: bool) -> None:
    assert png(drawn(values, complete=complete)).startswith(b"\x89PNG")


def test_withheld_cosines_are_dashes() -> None:
    figure = Figure()
    alignment_panel(figure.subplots(), {"q": [0.9, np.nan]}, ["u1", "u2"], 0.02, "left")
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.90", "–"]


def test_intervals_leave_out_zero_norms() -> None:
    figure = Figure()
    interval_panel(figure.subplots(), {"a": (1.0, 0.1), "zero": (0.0, 0.0)}, "norm")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a"]
    png(figure)


def test_style_leaves_the_users_settings() -> None:
    before = dict(mpl.rcParams)
    styled(lambda: mpl.rcParams["font.size"])
    assert dict(mpl.rcParams) == before
