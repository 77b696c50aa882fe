"""Second moments of a gradient's columns against those of many simulated neurons, and against the gradient itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.column_covariance import ColumnCovariances
from gradrank.gradient.conditioning import Conditioning, population_classes
from gradrank.gradient.decomposition import decompose
from gradrank.gradient.setting import Setting, setting_of_draw
from gradrank.problem.activations import ACTIVATIONS, activation
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

NEURONS = 30_000
REGULARISERS = {"plain": (0.0, 0.0), "jacobian": (0.8, 0.0), "decay": (0.0, 0.3), "both": (0.8, 0.3)}
CASES = [
    ("softplus", "plain", 9),
    ("softplus", "jacobian", 9),
    ("softplus", "decay", 9),
    ("softplus", "both", 4),
    ("erf", "plain", 4),
    ("relu", "plain", 9),
    ("relu", "both", 4),
    pytest.param("tanh", "jacobian", 4, marks=pytest.mark.slow),
    pytest.param("elu", "both", 9, marks=pytest.mark.slow),
]


def setting(name: str = "softplus", *, n: int = 6, d: int = 9, jacobian: float = 0.0, decay: float = 0.0) -> Setting:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, d, generator=generator, dtype=torch.float64) * 1.5
    r = torch.randn(n, generator=generator, dtype=torch.float64)
    return Setting(X, r, ACTIVATIONS[name], 0.6, 5, jacobian, decay)


def gaussian_weights(d: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(NEURONS, d, generator=generator, dtype=torch.float64) / math.sqrt(d)


def deviation(columns: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference of the columns' second moment from ``expected``, in standard errors."""
    mean = columns @ columns.T / columns.shape[1]
    spread = ((columns**2) @ (columns**2).T / columns.shape[1] - mean**2).clamp(min=0).sqrt()
    return float(((mean - expected).abs() / (spread / math.sqrt(columns.shape[1]))).max())


def one_kappa(d: int, kappa: float) -> Conditioning:
    q = torch.ones(d, dtype=torch.float64) / math.sqrt(d)
    value = torch.tensor([kappa], dtype=torch.float64)
    return Conditioning(q, value, torch.ones(1, dtype=torch.float64), "population", value)


@pytest.mark.parametrize(("name", "regularisers", "d"), CASES)
def test_each_class_is_the_second_moment_of_its_neurons(name: str, regularisers: str, d: int) -> None:
    """Both signs a = ±1; where there is one class, it is that of either sign."""
    jacobian, decay = REGULARISERS[regularisers]
    columns = ColumnCovariances(setting(name, d=d, jacobian=jacobian, decay=decay), None)
    W = gaussian_weights(d)
    H = columns.setting.X @ W.T
    for sign in (1.0, -1.0):
        index = columns.signs.index(sign) if len(columns.signs) == 2 else 0
        C = columns.covariance(index)
        found = columns.combine(H, torch.full((NEURONS,), sign, dtype=torch.float64), W)
        assert deviation(found, C) < 5  # of some 500 different entries in all: P = 3e-4
        assert torch.equal(C, C.T)
    assert columns.weights == [1 / len(columns.signs)] * len(columns.signs)


def test_the_two_classes_are_told_apart_by_the_simulation() -> None:
    """The test above would notice a wrong sign."""
    columns = ColumnCovariances(setting(jacobian=0.8, decay=0.3), None)
    W = gaussian_weights(9)
    found = columns.combine(columns.setting.X @ W.T, torch.ones(NEURONS, dtype=torch.float64), W)
    assert deviation(found, columns.covariance(1)) > 20


@pytest.mark.parametrize(
    ("name", "jacobian", "kappa"),
    [("softplus", 0.0, -0.5), ("softplus", 0.8, -0.5), ("tanh", 0.8, 0.0), ("elu", 0.8, -0.5)],
)
def test_conditioned_on_one_kappa(name: str, jacobian: float, kappa: float) -> None:
    columns = ColumnCovariances(setting(name, jacobian=jacobian), one_kappa(9, kappa))
    assert columns.conditioning is not None
    q, W = columns.conditioning.direction, gaussian_weights(9)
    # Isotropic orthogonal to q with E‖w‖² = 1.
    W = kappa * q + (W - torch.outer(W @ q, q)) * math.sqrt((1 - kappa**2) * 9 / 8)
    H = columns.setting.X @ W.T
    for index, sign in enumerate(columns.signs):
        found = columns.combine(H, torch.full((NEURONS,), sign, dtype=torch.float64), W)
        assert deviation(found, columns.covariance(index)) < 5
    assert columns.error < 1e-4
    assert len(columns.signs) == (2 if jacobian else 1)


def test_the_mean_over_kappa_is_the_covariance_without_conditioning() -> None:
    """κ ~ N(0, 1/d) in 100 classes: exact but for their width, of which Σκ² is kept."""
    source = setting("erf")
    q = torch.ones(9, dtype=torch.float64) / 3
    columns = ColumnCovariances(source, population_classes(q, 100))
    mean = sum((w * columns.covariance(b) for b, w in enumerate(columns.weights)), start=torch.zeros(6, 6).double())
    whole = ColumnCovariances(source, None).covariance(0)
    torch.testing.assert_close(mean, whole, rtol=0, atol=1e-3 * float(whole.diagonal().max()))
    assert float((columns.covariance(0) - whole).abs().max()) > 0.1 * float(whole.diagonal().max())


@pytest.mark.parametrize("regularisers", REGULARISERS)
def test_columns_are_those_of_the_gradient(regularisers: str) -> None:
    """√m G of a draw's decomposition, which autograd has checked, in the basis and unit of the covariances."""
    jacobian, decay = REGULARISERS[regularisers]
    draw = Problem(
        inputs=SpikedGaussian(n=8, d=12),
        network=TwoLayer(m=20, activation="softplus", scaling="mf"),
        regularisers=Regularisers(jacobian=jacobian, weight_decay=decay),
    ).draw(1)
    columns = ColumnCovariances(setting_of_draw(draw, {}), None)
    found = columns.scale * columns.combine(draw.preactivations, draw.network.a, draw.network.W)
    found = found if columns.basis is None else columns.basis @ found
    torch.testing.assert_close(found, math.sqrt(20) * decompose(draw).gradient.dense(), rtol=1e-10, atol=1e-13)
    assert (columns.basis is None) == bool(decay)


@pytest.mark.parametrize(
    ("name", "jacobian", "decay", "classes"),
    [
        ("sigmoid", 0.8, 0.0, 1),
        ("tanh", 0.8, 0.0, 1),
        ("erf", 0.8, 0.0, 1),
        ("relu", 0.8, 0.0, 1),  # σ″ = 0
        ("softplus", 0.8, 0.0, 2),
        ("elu", 0.8, 0.0, 2),
        ("sigmoid", 0.0, 0.3, 1),
        ("softplus", 0.0, 0.3, 2),
        ("relu", 0.0, 0.3, 2),  # E σ″ = δ at the kink
        ("softplus", 0.0, 0.0, 1),
    ],
)
def test_parity_decides_on_the_classes(name: str, jacobian: float, decay: float, classes: int) -> None:
    n = 6 if name == "tanh" else 1  # of one row the kernels are a quadrature
    assert len(ColumnCovariances(setting(name, n=n, jacobian=jacobian, decay=decay), None).signs) == classes


@pytest.mark.parametrize("factor", [1e-20, 1e20, 1e-150, 1e150])
def test_the_scale_of_the_residue_goes_into_the_unit(factor: float) -> None:
    source = setting("erf")
    plain, scaled = (ColumnCovariances(s, None) for s in (source, replace(source, residue=factor * source.residue)))
    assert scaled.scale == pytest.approx(factor * plain.scale, rel=1e-12)
    torch.testing.assert_close(scaled.covariance(0), plain.covariance(0), rtol=1e-11, atol=1e-14)
    decay = replace(source, weight_decay=0.3)
    both = (decay, replace(decay, residue=factor * decay.residue, weight_decay=factor * 0.3))
    plain, scaled = (ColumnCovariances(s, None) for s in both)
    torch.testing.assert_close(scaled.covariance(0), plain.covariance(0), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("factor", [1e-20, 1e20, 1e-150, 1e150])
def test_the_scale_of_the_inputs_goes_into_the_unit(factor: float) -> None:
    """For ReLU, whose slope knows no scale."""
    source = setting("relu")
    scaled = ColumnCovariances(replace(source, X=factor * source.X), None)
    plain = ColumnCovariances(source, None)
    assert scaled.scale == pytest.approx(factor * plain.scale, rel=1e-12)
    torch.testing.assert_close(scaled.covariance(0), plain.covariance(0), rtol=1e-10, atol=1e-14)
    assert scaled.rank == plain.rank == 5  # as many as columns
    conditioned = [ColumnCovariances(c.setting, one_kappa(9, 0.2)).covariance(0) for c in (plain, scaled)]
    torch.testing.assert_close(conditioned[1], conditioned[0], rtol=1e-8, atol=1e-12)


def test_the_basis_spans_the_rows() -> None:
    columns = ColumnCovariances(setting("tanh"), None)
    assert columns.basis is not None
    B = columns.basis
    torch.testing.assert_close(B.T @ B, torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(B @ (B.T @ columns.setting.X.T), columns.setting.X.T)
    whole = replace(columns.setting, X=columns.setting.X[:, :4])
    assert ColumnCovariances(whole, None).basis is None


def test_rank_counts_what_carries_a_signal() -> None:
    source = setting("erf", n=8, d=20)
    assert ColumnCovariances(replace(source, m=50), None).rank == 8
    assert ColumnCovariances(replace(source, m=5), None).rank == 5
    silent = source.residue.clone()
    silent[:3] = 0.0
    assert ColumnCovariances(replace(source, m=50, residue=silent), None).rank == 5
    assert ColumnCovariances(replace(source, m=50, residue=silent, jacobian=0.1), None).rank == 8
    low = torch.cat([source.X[:4], source.X[:4] + 1e-30])
    assert ColumnCovariances(replace(source, m=50, X=low), None).rank == 4
    assert ColumnCovariances(replace(source, m=50, weight_decay=0.1), None).rank == 20
    positive = torch.linalg.eigvalsh(ColumnCovariances(replace(source, m=50, X=low), None).covariance(0))
    assert int((positive > 1e-12).sum()) == 4


def test_only_weight_decay_is_left_where_the_residue_is_zero() -> None:
    source = setting("relu", decay=0.3)
    columns = ColumnCovariances(replace(source, residue=0 * source.residue), None)
    torch.testing.assert_close(
        columns.scale**2 * columns.covariance(0), torch.eye(9, dtype=torch.float64) * (5 * 0.09 / 9)
    )
    penalty = ColumnCovariances(
        replace(source, residue=0 * source.residue, weight_decay=0.0, jacobian=0.5, activation=ACTIVATIONS["erf"]), None
    )
    assert float(penalty.covariance(0).diagonal().min()) > 0


def test_rows_of_zeros_and_duplicates() -> None:
    source = setting("relu")
    X = source.X.clone()
    X[0], X[2] = 0.0, X[1]
    columns = ColumnCovariances(replace(source, X=X), None)
    W = gaussian_weights(9)
    found = columns.combine(X @ W.T, torch.ones(NEURONS, dtype=torch.float64), W)
    B = columns.basis
    assert B is not None  # of 4 dimensions and two that nothing lies in
    live = torch.linalg.svd(B.T @ X.T).U[:, : columns.rank]
    assert columns.rank == 4
    assert deviation(live.T @ found, live.T @ columns.covariance(0) @ live) < 5


def test_a_users_activation_is_searched_for_breaks() -> None:
    source = replace(setting(), activation=activation(lambda x: torch.where(x > 0.5, 2 * x - 0.5, x)))
    columns, W = ColumnCovariances(source, None), gaussian_weights(9)
    found = columns.combine(source.X @ W.T, torch.ones(NEURONS, dtype=torch.float64), W)
    assert deviation(found, columns.covariance(0)) < 5


@pytest.mark.parametrize("fill", [0.0, math.nan, math.inf])
def test_a_residue_without_a_spectrum_is_declined(fill: float) -> None:
    source = setting("tanh")
    with pytest.raises(InputError, match="residue: all zero or not finite"):
        ColumnCovariances(replace(source, residue=torch.full_like(source.residue, fill)), None)
    with pytest.raises(InputError, match="all zero"):
        ColumnCovariances(replace(source, X=0 * source.X), None)


@pytest.mark.parametrize(("inner", "way_out"), [("sphere", "conditioning = 'none'"), ("aligned", "do not depend on q")])
def test_weight_decay_is_declined_under_conditioning(inner: str, way_out: str) -> None:
    source = replace(setting(decay=0.1), inner=inner)
    with pytest.raises(InputError, match=way_out) as caught:
        ColumnCovariances(source, one_kappa(9, 0.0))
    assert str(caught.value).startswith("regularisers.weight_decay: ")


def test_weights_of_all_classes_add_to_one() -> None:
    q = torch.ones(9, dtype=torch.float64) / 3
    kappa, shares = torch.tensor([-0.3, 0.1, 0.4]).double(), torch.tensor([0.2, 0.5, 0.3]).double()
    columns = ColumnCovariances(setting(jacobian=0.3), Conditioning(q, kappa, shares, "population", kappa))
    assert sum(columns.weights) == pytest.approx(1.0)
    np.testing.assert_allclose(columns.weights, [0.1, 0.1, 0.25, 0.25, 0.15, 0.15])
