"""A law beside measured values, on a law whose distances are known: uniform on [0, 1]."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike
from scipy.stats import kstest

from gradrank.foundation.errors import InputError
from gradrank.gradient.spectrum_comparison import compare
from gradrank.gradient.spectrum_prediction import Outlier, SpectrumPrediction
from gradrank.linalg.spectrum import Spectrum


@dataclass(frozen=True)
class Uniform:
    """``number`` values evenly on [0, 1]; anything beyond the edge has a p-value of exp(−100 (x − 1))."""

    number: int

    @property
    def edges(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0)]

    @property
    def upper_edge(self) -> float:
        return 1.0

    def above(self, x: ArrayLike) -> np.ndarray:
        return self.number * (1.0 - np.clip(x, 0.0, 1.0))

    def number_density(self, x: ArrayLike) -> np.ndarray:
        at = np.asarray(x)
        return np.where((at > 0) & (at < 1), float(self.number), 0.0)

    def p_value(self, x: float) -> float:
        return math.exp(-100.0 * max(0.0, x - 1.0))


def prediction(size: int, *outliers: float) -> SpectrumPrediction:
    found = tuple(Outlier(value, 0.97, torch.ones(3)) for value in outliers)
    return SpectrumPrediction(
        (size, size, size), size, found, Uniform(size - len(outliers)), "by hand", 0.0, resolution=1e-9
    )


def test_the_quantiles_of_the_law_are_half_a_step_away() -> None:
    values = (np.arange(50) + 0.5) / 50
    assert prediction(50).compare(values).ks == pytest.approx(0.01)
    assert compare(prediction(50), values[::-1].copy()).ks == pytest.approx(0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).random(40) ** 1.5
    found = prediction(40).compare(values)
    assert found.ks == pytest.approx(kstest(values, "uniform").statistic, rel=1e-12)
    assert found.status == "ok"


def test_predicted_outliers_are_steps() -> None:
    """98 values on the bulk's quantiles and two outliers: the law is 0.98 x, and steps at 2 and 3."""
    bulk = (np.arange(98) + 0.5) / 98
    exact = prediction(100, 3.0, 2.0).compare([3.0, 2.0, *bulk])
    assert exact.ks == pytest.approx(0.005)
    assert [pair.difference for pair in exact.outliers] == [0.0, 0.0]
    moved = prediction(100, 3.0, 2.0).compare([3.3, 1.9, *bulk])
    assert moved.ks == pytest.approx(0.01)  # between predicted and measured place one value is on the wrong side
    assert [(pair.predicted, pair.measured) for pair in moved.outliers] == [(3.0, 3.3), (2.0, 1.9)]
    assert [pair.difference for pair in moved.outliers] == pytest.approx([0.1, -0.05])
    assert moved.measured_outliers == 2
    none = prediction(100, 3.0, 2.0).compare([1.0, 0.999, *bulk])
    assert none.measured_outliers == 0
    assert [pair.measured for pair in none.outliers] == [1.0, 0.999]


def test_measured_outliers_that_were_not_predicted() -> None:
    values = [4.0, 2.0, 1.2, *(np.arange(97) + 0.5) / 97]
    found = prediction(100, 4.0).compare(values)
    assert found.measured_outliers == 3
    assert [(pair.predicted, pair.measured) for pair in found.outliers] == [(4.0, 4.0), (None, 2.0), (None, 1.2)]
    assert [pair.difference for pair in found.outliers] == [0.0, None, None]
    assert found.edge == 1.0


def test_every_measured_outlier_is_counted_and_twenty_are_shown() -> None:
    found = prediction(100).compare(np.linspace(2, 3, 100))
    assert found.measured_outliers == 100
    assert len(found.outliers) == 20
    assert found.ks == pytest.approx(1.0)
    many = prediction(100, *np.linspace(3, 2, 30)).compare(np.linspace(2, 3, 100))
    assert len(many.outliers) == 30


def test_the_level_of_a_measured_outlier() -> None:
    at = 1.0 + math.log(100) / 100  # p = 0.01
    values = (np.arange(99) + 0.5) / 99
    assert prediction(100).compare([at + 1e-6, *values]).measured_outliers == 1
    assert prediction(100).compare([at - 1e-6, *values]).measured_outliers == 0


def test_the_leading_values_alone_give_no_distance() -> None:
    found = prediction(100, 3.0, 2.0).compare([3.0, 2.1])
    assert found.ks is None
    assert found.status == "only 2 of 100 singular values are given: no distance"
    assert [pair.measured for pair in found.outliers] == [3.0, 2.1]
    assert len(prediction(100, 3.0, 2.0).compare([3.0]).outliers) == 1


def test_values_beyond_the_size_and_below_the_resolution_are_zeros() -> None:
    values = (np.arange(50) + 0.5) / 50
    padded = np.concatenate([values, np.full(10, 1e-12)])
    assert prediction(50).compare(padded).ks == pytest.approx(0.01)
    half = np.concatenate([values[:25], np.full(25, 1e-10)])  # half of them are zero to rounding
    assert prediction(50).compare(half).ks == pytest.approx(0.51)  # at 0.49, where all of them lie at or below


def test_kinds_of_input() -> None:
    values = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    expected = prediction(50).compare(values).ks
    assert expected is not None
    spectrum = Spectrum(values.flip(0), None, None, None, True, "by hand")
    assert prediction(50).compare(spectrum).ks == expected
    assert prediction(50).compare(values.tolist()).ks == expected
    assert prediction(50).compare(values.float()).ks == pytest.approx(expected, abs=1e-6)
    assert prediction(50).compare(values.bfloat16()).ks == pytest.approx(expected, abs=1e-2)
    warned = replace(prediction(50), status="min(n, d, m) < 50: the limit is a rough guide")
    assert warned.compare(values).status == warned.status


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [[1.0, 2.0]],
        [1.0, -0.1],
        [1.0, math.nan],
        [math.inf],
        ["a"],
        [True, False],
        [1j],
        [[1.0], [1.0, 2.0]],
        None,
        "spectrum",
        1.0,
        torch.zeros(0),
    ],
)
def test_unusable_values_are_named_in_one_line(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^spectrum: ") as caught:
        prediction(5).compare(wrong)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
