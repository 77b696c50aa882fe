import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.foundation.random import stream
from gradrank.problem.network import INNER, SCALINGS, TwoLayer
from gradrank.problem.spiked_gaussian import SpikedGaussian

N, D, M = 81, 50, 300
INPUTS = SpikedGaussian(n=N, d=D).draw(seed=0)
Q = INPUTS.direction


def weights(inner: str, **fields: object) -> torch.Tensor:
    return TwoLayer(m=M, inner=inner, **fields).draw(INPUTS, seed=0).W


@pytest.mark.parametrize("inner", ["sphere", "aligned", "orthogonal", "data"])
def test_rows_have_norm_one(inner: str) -> None:
    W = weights(inner)
    assert W.shape == (M, D)
    torch.testing.assert_close(W.norm(dim=1), torch.ones(M, dtype=torch.float64), rtol=1e-14, atol=0)


def test_sphere_is_isotropic() -> None:
    cosines = weights("sphere") @ Q
    # E⟨w, q⟩² = 1/d with variance 2(d − 1)/(d²(d + 2)).
    assert abs(float(cosines.square().mean()) - 1 / D) < 4 * math.sqrt(2 * (D - 1) / (D**2 * (D + 2)) / M)
    assert abs(float(cosines.mean())) < 4 / math.sqrt(D * M)


def test_gaussian_entries_have_variance_one_over_d() -> None:
    W = weights("gaussian")
    # Var of a mean of squares of N(0, 1/d): 2/(d² · number).
    assert abs(float(W.square().mean()) - 1 / D) < 4 * math.sqrt(2 / (M * D)) / D
    assert float(W.norm(dim=1).std()) > 0.01


def test_aligned_rows_are_the_sphere_rows_moved_along_the_spike() -> None:
    sphere, aligned, t = weights("sphere"), weights("aligned"), N**-0.25
    moved = sphere.numpy() + t * Q.numpy()
    np.testing.assert_allclose(
        aligned.numpy(), moved / np.linalg.norm(moved, axis=1, keepdims=True), rtol=1e-12, atol=1e-15
    )
    # Mean cosine t/√(1 + t²), up to the curvature's 1/d and the standard error 1/√(dm).
    assert float((aligned @ Q).mean()) == pytest.approx(t / math.sqrt(1 + t**2), abs=1 / D + 4 / math.sqrt(D * M))


def test_orthogonal_rows_do_not_see_the_spike() -> None:
    W = weights("orthogonal")
    assert float((W @ Q).abs().max()) < 1e-14
    other = torch.linalg.qr(torch.cat([Q[:, None], torch.eye(D, 1).double()], dim=1)).Q[:, 1]
    assert abs(float((W @ other).square().mean()) - 1 / (D - 1)) < 4 * math.sqrt(2 / M) / D


def test_data_rows_lie_halfway_to_a_sample() -> None:
    W, X = weights("data"), INPUTS.X / INPUTS.X.norm(dim=1, keepdim=True)
    sphere = weights("sphere")
    nearest = (W @ X.T).abs().argmax(dim=1)
    # w ∝ x + u: twice the bisector is recovered from the sample and the sphere row for most rows.
    moved = X[nearest] + sphere
    matches = (moved / moved.norm(dim=1, keepdim=True) - W).norm(dim=1) < 1e-12
    assert float(matches.double().mean()) > 0.9
    assert not TwoLayer(m=2, inner="data").draw(INPUTS, 0).independent
    other = SpikedGaussian(n=N, d=D, nu=0.6).draw(seed=0)
    assert not TwoLayer(m=M, inner="data").draw(other, seed=0).W.equal(W)


def test_convolution_is_torchs() -> None:
    k, filters = 7, 3
    positions = D - k + 1
    network = TwoLayer(m=filters * positions, inner="conv", kernel_size=k).draw(INPUTS, seed=0)
    W = network.W
    kernels = torch.stack([W[f * positions, :k] for f in range(filters)])
    outputs = torch.nn.functional.conv1d(INPUTS.X[:, None], kernels[:, None]).reshape(N, -1)
    torch.testing.assert_close(INPUTS.X @ W.T, outputs, rtol=1e-12, atol=1e-13)
    assert int((W != 0).sum()) == filters * positions * k
    assert bool((W[1:positions, 1:] == W[: positions - 1, :-1]).all())
    torch.testing.assert_close(kernels.norm(dim=1), torch.ones(filters, dtype=torch.float64))
    assert network.kernel_size == k


@pytest.mark.parametrize(
    ("m", "k", "message"),
    [(45, 7, r"^network\.m: 45 .*multiple of 44 rows"), (5, D + 1, r"^network\.kernel_size: 51 .*at most d = 50")],
)
def test_convolution_that_does_not_fit(m: int, k: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TwoLayer(m=m, inner="conv", kernel_size=k).draw(INPUTS, seed=0)


@pytest.mark.parametrize("m", [1, 100])
def test_output_scales(m: int) -> None:
    assert set(SCALINGS) == {"ntk", "mf"}
    assert TwoLayer(m=m, scaling="ntk").gamma == pytest.approx(1 / math.sqrt(m), rel=1e-15)
    assert TwoLayer(m=m, scaling="mf").gamma == pytest.approx(1 / m, rel=1e-15)
    assert TwoLayer(m=m, scaling=3).draw(INPUTS, 0).gamma == 3.0


def test_outer_weights_are_fair_signs_of_their_own_stream() -> None:
    network = TwoLayer(m=4000).draw(INPUTS, seed=0)
    assert set(network.a.tolist()) == {-1.0, 1.0}
    assert abs(float(network.a.mean())) < 4 / math.sqrt(4000)
    assert network.a.equal(TwoLayer(m=4000, inner="gaussian").draw(INPUTS, seed=0).a)
    assert network.m == 4000


@pytest.mark.parametrize("kind", ["tensor", "array", "list", "file"])
def test_given_weights(kind: str, tmp_path: Path) -> None:
    W = np.random.default_rng(0).standard_normal((3, D))
    path = tmp_path / "weights.npy"
    np.save(path, W)
    value = {"tensor": torch.from_numpy(W), "array": W, "list": W.tolist(), "file": str(path)}[kind]
    network = TwoLayer(m=3, inner="given", weights=value).draw(INPUTS, seed=0)
    np.testing.assert_array_equal(network.W.numpy(), W)
    assert not network.independent


def test_given_weights_are_copied() -> None:
    W = torch.ones(3, D, dtype=torch.float64)
    network = TwoLayer(m=3, inner="given", weights=W).draw(INPUTS, seed=0)
    W[0, 0] = 9.0
    assert float(network.W[0, 0]) == 1.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((D, 3)), r"the shape \(50, 3\) is not allowed; give \(m, d\) = \(3, 50\)"),
        (np.full((3, D), np.nan), "NaN or infinite"),
        ([["a"] * D] * 3, "give real numbers"),
        (np.ones((3, D), dtype=complex), "give real numbers"),
        ([[1.0], [1.0, 2.0], [1.0]], "rows of different lengths"),
    ],
    ids=["shape", "nan", "text", "complex", "ragged"],
)
def test_given_weights_that_cannot_be_used(value: object, message: str) -> None:
    with pytest.raises(InputError, match=rf"^network\.weights: .*{message}"):
        TwoLayer(m=3, inner="given", weights=value).draw(INPUTS, seed=0)


@pytest.mark.parametrize("inner", ["aligned", "orthogonal"])
def test_spike_is_needed_where_rows_refer_to_it(inner: str) -> None:
    bare = SpikedGaussian(n=5, d=4, direction="none").draw(0)
    with pytest.raises(InputError, match=rf"^network\.inner: '{inner}' .*no known spike"):
        TwoLayer(m=2, inner=inner).draw(bare, seed=0)


def test_every_choice_is_described() -> None:
    assert set(INNER) == set(TwoLayer.model_fields["inner"].annotation.__args__)


def test_width_beyond_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"^network\.m: needs .*give a smaller m"):
        TwoLayer(m=10**15).draw(INPUTS, seed=0)


def test_streams_are_those_documented() -> None:
    rows = stream(0, "network.inner").standard_normal((M, D))
    np.testing.assert_allclose(weights("gaussian").numpy() * math.sqrt(D), rows, rtol=1e-14)
