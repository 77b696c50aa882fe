"""Kernels and targets: published digits, differences, sampling, and what is refused."""

import math

import numpy as np
import pytest
import torch

from gradrank.flow import LinearTarget, NetworkTarget, NormTarget, ProjectedTarget
from gradrank.flow.symmetric.kernels import psi, psi_even, relu_field, relu_gram, zonal_eigenvalues
from gradrank.flow.symmetric.targets import norm_constant
from gradrank.foundation.errors import InputError

B1 = np.array([[1, 0.5, -0.2], [-0.3, 0.8, 0.4]])
B2 = np.array([[0.2, -1, 0.5], [1, 1, 0], [0, 0, 2]])
EIGENVALUES = {
    2: (0.202642, 0.125, 0.0225158, 0.000900633, 0.000165422),
    3: (0.1875, 0.0833333, 0.0117188, 0.000325521, 4.57764e-5),
    5: (0.175781, 0.05, 0.00488281, 7.62939e-5, 6.86646e-6),
    10: (0.167301, 0.025, 0.00138265, 8.18139e-6, 3.27256e-7),
}


def smooth(x: np.ndarray) -> np.ndarray:
    return np.tanh(x[:, 0]) + 0.3 * np.cos(x[:, -1])


TARGETS = {
    "linear": LinearTarget([1.0, -0.5, 0.3]),
    "network": NetworkTarget([1.0, -0.5], B2[:2]),
    "norm 1": NormTarget(1),
    "norm 2": NormTarget(2),
    "projected": ProjectedTarget(smooth, 2),
}


def test_digits_of_the_kernel() -> None:
    np.testing.assert_allclose(
        psi(np.array([-1, -0.5, 0, 0.3, 0.9, 1])), [0, 0.0544989, 0.159155, 0.241372, 0.454769, 0.5], atol=6e-7
    )
    rho = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(psi(rho), rho / 4 + psi_even(rho), atol=1e-15)
    gram = [[0.115261, 0.754113, 0.267150], [0.0390490, 0.352433, 0.527714]]
    np.testing.assert_allclose(relu_gram(B1, B2), gram, atol=6e-7)
    h, gradient = relu_field(B1, np.array([1, -0.5, 0.25]), B2)
    np.testing.assert_allclose(h, [-0.195008, -0.00523909], atol=6e-7)
    expected = [[0.00391180, -0.328296, 0.173856], [-0.161715, -0.206558, 0.278733]]
    np.testing.assert_allclose(gradient, expected, atol=6e-7)


def test_digits_of_the_norm() -> None:
    assert [norm_constant(p) for p in range(1, 6)] == pytest.approx([2, math.pi, 4, 4.712389, 5.333333], rel=1e-6)
    G, gradient = NormTarget(1).field(B1)
    np.testing.assert_allclose(G, [0.514175, 0.315608], atol=6e-7)
    np.testing.assert_allclose(
        gradient, [[0.475640, 0.0664400, -0.0265760], [-0.198979, 0.255915, 0.127957]], atol=6e-7
    )
    G, gradient = NormTarget(2).field(B1)
    np.testing.assert_allclose(G, [0.717539, 0.574988], atol=6e-7)
    expected = [[0.564695, 0.282348, -0.0583517], [-0.210458, 0.561222, 0.157184]]
    np.testing.assert_allclose(gradient, expected, atol=6e-7)


@pytest.mark.parametrize("d", EIGENVALUES)
def test_digits_of_the_spectrum(d: int) -> None:
    np.testing.assert_allclose(
        zonal_eigenvalues(d, np.array([0, 1, 2, 4, 6])), EIGENVALUES[d], rtol=6e-6
    )  # six digits given
    assert zonal_eigenvalues(d, np.array([3, 5])) == pytest.approx([0, 0])


@pytest.mark.parametrize("name", TARGETS)
def test_fields_against_sampling_and_differences(name: str) -> None:
    target, rng = TARGETS[name], np.random.default_rng(0)
    X = rng.standard_normal((400_000, 3))
    values, active = target.value(X), np.maximum(X @ B1.T, 0)
    G, gradient = target.field(B1)
    products = values[:, None] * active
    assert bool((np.abs(products.mean(axis=0) - G) < 4 * products.std(axis=0) / len(X) ** 0.5).all())
    moment = values**2
    assert abs(moment.mean() - target.second_moment) < 4 * moment.std() / len(X) ** 0.5
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-5
        difference = (target.field(B1 + step)[0] - target.field(B1 - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, j], difference, atol=2e-9)


def test_a_projection_of_a_network_is_that_network() -> None:
    B = np.array([[1.0, 0, 0, 0], [-1, 1, 0, 0]])
    network = NetworkTarget([1.0, 0.5], B)
    projected = ProjectedTarget(lambda x: np.maximum(x[:, 0], 0) + 0.5 * np.maximum(x[:, 1] - x[:, 0], 0), 2, nodes=401)
    points = np.random.default_rng(1).standard_normal((5, 4))
    for one, other in zip(network.field(points), projected.field(points), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinearTarget([math.nan]).second_moment, r"w: \[nan\] is not allowed"),
        (lambda: NetworkTarget([1.0], B2), "B: shape"),
        (lambda: NormTarget(0), "p: 0 is not allowed"),
        (lambda: NormTarget(4).field(B1), "p: 4 is not allowed for inputs of dimension 3"),
        (lambda: ProjectedTarget(smooth, 4), "p: 4 is not allowed"),
        (lambda: ProjectedTarget(lambda x: x, 1).second_moment, r"function: gives shape \(641, 1\) for 641 points"),
        (lambda: ProjectedTarget(3, 1), "function: 3 is not allowed; give a function of arrays"),
        (
            lambda: ProjectedTarget(lambda x: 1j * x[:, 0], 1).second_moment,
            "function: .* give a function that returns finite",
        ),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_function_of_tensors_that_keep_their_graph() -> None:
    """The values alone are used."""
    slope = torch.ones((), dtype=torch.float64, requires_grad=True)
    target = ProjectedTarget(lambda x: slope * torch.from_numpy(x[:, 0]), 1)
    np.testing.assert_allclose(target.field(B1)[0], LinearTarget([1.0, 0.0, 0.0]).field(B1)[0], atol=1e-12)
    np.testing.assert_allclose(target.value(B1), B1[:, 0])
