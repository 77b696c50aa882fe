"""Norms, shares, leading triplets and alignments of a decomposition, against the dense matrices."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from training_loss import frobenius

from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Dense
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.real_inputs import ArrayInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

# Wide enough for the block Krylov iterations; (activation, ν, regularisers, split, n).
SETTINGS = {
    "plain": ("sigmoid", 0.3, {}, "oracle", 70),
    "large spike": ("relu", 0.75, {}, "oracle", 70),
    "empirical": ("elu", 0.3, {}, "empirical", 120),
    "noisy": ("tanh", 0.5, {"input_noise": 0.5}, "oracle", 100),
    "decay": ("swish", 0.3, {"weight_decay": 0.01}, "oracle", 70),
    "jacobian": ("sigmoid", 0.3, {"jacobian": 5.0}, "oracle", 70),
    "all": ("softplus", 0.3, {"weight_decay": 0.01, "jacobian": 5.0, "input_noise": 0.1}, "empirical", 70),
}
RANK_ONE = ("residue_spike", "interpolant", "data_spike", "jacobian_spike")


def problem(setting: str, dtype: str = "float64") -> Problem:
    activation, nu, regularisers, _, n = SETTINGS[setting]
    return Problem(
        inputs=SpikedGaussian(n=n, d=90, nu=nu, alpha=0.2), network=TwoLayer(m=110, activation=activation),
        regularisers=Regularisers(**regularisers), dtype=dtype,
    )  # fmt: skip


@cache
def decomposed(setting: str) -> tuple[Decomposition, dict[str, torch.Tensor]]:
    parts = decompose(problem(setting).draw(3), split=SETTINGS[setting][3])
    return parts, {"gradient": parts.gradient.dense()} | {name: part.dense() for name, part in parts.items()}


def norm(matrix: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))


@pytest.mark.parametrize("setting", SETTINGS)
def test_norms_are_the_dense_spectral_norms(setting: str) -> None:
    parts, dense = decomposed(setting)
    found = parts.norms()
    assert list(found) == ["gradient", *parts]
    for name, value in found.items():
        # Vector norms are exact to rounding; the iterations stop at a relative error of 1e-6.
        assert value == pytest.approx(norm(dense[name]), rel=1e-13 if name in RANK_ONE else 1e-6)


@pytest.mark.parametrize("k", [1, 4, 10, 40])
@pytest.mark.parametrize("setting", SETTINGS)
def test_leading_triplets_against_dense_svd(setting: str, k: int) -> None:
    _, dense = decomposed(setting)
    parts = decompose(problem(setting).draw(3), split=SETTINGS[setting][3])  # nothing cached
    G = dense["gradient"]
    U, sigma, Vt = torch.linalg.svd(G, full_matrices=False)
    found = parts.leading(k)
    assert (len(found), found.converged, found.status) == (k, True, "ok")
    torch.testing.assert_close(found.values, sigma[:k], rtol=1e-6, atol=0)
    forward = torch.linalg.vector_norm(G @ found.right - found.values * found.left, dim=0)
    backward = torch.linalg.vector_norm(G.T @ found.left - found.values * found.right, dim=0)
    torch.testing.assert_close(found.residuals, torch.hypot(forward, backward), rtol=1e-3, atol=1e-13 * float(sigma[0]))
    assert bool((found.residuals <= 3.1e-4 * sigma[:k]).all())
    eye = torch.eye(k, dtype=torch.float64)
    for vectors, exact in ((found.left, U[:, :k]), (found.right, Vt[:k].T)):
        torch.testing.assert_close(vectors.T @ vectors, eye, rtol=0, atol=1e-12)
        clear = [
            i for i in range(min(k, 2)) if sigma[i] > 1.5 * sigma[i + 1] and (i == 0 or sigma[i - 1] > 1.5 * sigma[i])
        ]
        for i in clear:  # sin of the angle ≤ residual/gap, the gap being at least σ/3: then 1 − |cos| ≤ 9 · 1e-7 / 2
            assert abs(float(vectors[:, i] @ exact[:, i])) > 1 - 1e-6


def test_more_triplets_may_be_asked_for_later() -> None:
    parts = decompose(problem("plain").draw(3))
    few, many, again = parts.leading(2), parts.leading(12), parts.leading(3)
    torch.testing.assert_close(few.values, many.values[:2], rtol=1e-6, atol=0)
    assert torch.equal(again.values, many.values[:3])
    assert len(parts.leading(500)) == 90


@pytest.mark.parametrize("setting", SETTINGS)
def test_shares_are_the_dense_inner_products_and_add_to_one(setting: str) -> None:
    parts, dense = decomposed(setting)
    G, shares = dense["gradient"], parts.shares()
    assert shares is not None
    assert list(shares) == list(parts)
    for name, share in shares.items():
        assert share == pytest.approx(float((dense[name] * G).sum() / G.square().sum()), abs=1e-12)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)
    assert parts.frobenius_squared == pytest.approx(float(G.square().sum()), rel=1e-13)


@pytest.mark.parametrize("setting", SETTINGS)
def test_alignments_are_the_dense_cosines(setting: str) -> None:
    parts, dense = decomposed(setting)
    draw = problem(setting).draw(3)
    U, _, Vt = np.linalg.svd(dense["gradient"].numpy())
    split, X = parts.split, draw.X.numpy()
    q, z, a = split.direction.numpy(), split.scores.numpy(), draw.network.a.numpy()
    bulk = X - split.strength * np.outer(z, q)
    other = np.random.default_rng(0).standard_normal(90)
    directions = {
        "q": q, "bulk_residue": bulk.T @ draw.residue.numpy(), "bulk_labels": bulk.T @ draw.y.numpy(), "other": other,
        **{name: vector.numpy() for name, vector in draw.target_directions.items()},
    }  # fmt: skip
    found = parts.alignments({"other": torch.from_numpy(other)}, k=3)
    assert (
        set(found.left)
        == set(directions)
        == {"q", "bulk_residue", "bulk_labels", "other", "target_1", "target_2", "target_3"}
    )
    right = {"residue_right": a * parts.mean_derivative.value.numpy(), "data_right": dense["data_spike"].numpy().T @ q}
    assert set(found.right) == set(right)
    # u₁ is found to 3e-4 σ₁/(σ₁ − σ₂).
    for side, vectors, named in ((found.left, U[:, 0], directions), (found.right, Vt[0], right)):
        for name, direction in named.items():
            assert float(side[name][0]) == pytest.approx(abs(vectors @ direction) / np.linalg.norm(direction), abs=1e-3)
            assert side[name].shape == (3,)
    assert set(parts.alignments({"other": torch.from_numpy(other)}, named=False).left) == {"other"}
    for name, (left, on_right) in parts.part_alignments().items():
        u, _, vt = np.linalg.svd(dense[name].numpy())
        assert (left, on_right) == (
            pytest.approx(abs(U[:, 0] @ u[:, 0]), abs=1e-3),
            pytest.approx(abs(Vt[0] @ vt[0]), abs=1e-3),
        )
    assert set(parts.part_alignments()) == set(RANK_ONE) & set(parts)


@pytest.mark.parametrize("setting", SETTINGS)
def test_spikes_are_the_sum_of_the_rank_one_parts(setting: str) -> None:
    parts, dense = decomposed(setting)
    exact = sum(dense[name] for name in RANK_ONE if name in parts)
    assert parts.spikes.rank == 2
    assert frobenius(parts.spikes.dense() - exact) < 1e-13 * frobenius(exact)
    # S₁ and S₁₂ share the right vector a∘μ, S₁₂ and S₂ the left vector q: the two sums are of rank one.
    for pair in (("residue_spike", "interpolant"), ("interpolant", "data_spike")):
        values = torch.linalg.svdvals(sum(dense[name] for name in pair))
        assert float(values[1]) < 1e-13 * float(values[0])


@pytest.mark.parametrize("setting", ["plain", "all"])
def test_reconstruction_error_sees_a_corrupted_part(setting: str) -> None:
    parts, dense = decomposed(setting)
    size = frobenius(dense["gradient"])
    assert parts.reconstruction_error < 1e-12
    for name in parts:
        wrong = dense[name] * (1 + 1e-6)
        corrupted = {**parts, name: Dense(wrong)}
        found = Decomposition(
            corrupted, parts.gradient, parts.split, parts.mean_derivative, {}, {}
        ).reconstruction_error
        true = 1e-6 * frobenius(dense[name]) / size
        # Eight Gaussian probes: ‖MΩ‖²/8 is ‖M‖_F² up to a factor of χ²₈/8, in [0.05, 4] but for 1e-5 of the cases; here
        # the same for numerator and denominator, whose ratio is therefore within a factor of 9.
        assert true / 9 < found < 9 * true


@pytest.mark.parametrize("setting", ["plain", "all"])
def test_reconstruction_error_estimates_the_dense_one(setting: str) -> None:
    parts, dense = decomposed(setting)
    noise = torch.randn(90, 110, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    missing = 1e-3 * frobenius(dense["gradient"]) / frobenius(noise) * noise
    corrupted = {**parts, "remainder": Dense(dense["remainder"] + missing)}
    found = Decomposition(corrupted, parts.gradient, parts.split, parts.mean_derivative, {}, {}).reconstruction_error
    # ‖(G − Σ parts)Ω‖_F is within 1 % for a matrix of full rank, ‖GΩ‖_F within a factor of 3 for one of rank about one.
    assert 1e-3 / 3 < found < 3e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", ["mse", "huber", "log-cosh"])
def test_labels_equal_to_the_outputs_give_zeros(loss: str, dtype: str) -> None:
    X = np.random.default_rng(0).standard_normal((70, 80))

    def fitted(y: np.ndarray) -> Problem:
        return Problem(inputs=ArrayInputs(X, y), targets="numbers", network=TwoLayer(m=90), loss=loss, dtype=dtype)

    outputs = fitted(np.zeros(70)).draw(0).outputs
    draw = fitted(outputs.double().numpy()).draw(0)
    parts = decompose(draw)
    assert set(parts.norms().values()) == {0.0}
    assert parts.shares() is None
    assert (parts.reconstruction_error, parts.frobenius_squared) == (0.0, 0.0)
    leading = parts.leading(3)
    assert (leading.status, leading.values.tolist(), leading.residuals.tolist()) == ("zero", [0.0] * 3, [0.0] * 3)
    assert np.isnan(list(parts.part_alignments().values())).all()
    assert all(bool(cosines.isnan().all()) for cosines in parts.alignments(k=3).left.values())


@pytest.mark.parametrize("size", [6, 90])
def test_parts_that_cancel_to_a_gradient_of_zeros(size: int) -> None:
    # Every neuron of a ReLU network is off, μ_j = ½ all the same: S₁ = −E and S₁₂ = −S₂.
    ones = np.ones((size + 1, size))
    inputs = SpikedGaussian(n=size, d=size, nu=3.0, direction=ones[0])
    draw = Problem(inputs=inputs, network=TwoLayer(m=size + 1, activation="relu", inner="given", weights=-ones)).draw(0)
    draw = replace(draw, inputs=replace(draw.inputs, scores=draw.inputs.scores.abs() + 1))
    assert float(draw.preactivations.max()) < 0
    parts = decompose(draw)
    norms = parts.norms()
    assert norms["gradient"] == 0.0
    assert norms["residue_spike"] > 0
    assert norms["remainder"] == pytest.approx(norms["residue_spike"], rel=1e-12)
    assert norms["data_spike"] == pytest.approx(norms["interpolant"], rel=1e-12)
    assert parts.shares() is None
    assert parts.leading(2).status == "zero"
    assert parts.leading(2).residuals.tolist() == [0.0, 0.0]
    assert 0 < parts.reconstruction_error < 1e-12
    del parts._parts["remainder"]
    del parts.reconstruction_error
    assert parts.reconstruction_error > 1e-9  # of the largest part, S₂, which is 1e9 times larger than E at size 90


@pytest.mark.parametrize("regularisers", [{}, {"jacobian": 2.0, "weight_decay": 0.1}])
def test_data_of_rank_one(regularisers: dict[str, float]) -> None:
    rng = np.random.default_rng(1)
    X = np.outer(rng.standard_normal(70), rng.standard_normal(80))
    inputs = ArrayInputs(X, rng.standard_normal(70))
    penalties = Regularisers(**regularisers)
    specification = Problem(inputs=inputs, targets="numbers", network=TwoLayer(m=90), regularisers=penalties)
    parts = decompose(specification.draw(0))
    norms, whole = parts.norms(), norm(parts.gradient.dense())
    assert norms["gradient"] == pytest.approx(whole, rel=1e-6)
    assert parts.reconstruction_error < 1e-12
    # Nothing is left beside q: the bulk parts are roundings.
    assert all(
        norms[name] < 1e-12 * whole for name in ("residue_spike", "remainder", "jacobian_remainder") if name in norms
    )
    along_q = sum(parts[name].dense() for name in RANK_ONE if name in parts)
    decay = 0.1 * specification.draw(0).network.W.T if regularisers else 0.0
    assert frobenius(parts.gradient.dense() - along_q - decay) < 1e-12 * whole


@pytest.mark.parametrize("jacobian", [0.0, 2.0])
def test_inputs_without_a_spike(jacobian: float) -> None:
    inputs = SpikedGaussian(n=70, d=80, direction="none")
    draw = Problem(inputs=inputs, network=TwoLayer(m=90), regularisers=Regularisers(jacobian=jacobian)).draw(0)
    parts = decompose(draw)
    norms = parts.norms()
    zero = {name for name, value in norms.items() if value == 0.0}
    assert zero == {"interpolant", "data_spike"} | ({"jacobian_spike"} if jacobian else set())
    assert norms["gradient"] == pytest.approx(norm(parts.gradient.dense()), rel=1e-6)
    assert parts.reconstruction_error < 1e-12
    assert isinstance(parts.spikes, LowRank)
    assert torch.equal(parts.spikes.dense(), parts["residue_spike"].dense())
    found = parts.alignments(k=2)
    assert set(found.left) == {"bulk_residue", "bulk_labels", "target_1", "target_2", "target_3"}
    assert set(found.right) == {"residue_right"}
    assert {name for name, pair in parts.part_alignments().items() if np.isnan(pair).all()} == zero
    assert sum((parts.shares() or {}).values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_same_numbers_on_a_cuda_device(setting: str, dtype: str) -> None:
    specification, split = problem(setting, dtype), SETTINGS[setting][3]
    on_cpu, on_cuda = (decompose(specification.draw(3, device=device), split=split) for device in ("cpu", "cuda"))
    assert on_cuda.gradient.device.type == "cuda"
    # float32 products of 100 terms, TF32 being off unless asked for; the iterations stop at 1e-6.
    tolerance = 1e-6 if dtype == "float64" else 1e-3
    assert on_cuda.norms() == pytest.approx(on_cpu.norms(), rel=tolerance)
    assert on_cuda.shares() == pytest.approx(on_cpu.shares(), abs=tolerance)
    assert on_cuda.reconstruction_error < (1e-12 if dtype == "float64" else 1e-5)
    torch.testing.assert_close(on_cuda.leading(5).values.cpu(), on_cpu.leading(5).values, rtol=tolerance, atol=0)
    for name, cosines in on_cpu.alignments(k=1).left.items():
        assert float(on_cuda.alignments(k=1).left[name][0]) == pytest.approx(float(cosines[0]), abs=1e-3)
