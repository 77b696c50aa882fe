import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.split import Bulk, spike_split
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs
from gradrank.problem.spiked_gaussian import SpikedGaussian


def spiked(n: int = 30, d: int = 40, direction: str = "random", **fields: object) -> Draw:
    inputs = SpikedGaussian(n=n, d=d, nu=0.6, alpha=0.5, direction=direction)
    return Problem(inputs=inputs, network=TwoLayer(m=5), **fields).draw(2)


def array(X: np.ndarray) -> Draw:
    return Problem(inputs=ArrayInputs(X, np.arange(len(X))), targets="numbers", network=TwoLayer(m=5)).draw(0)


def full(bulk: Bulk) -> torch.Tensor:
    return bulk.times(torch.eye(bulk.X.shape[1], dtype=bulk.X.dtype))


def test_oracle_is_the_split_as_drawn() -> None:
    draw = spiked(regularisers={"input_noise": 0.3})
    split = spike_split(draw, "oracle")
    assert (split.kind, split.has_spike, split.strength) == ("oracle", True, pytest.approx(30**0.6, rel=1e-14))
    assert torch.equal(split.scores, draw.inputs.scores)
    assert torch.equal(split.direction, draw.inputs.direction)
    # The noise belongs to the bulk: X′_B = X_B + Ξ.
    clean = spiked()
    noise = draw.X - clean.X
    # 1200 squares: the mean is 0.3 up to a standard error of 0.3 √(2/1200) = 0.012.
    assert float(noise.square().mean()) == pytest.approx(0.3, abs=0.05)
    assert float((split.bulk.X - clean.inputs.bulk - noise).abs().max()) < 1e-13  # roundings of entries of size 10
    assert (
        float((draw.X - split.bulk.X - split.strength * torch.outer(split.scores, split.direction)).abs().max()) < 1e-14
    )


@pytest.mark.parametrize("shape", [(30, 40), (40, 30), (2, 5), (5, 2), (100, 120)])
@pytest.mark.parametrize("source", ["spiked", "array"])
def test_empirical_is_the_first_singular_pair_of_numpy(shape: tuple[int, int], source: str) -> None:
    draw = spiked(*shape) if source == "spiked" else array(np.random.default_rng(0).standard_normal(shape) + 0.7)
    split, X = spike_split(draw, "empirical"), draw.X.numpy()
    U, sigma, Vt = np.linalg.svd(X, full_matrices=False)
    sign = 1.0 if Vt[0].sum() >= 0 else -1.0
    # The direction is found to a residual of 1e-7 σ₁, which over the gap bounds its error.
    allowed = 1e-7 * sigma[0] / (sigma[0] - sigma[1]) + 1e-13
    assert np.linalg.norm(split.direction.numpy() - sign * Vt[0]) < allowed
    assert split.strength == pytest.approx(sigma[0] / np.sqrt(len(X)), rel=1e-12)
    assert np.linalg.norm(split.scores.numpy() - sign * np.sqrt(len(X)) * U[:, 0]) < allowed * np.sqrt(len(X))
    assert float(torch.linalg.vector_norm(split.scores)) == pytest.approx(np.sqrt(len(X)), rel=1e-13)
    assert np.linalg.norm(full(split.bulk).numpy() - (X - sigma[0] * np.outer(U[:, 0], Vt[0]))) < allowed * sigma[0]


def test_auto_is_the_oracle_where_the_spike_is_known() -> None:
    assert spike_split(spiked()).kind == "oracle"
    assert spike_split(spiked(direction="none")).kind == "oracle"
    assert spike_split(array(np.eye(4))).kind == "empirical"


def test_no_spike_is_a_split_of_strength_zero() -> None:
    draw = spiked(direction="none")
    split = spike_split(draw)
    assert (split.has_spike, split.strength) == (False, 0.0)
    assert not split.scores.any()
    assert not split.direction.any()
    assert torch.equal(full(split.bulk), draw.X)


def test_rank_one_data_leave_no_bulk() -> None:
    left, right = np.array([1.0, -2.0, 3.0, 0.0]), np.array([2.0, 1.0, -2.0])
    split = spike_split(array(np.outer(left, right)))
    assert split.strength == pytest.approx(3 * np.sqrt(14) / 2, rel=1e-14)  # ‖left‖ ‖right‖/√n
    np.testing.assert_allclose(split.direction, right / 3, atol=1e-15)
    assert float(full(split.bulk).abs().max()) < 1e-14


def test_data_of_zeros_have_no_spike() -> None:
    split = spike_split(array(np.zeros((4, 3))))
    assert (split.has_spike, split.strength) == (False, 0.0)
    assert not full(split.bulk).any()


@pytest.mark.parametrize("kind", ["oracle", "empirical"])
def test_bulk_times_block_and_transpose(kind: str) -> None:
    split, generator = spike_split(spiked(), kind), torch.Generator().manual_seed(1)
    U, Y = (torch.randn(size, 3, dtype=torch.float64, generator=generator) for size in (40, 30))
    projected = split.bulk.X @ split.direction if kind == "empirical" else torch.zeros(30, dtype=torch.float64)
    B = split.bulk.X - torch.outer(projected, split.direction)
    torch.testing.assert_close(split.bulk.times(U), B @ U, rtol=0, atol=1e-12)
    torch.testing.assert_close(split.bulk.transpose_times(Y), B.T @ Y, rtol=0, atol=1e-12)


def test_what_is_not_allowed() -> None:
    with pytest.raises(InputError, match="split: 'oracle' is not allowed; the spike of these data is not known"):
        spike_split(array(np.eye(4)), "oracle")
    with pytest.raises(InputError, match="split: 'oracel' is not allowed; give one of auto, empirical, oracle"):
        spike_split(spiked(), "oracel")
