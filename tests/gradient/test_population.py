"""The residue's moments against closed forms, Stein's identity and draws of the problem."""

import math

import numpy as np
import pytest

from gradrank.foundation.errors import InputError
from gradrank.gradient.population import ResiduePopulation
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import DataSetInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import MultiIndex

SILENT = 1e-7  # an output scale at which the residue of the squared loss is −y


def problem(
    nu: float = 0.3, alpha: float = 0.0, sizes: tuple[int, int, int] = (150, 200, 250), **parts: object
) -> Problem:
    n, d, m = sizes
    network = TwoLayer(m=m, **{"activation": "tanh", **parts.pop("network", {})})  # type: ignore[dict-item]
    inputs = SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha, **parts.pop("inputs", {}))  # type: ignore[arg-type]
    return Problem(inputs=inputs, network=network, **parts)


@pytest.mark.parametrize(("nu", "alpha", "cosine"), [(0.3, 0.0, 0.6), (0.5, 5 / 9, 0.3), (0.0, 0.8, 1.0)])
def test_linear_aligned_target_has_closed_moments(nu: float, alpha: float, cosine: float) -> None:
    targets = MultiIndex(links=("linear",), directions=("aligned",), cosine=cosine, noise=0.2)
    population = ResiduePopulation(problem(nu, alpha, targets=targets, network={"scaling": SILENT}), 4, 0)
    slope = cosine * population.strength
    variance = population.bulk.clean.mean()  # q is random: uᵀΣ̂u = tr Σ̂/d on average for every u
    np.testing.assert_allclose(population.mean(population.r**2), slope**2 + variance + 0.04, rtol=5e-3)
    np.testing.assert_allclose(population.mean(population.r * population.z), -slope, rtol=5e-3)
    np.testing.assert_allclose(population.slopes[1], -1.0, atol=0.02 * (1 + slope))


def test_relu_outputs_have_the_variance_of_their_kernel() -> None:
    """E f² = γ²m E σ(wᵀx)² = ½ E wᵀΣw for ReLU, over inputs and networks."""
    targets = MultiIndex(links=("linear",), directions=("orthogonal",), noise=0.0)
    specification = problem(0.6, 0.0, targets=targets, network={"activation": "relu"})
    population = ResiduePopulation(specification, 500, 0)
    square = population.mean(population.r**2)
    expected = 0.5 * (1.0 + population.strength**2 / population.d) + 1.0
    assert abs(square.mean() - expected) < 3 * square.std() / math.sqrt(len(square)) + 5e-3 * expected


def test_steins_identity_along_the_spike() -> None:
    """E[z y] = ζ Σ_k β_k E link_k′(b_kᵀx): the left side from z, the right from the bulk's normal variables alone."""
    specification = problem(0.4, 0.3, network={"scaling": SILENT})
    population = ResiduePopulation(specification, 64, 0)
    left = population.mean(population.r * population.z)
    right = population.strength * (population.slopes[1] * population.cosines).sum(axis=1)
    scale = np.sqrt(population.mean(population.r**2) / len(population.z))  # of a plain Monte-Carlo error
    assert np.abs(left - right).max() < 3 * (scale * (1 + population.strength)).max()
    assert np.corrcoef(left, right)[0, 1] > 0.98


@pytest.mark.parametrize(
    ("inner", "loss"),
    [
        ("sphere", "mse"),
        ("aligned", "huber"),
        pytest.param("gaussian", "logistic", marks=pytest.mark.slow),
        pytest.param("orthogonal", "squared-hinge", marks=pytest.mark.slow),
        pytest.param("sphere", "log-cosh", marks=pytest.mark.slow),
    ],
)
def test_moments_agree_with_draws(inner: str, loss: str) -> None:
    specification = problem(0.45, 0.3, (60, 80, 100), loss=loss, network={"inner": inner, "activation": "softplus"})
    population = ResiduePopulation(specification, 256, 0)
    found = {"r²": [], "z²r²": []}  # type: dict[str, list[float]]
    for seed in range(150):
        draw = specification.draw(seed)
        r, z = draw.residue, draw.inputs.scores
        assert z is not None
        found["r²"].append(float((r * r).mean()))
        found["z²r²"].append(float((z * z * r * r).mean()))
    for name, weight in {"r²": 1.0, "z²r²": population.z**2}.items():
        predicted = population.mean(population.r**2 * weight)
        sample = np.array(found[name])
        error = math.hypot(sample.std() / math.sqrt(len(sample)), predicted.std() / math.sqrt(len(predicted)))
        assert abs(predicted.mean() - sample.mean()) < 3 * error + 0.02 * sample.mean()


def test_neurons_against_plain_integration() -> None:
    population = ResiduePopulation(problem(0.75, 0.5, network={"activation": "swish"}), 2, 0)
    neurons = population.neurons
    u = np.linspace(-10, 10, 20001)
    weight = np.exp(-(u**2) / 2) / np.exp(-(u**2) / 2).sum()

    def derivative(x: np.ndarray) -> np.ndarray:
        s = 1 / (1 + np.exp(-x))
        return s * (1 + x * (1 - s))

    for j, i in [(0, 5), (30, 9), (41, 700), (60, 3)]:
        values = derivative(neurons.kappa[j] * population.strength * population.z[i] + neurons.deviation * u)
        assert neurons.slope[j, i] == pytest.approx(values @ weight, abs=1e-6)
        assert neurons.second[j, i] == pytest.approx((values * u) @ weight / neurons.deviation, abs=1e-5)
        assert neurons.slope_square[j, i] == pytest.approx(values**2 @ weight, abs=1e-6)


def test_input_noise_enters_the_network_but_not_the_labels() -> None:
    clean = ResiduePopulation(problem(0.2, 0.5, network={"scaling": SILENT}), 8, 0)
    noisy = ResiduePopulation(
        problem(0.2, 0.5, network={"scaling": SILENT}, regularisers=Regularisers(input_noise=2.0)), 8, 0
    )
    np.testing.assert_allclose(noisy.r, clean.r, atol=1e-5)
    np.testing.assert_allclose(noisy.bulk.eigenvalues, clean.bulk.eigenvalues + 2.0)
    assert noisy.neurons.deviation == pytest.approx(math.sqrt(clean.neurons.deviation**2 + 2.0), rel=1e-12)


@pytest.mark.parametrize(
    ("specification", "field"),
    [
        (Problem(inputs=DataSetInputs(name="digits"), targets="one-vs-rest"), "inputs:"),
        (problem(network={"inner": "data"}), "network.inner: 'data'"),
        (problem(inputs={"direction": "none"}, targets="aligned"), "targets.directions:"),
        (problem(nu=400.0), "inputs.nu: 400"),
    ],
)
def test_what_is_no_population_is_refused(specification: Problem, field: str) -> None:
    with pytest.raises(InputError) as error:
        ResiduePopulation(specification, 4, 0)
    assert str(error.value).startswith(field)
