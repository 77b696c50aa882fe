"""Moments of activations and teachers against published digits, Gauss-Hermite rules and closed forms."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.onestep.functions import centred
from gradrank.onestep.moments import hermite_polynomial, moments

DIGITS = {  # μ₁, μ₂², E σ²
    "tanh": (0.60570551, 0.027415326, 0.39429449),
    "erf": (0.65147002, 0.040145873, 0.46455905),
    "relu": (0.5, 0.090845057, 0.34084506),
}
SLOPE_VARIANCE = {"tanh": 0.097523738, "erf": 0.14499685, "relu": 0.25}


@pytest.mark.parametrize("name", DIGITS)
def test_known_digits(name: str) -> None:
    found = moments(centred(name, "activation"))
    np.testing.assert_allclose([found.mu1, found.mu2_squared, found.variance], DIGITS[name], rtol=1e-7)
    assert found.slope_variance == pytest.approx(SLOPE_VARIANCE[name], rel=1e-7)
    assert max(found.errors.values()) < 1e-12


def softsign_like(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(1 + x * x) + 0.3 * x * x


def test_a_users_function_against_a_gauss_hermite_rule() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    values = softsign_like(torch.from_numpy(nodes)).numpy()
    values = values - weights @ values
    found = moments(centred(softsign_like, "activation"))
    assert found.mu1 == pytest.approx(weights @ (nodes * values), rel=1e-9)
    assert found.variance == pytest.approx(weights @ values**2, rel=1e-9)
    for order in range(1, 6):
        polynomial = hermite_polynomial(torch.from_numpy(nodes), order).numpy()
        assert found.hermite(order) == pytest.approx(weights @ (polynomial * values), abs=1e-8)


def test_hermite_polynomials_are_those_of_numpy() -> None:
    z = np.linspace(-3, 3, 7)
    for order in range(8):
        expected = np.polynomial.hermite_e.hermeval(z, np.eye(order + 1)[order])
        np.testing.assert_allclose(
            hermite_polynomial(torch.from_numpy(z), order).numpy(), expected, rtol=1e-12, atol=1e-12
        )


def test_hermite_coefficients_are_mean_derivatives() -> None:
    # E tanh‴(z) by quadrature of the third derivative, and E erf^(k) in closed form
    found = moments(centred("erf", "activation"))
    assert found.hermite(1) == pytest.approx(2 / math.sqrt(3 * math.pi), rel=1e-12)
    assert found.hermite(3) == pytest.approx(-4 / (3 * math.sqrt(3 * math.pi)), rel=1e-11)
    assert found.hermite(2) == pytest.approx(0.0, abs=1e-13)


def test_functions_are_centred_and_names_are_checked() -> None:
    relu = centred("relu", "teacher")
    assert relu.mean == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)
    assert float(relu.value(torch.tensor([2.0], dtype=torch.float64))) == pytest.approx(2 - relu.mean)
    assert centred("hermite2", "teacher").mean == pytest.approx(0.0, abs=1e-13)
    with pytest.raises(InputError, match="teacher: 'tann' is not allowed"):
        centred("tann", "teacher")
    with pytest.raises(InputError, match="has no mean over N"):
        centred(lambda x: torch.exp(x * x), "activation")
    with pytest.raises(InputError, match="moment variance over N"):
        _ = moments(centred(lambda x: torch.exp(x * x / 3.9), "activation")).variance
