import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate
from torch.func import grad, vmap
from training_loss import ACTIVATIONS, wavy

from gradrank.foundation.errors import InputError
from gradrank.gradient.centring import mean_derivative
from gradrank.gradient.decomposition import decompose
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

SAMPLES = 100_000


def spiked(activation: Any, nu: float = 0.5, noise: float = 0.7, **fields: Any) -> Draw:
    inputs = SpikedGaussian(n=20, d=9, nu=nu, alpha=0.8, basis="haar", **fields)
    network = TwoLayer(m=6, activation=activation, inner="sphere")
    return Problem(inputs=inputs, network=network, regularisers=Regularisers(input_noise=noise)).draw(4)


def covariance(draw: Draw, noise: float) -> np.ndarray:
    """Σ̂ + τ²I + ζ²qqᵀ, entry by entry."""
    O = draw.inputs.covariance.basis.numpy()  # noqa: E741
    bulk = O @ np.diag(np.arange(1, 10) ** -0.8) @ O.T
    q = np.zeros(9) if draw.inputs.direction is None else draw.inputs.direction.numpy()
    return bulk + noise * np.eye(9) + draw.inputs.strength**2 * np.outer(q, q)


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_population_mean_against_simulation(activation: str, noise: float) -> None:
    draw = spiked(wavy if activation == "user" else activation, noise=noise)
    x = np.random.default_rng(8).multivariate_normal(np.zeros(9), covariance(draw, noise), SAMPLES)
    slopes = vmap(vmap(grad(ACTIVATIONS[activation])))(torch.from_numpy(x) @ draw.network.W.T)
    found = mean_derivative(draw, "population", torch.zeros(6))
    # Six means of one activation: 4.5 standard errors. The jumps of ReLU have no other rounding.
    deviation = (found.value - slopes.mean(dim=0)).abs() / (slopes.std(dim=0) / math.sqrt(SAMPLES))
    assert float(deviation.max()) < 4.5
    assert found.error < 1e-10


@pytest.mark.parametrize("direction", ["random", "eigenvector", "none"])
@pytest.mark.parametrize("nu", [0.0, 1.0])
def test_population_mean_against_quadrature_of_scipy(direction: str, nu: float) -> None:
    draw = spiked("tanh", nu, direction=direction)
    W = draw.network.W.numpy()
    for std, value in zip(
        np.sqrt(np.diag(W @ covariance(draw, 0.7) @ W.T)),
        mean_derivative(draw, "population", torch.zeros(6)).value,
        strict=True,
    ):

        def integrand(t: float, s: float = std) -> float:
            return math.exp(-(t**2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi)) / math.cosh(t) ** 2

        exact, _ = integrate.quad(integrand, -20, 20, points=[-2, 0, 2], epsabs=1e-13, limit=200)  # sech² 20 = 1e-17
        assert float(value) == pytest.approx(exact, abs=1e-11)


def test_closed_form_of_the_error_function() -> None:
    draw = spiked("erf")
    W = draw.network.W.numpy()
    variance = np.diag(W @ covariance(draw, 0.7) @ W.T)
    exact = 2 / np.sqrt(np.pi * (1 + 2 * variance))
    np.testing.assert_allclose(mean_derivative(draw, "population", torch.zeros(6)).value, exact, rtol=1e-13)


@pytest.mark.parametrize("activation", ["tanh", "relu", "swish"])
def test_empirical_mean_is_that_of_the_samples(activation: str) -> None:
    draw = spiked(activation)
    slopes = vmap(vmap(grad(ACTIVATIONS[activation])))(draw.X @ draw.network.W.T)
    mean = decompose(draw, centring="empirical").mean_derivative
    assert (mean.kind, mean.error) == ("empirical", 0.0)
    torch.testing.assert_close(mean.value, slopes.mean(dim=0), rtol=0, atol=1e-14)


def test_auto_goes_with_the_split() -> None:
    draw = spiked("tanh")
    assert decompose(draw).mean_derivative.kind == "population"
    assert decompose(draw, split="empirical").mean_derivative.kind == "empirical"
    assert decompose(draw, split="empirical", centring="population").mean_derivative.kind == "population"


def test_precision_of_the_draw_is_kept() -> None:
    inputs = SpikedGaussian(n=20, d=9)
    values = {
        dtype: decompose(Problem(inputs=inputs, network=TwoLayer(m=6), dtype=dtype).draw(0)).mean_derivative.value
        for dtype in ("float64", "float32")
    }
    assert values["float32"].dtype == torch.float32
    torch.testing.assert_close(values["float32"].double(), values["float64"], rtol=1e-6, atol=0)


def test_what_is_not_allowed() -> None:
    real = Problem(inputs=ArrayInputs(np.eye(4), np.arange(4)), targets="numbers", network=TwoLayer(m=3)).draw(0)
    with pytest.raises(
        InputError, match="centring: 'population' is not allowed; the population of these data is not known"
    ):
        decompose(real, centring="population")
    with pytest.raises(InputError, match="centring: 'mean' is not allowed; give one of auto, empirical, population"):
        decompose(spiked("tanh"), centring="mean")
