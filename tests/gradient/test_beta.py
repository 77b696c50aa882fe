"""β against cases whose alignment has a known law, and the regression against SciPy's."""

import json
import math

import numpy as np
import pytest
from scipy.stats import linregress

import gradrank as gr
from gradrank.foundation.errors import InputError
from gradrank.gradient.beta import estimate_beta
from gradrank.gradient.residue_alignment import residue_alignment

SMALL = (20, 30, 45, 68, 100)


def problem(nu: float = 0.0, inner: str = "sphere", scaling: str | float = "ntk", **targets: object) -> gr.Problem:
    return gr.Problem(
        inputs=gr.SpikedGaussian(n=75, d=100, nu=nu),
        targets=gr.MultiIndex(**targets),
        network=gr.TwoLayer(m=125, inner=inner, scaling=scaling),
    )


def test_a_residue_independent_of_the_scores() -> None:
    """Then zᵀr/‖r‖ ~ N(0, 1): β = 1, with the mean −(γ + ln 2)/2 and the deviation π/√8 of ln|N(0, 1)|."""
    independent = problem(on="bulk", inner="orthogonal")
    found = estimate_beta(independent, sizes=SMALL, seeds=60)
    assert found.beta_error < 0.3
    assert abs(found.beta - 1.0) < 3 * found.beta_error
    exact = -(np.euler_gamma + math.log(2)) / 2 - math.log(0.75) / 2
    assert abs(found.intercept - exact) < 3 * found.intercept_error
    # ln|N| has the fourth moment 7 variance²: the variance of 300 draws has the relative error √(6/300), its root half.
    assert found.scatter == pytest.approx(math.pi / math.sqrt(8), rel=3 * math.sqrt(6 / 300) / 2)
    assert found.curvature_p_value > 0.001
    assert found.shapes[0] == (15, 20, 25)
    assert found.shapes[-1] == (75, 100, 125)


def test_a_residue_along_the_scores() -> None:
    """y = qᵀx = ζz + N(0, 1) and an output near zero: the alignment tends to 1/√2 for ζ = 1, and β = 0."""
    along = problem(scaling=1e-9, links="linear", directions="aligned", noise=0.0)
    found = estimate_beta(along, sizes=SMALL, seeds=40)
    assert found.beta_error < 0.07
    assert abs(found.beta) < 3 * found.beta_error
    assert abs(found.intercept + math.log(2) / 2) < 3 * found.intercept_error


@pytest.mark.slow
@pytest.mark.parametrize("nu", [0.0, 0.25, 0.4])
def test_random_directions_give_one_less_twice_nu(nu: float) -> None:
    """y = bᵀx = ζ (bᵀq) z + N(0, 1) with bᵀq ~ N(0, 1/d): an alignment of about √(ζ²/d + 1/n) |N(0, 1)|.

    The slope of that over these sizes is asked for, which tends to 1 − 2ν.
    """
    sizes = (60, 90, 135, 200, 300)
    found = estimate_beta(problem(nu, scaling=1e-9, links="linear", noise=0.0), sizes=sizes, seeds=300)
    d = np.array(sizes, dtype=float)
    n = np.round(0.75 * d)
    rng = np.random.default_rng(0)
    b, g = rng.standard_normal((2, 200_000))
    along = n[:, None] ** nu * b / np.sqrt(d)[:, None]
    logs = np.log(np.abs(along + g / np.sqrt(n)[:, None]) / np.sqrt(1 + along**2)).mean(axis=1)
    expected = -2 * linregress(np.log(d), logs).slope
    assert abs(expected - (1 - 2 * nu)) < 0.2
    assert found.beta_error < 0.13
    assert abs(found.beta - expected) < 3 * found.beta_error


@pytest.mark.slow
def test_the_default_problem() -> None:
    """Triple-index targets with ν = 0 and random directions: 1; with a target along q: 0, up to what small sizes add."""
    found = estimate_beta(problem(), seeds=200)
    assert abs(found.beta - 1.0) < 3 * found.beta_error
    aligned = estimate_beta(problem(directions=("aligned", "random", "random")), seeds=100)
    assert abs(aligned.beta) < 3 * aligned.beta_error


def test_the_regression_is_that_of_the_draws() -> None:
    """The same draws, one by one, and SciPy's regression on all of them."""
    sizes, seeds, base = (20, 40, 30), 8, problem(0.2)
    found = estimate_beta(base, sizes=sizes, seeds=seeds, seed=5)
    x, y = [], []
    for index, d in enumerate(sorted(sizes)):
        sized = problem(0.2)
        inputs, network = gr.SpikedGaussian(n=round(0.75 * d), d=d, nu=0.2), gr.TwoLayer(m=round(1.25 * d))
        sized = gr.Problem(inputs=inputs, network=network)
        for seed in range(seeds):
            draw = sized.draw(5 + index * seeds + seed)
            x.append(math.log(d))
            y.append(math.log(residue_alignment(draw.inputs.scores, draw.residue)))
    line = linregress(x, y)
    assert found.sizes == (20, 30, 40)
    assert found.beta == pytest.approx(-2 * line.slope, rel=1e-12)
    assert found.intercept == pytest.approx(line.intercept, rel=1e-12)
    # SciPy's errors hold the scatter about the line, with 22 degrees of freedom; ours that within sizes, with 21.
    about = sum((b - line.intercept - line.slope * a) ** 2 for a, b in zip(x, y, strict=True)) / 22
    assert found.beta_error == pytest.approx(2 * line.stderr * found.scatter / math.sqrt(about), rel=1e-10)
    assert found.intercept_error == pytest.approx(line.intercept_stderr * found.scatter / math.sqrt(about), rel=1e-10)
    within = [np.var(y[8 * k : 8 * k + 8], ddof=1) for k in range(3)]
    assert found.scatter == pytest.approx(math.sqrt(np.mean(within)), rel=1e-12)
    assert found.log_alignment == pytest.approx([np.mean(y[8 * k : 8 * k + 8]) for k in range(3)], rel=1e-12)


def test_errors_shrink_with_the_seeds_and_json_is_strict() -> None:
    found = estimate_beta(problem(), sizes=(20, 30, 40), seeds=2)
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["shapes"][0] == [15, 20, 25]
    assert estimate_beta(problem(), sizes=(20, 30, 40), seeds=2) == found


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        (problem(), {"sizes": (20, 30)}, "sizes: "),
        (problem(), {"sizes": (20, 30, 30)}, "sizes: "),
        (problem(), {"sizes": (20, 30, 1)}, "sizes: "),
        (problem(), {"sizes": (20, 30, 40.5)}, "sizes: "),
        (problem(), {"seeds": 1}, "seeds: "),
        (problem(), {"seed": -1}, "seed: "),
        (gr.Problem(inputs=np.eye(40), targets=gr.MultiIndex()), {}, "inputs: 'given-array' is not allowed; real data"),
        (gr.Problem(inputs=gr.SpikedGaussian(n=30, d=40, direction="none")), {}, "inputs.direction: 'none'"),
        (gr.Problem(inputs=gr.SpikedGaussian(n=30, d=3, direction=[1, 0, 0])), {}, "inputs.direction: a vector"),
        (problem(links="linear", noise=0.0, directions="random", scaling=1e-9), {"sizes": "abc"}, "sizes: "),
        ("problem", {}, "problem: a str is not allowed"),
    ],
)
def test_bad_input_is_named(given: gr.Problem, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_beta(given, **arguments)
