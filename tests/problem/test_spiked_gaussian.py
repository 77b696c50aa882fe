import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gradrank.foundation.errors import InputError
from gradrank.foundation.random import stream
from gradrank.problem.inputs import Covariance, Inputs
from gradrank.problem.spiked_gaussian import SpikedGaussian

N, D = 20_000, 4


def population(inputs: Inputs, basis: str, alpha: float) -> np.ndarray:
    """Return Σ̂ + ζ² q qᵀ from the definition."""
    axes = np.eye(D) if basis == "canonical" else inputs.covariance.basis.numpy()
    sigma = axes @ np.diag(np.arange(1, D + 1.0) ** -alpha) @ axes.T
    if inputs.direction is None:
        return sigma
    return sigma + inputs.strength**2 * np.outer(inputs.direction, inputs.direction)


def assert_covariance(X: torch.Tensor, expected: np.ndarray) -> None:
    """Var S_ij = (Σ_ii Σ_jj + Σ_ij²)/n for Gaussian rows; 4.5 errors for ten entries."""
    sample = (X.T @ X / len(X)).numpy()
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(X))
    assert (np.abs(sample - expected) < 4.5 * error).all()


@pytest.mark.parametrize("basis", ["canonical", "haar"])
@pytest.mark.parametrize("direction", ["random", "eigenvector", "none", [1.0, -2.0, 0.0, 2.0]])
def test_sample_covariance(direction: object, basis: str) -> None:
    spec = SpikedGaussian(n=N, d=D, nu=0.1, alpha=0.8, direction=direction, basis=basis)
    inputs = spec.draw(seed=0)
    assert_covariance(inputs.X, population(inputs, basis, 0.8))
    assert_covariance(inputs.bulk, population(Inputs(covariance=inputs.covariance), basis, 0.8))
    mean_error = np.sqrt(np.diag(population(inputs, basis, 0.8)) / N)
    assert (np.abs(inputs.X.mean(dim=0).numpy()) < 4.5 * mean_error).all()


@pytest.mark.parametrize("direction", ["random", "none"])
def test_input_noise_adds_its_variance_to_the_covariance(direction: str) -> None:
    inputs = SpikedGaussian(n=N, d=D, nu=0.05, alpha=0.5, direction=direction).draw(seed=1)
    noisy = inputs.with_noise(0.7, stream(1, "inputs.noise"))
    assert_covariance(noisy.X, population(inputs, "canonical", 0.5) + 0.7 * np.eye(D))
    W = torch.randn(6, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    added = noisy.covariance.quadratic(W) - inputs.covariance.quadratic(W)
    torch.testing.assert_close(added, 0.7 * W.square().sum(dim=1))
    # The noise itself: independent of the bulk, of variance τ².
    noise = noisy.bulk - inputs.bulk
    assert_covariance(noise, 0.7 * np.eye(D))
    assert abs(float((noise * inputs.bulk).mean())) < 4.5 * np.sqrt(0.7 / (N * D))
    assert noisy.scores is inputs.scores


def test_no_noise_changes_nothing() -> None:
    inputs = SpikedGaussian(n=5, d=3).draw(seed=0)
    assert inputs.with_noise(0.0, stream(0, "inputs.noise")) is inputs


def test_inputs_are_bulk_plus_spike_and_project_without_forming_them() -> None:
    spec = SpikedGaussian(n=30, d=7, nu=0.4)
    inputs = spec.draw(seed=2)
    X = inputs.bulk.numpy() + 30**0.4 * np.outer(inputs.scores, inputs.direction)
    np.testing.assert_allclose(inputs.X.numpy(), X, rtol=1e-13, atol=1e-14)
    B = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(inputs.project(B).numpy(), X @ B.numpy(), rtol=1e-12, atol=1e-13)
    assert inputs.shape == (30, 7)
    assert inputs.knows_spike
    assert inputs.strength == pytest.approx(30**0.4)


def test_given_matrix_is_what_it_is() -> None:
    X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs = Inputs(given=X)
    assert inputs.X is X
    assert not inputs.knows_spike
    torch.testing.assert_close(inputs.project(torch.eye(3, 2).double()), X[:, :2])
    assert not inputs.with_noise(1.0, stream(0, "inputs.noise")).X.equal(X)


@pytest.mark.parametrize("basis", ["canonical", "haar"])
def test_quadratic_form_of_the_covariance(basis: str) -> None:
    inputs = SpikedGaussian(n=5, d=300, alpha=0.7, basis=basis).draw(seed=0)
    W = torch.randn(280, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    O = np.eye(300) if basis == "canonical" else inputs.covariance.basis.numpy()  # noqa: E741
    sigma = O @ np.diag(np.arange(1, 301.0) ** -0.7) @ O.T
    exact = np.einsum("jk,kl,jl->j", W.numpy(), sigma, W.numpy())
    np.testing.assert_allclose(inputs.covariance.quadratic(W).numpy(), exact, rtol=1e-11)
    assert isinstance(inputs.covariance, Covariance)


def test_zero_exponent_still_has_a_spike_and_none_has_not() -> None:
    assert SpikedGaussian(n=9, d=3, nu=0).draw(0).strength == 1.0
    bare = SpikedGaussian(n=9, d=3, direction="none").draw(0)
    assert bare.scores is None
    assert bare.direction is None
    assert bare.X is bare.bulk


def test_haar_basis_is_orthogonal_and_uniform() -> None:
    bases = [SpikedGaussian(n=2, d=3, basis="haar").draw(seed).covariance.basis for seed in range(400)]
    torch.testing.assert_close(bases[0] @ bases[0].T, torch.eye(3, dtype=torch.float64))
    corner = np.array([float(basis[0, 0]) for basis in bases])
    # An entry of a Haar matrix in three dimensions is uniform on [−1, 1]; without the sign correction it would be ≤ 0.
    assert stats.kstest(corner, "uniform", args=(-1, 2)).pvalue > 1e-3


@pytest.mark.parametrize("which", [1, 3, 5])
@pytest.mark.parametrize("basis", ["canonical", "haar"])
def test_eigenvector_direction(which: int, basis: str) -> None:
    spec = SpikedGaussian(n=4, d=5, alpha=1.0, direction="eigenvector", eigenvector=which, basis=basis)
    inputs = spec.draw(seed=3)
    q = inputs.direction
    O = torch.eye(5).double() if basis == "canonical" else inputs.covariance.basis  # noqa: E741
    sigma = O @ torch.diag(inputs.covariance.eigenvalues) @ O.T
    torch.testing.assert_close(sigma @ q, q / which)
    assert float(q.norm()) == pytest.approx(1.0, rel=1e-14)


@given(vector=st.lists(st.floats(-1e200, 1e200).map(lambda x: 0.0 if abs(x) < 1e-200 else x), min_size=3, max_size=3))
@settings(deadline=None, max_examples=30)
def test_given_direction_of_any_length_is_normalised(vector: list[float]) -> None:
    if not any(vector):
        vector[0] = 1e-250
    q = SpikedGaussian(n=3, d=3, direction=np.array(vector)).draw(0).direction.numpy()
    scaled = np.array(vector) / np.abs(vector).max()
    np.testing.assert_allclose(q, scaled / np.linalg.norm(scaled), rtol=1e-13)


def test_random_direction_changes_with_the_seed_and_bulk_does_not_follow_it() -> None:
    random, fixed = (SpikedGaussian(n=6, d=4, direction=direction) for direction in ("random", "eigenvector"))
    assert not random.draw(0).direction.equal(random.draw(1).direction)
    assert random.draw(0).bulk.equal(fixed.draw(0).bulk)
    assert random.draw(0).scores.equal(fixed.draw(0).scores)


def test_spike_beyond_the_range_of_floats_is_refused() -> None:
    with pytest.raises(InputError, match=r"^inputs\.nu: 1000\.0 .*finite"):
        SpikedGaussian(n=10, d=3, nu=1000.0).draw(0)


def test_size_beyond_memory_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(InputError, match=r"^inputs: needs .*give a smaller n or d"):
        SpikedGaussian(n=10**9, d=10**9).draw(0)
