"""Classes of neurons by κ = wᵀq: moments that are kept, laws by simulation, and when neurons are told apart."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from gradrank.foundation.errors import InputError
from gradrank.foundation.random import stream, unit_rows, unit_vector
from gradrank.gradient.conditioning import (
    LARGE_SPIKE,
    along_direction,
    choose_conditioning,
    leading_direction,
    population_classes,
    realised_classes,
)
from gradrank.gradient.setting import Setting
from gradrank.problem.activations import ACTIVATIONS

D = 60
Q = torch.from_numpy(unit_vector(stream(0, "q"), D))


def setting(spike: float = 0.0, n: int = 80, **fields: object) -> Setting:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, D, generator=generator, dtype=torch.float64)
    X = X + spike * torch.randn(n, 1, generator=generator, dtype=torch.float64) * Q
    return Setting(X, torch.ones(n, dtype=torch.float64), ACTIVATIONS["tanh"], 0.1, 50, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [2, 7, 24])
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_classes_keep_the_second_moment(classes: int, offset: float) -> None:
    found = population_classes(Q, classes, offset)
    assert float(found.weights.sum()) == pytest.approx(1.0, abs=1e-14)
    assert found.kappa.shape == found.weights.shape == (classes,)
    second = float(found.weights @ found.kappa.square())
    assert second == pytest.approx(float(found.values.square().mean()), rel=1e-12)
    if not offset:  # of N(0, 1/d), but for the tails beyond the outermost node
        assert second == pytest.approx(1 / D, rel=2e-3)
        if classes % 2 == 0:  # else the middle one is on one side
            torch.testing.assert_close(found.kappa, -found.kappa.flip(0), rtol=1e-10, atol=1e-14)
    assert bool((found.kappa.diff() > 0).all())
    assert found.kind == "population"


def test_population_values_are_normal() -> None:
    values = population_classes(Q, 24).values.numpy()
    assert kstest(values * math.sqrt(D), norm.cdf).statistic < 1 / len(values)


def test_the_law_of_rows_aligned_with_q() -> None:
    """Rows (w + c q)/‖w + c q‖, w uniform on the sphere: 40,000 of them against the classes' values."""
    d, c, rows = 500, 300**-0.25, 40_000
    q = unit_vector(stream(1, "q"), d)
    W = unit_rows(stream(2, "rows"), rows, d) + c * q
    kappa = np.sort(W @ q / np.linalg.norm(W, axis=1))
    values = population_classes(torch.from_numpy(q), 24, c).values.numpy()
    # wᵀq is N(0, 1/d) but for a relative 1/d in its moments: a distance of 0.1/d beside that of a sample.
    distance = np.abs(np.searchsorted(values, kappa) / len(values) - (np.arange(rows) + 0.5) / rows).max()
    assert distance < 1.63 / math.sqrt(rows) + 1 / d  # 99 % quantile of Kolmogorov's law
    assert abs(kappa.mean() - values.mean()) < 4 * kappa.std() / math.sqrt(rows) + 1 / d**1.5
    assert values.mean() > 5 * abs(population_classes(torch.from_numpy(q), 24).values.mean())


def test_realised_classes_are_those_of_the_weights() -> None:
    W = torch.from_numpy(unit_rows(stream(0, "rows"), 103, D))
    found = realised_classes(Q, W, 10)
    kappa = (W @ Q).sort().values
    torch.testing.assert_close(found.values, kappa)
    assert float(found.weights @ found.kappa.square()) == pytest.approx(float(kappa.square().mean()), rel=1e-12)
    torch.testing.assert_close(found.weights * 103, torch.tensor([11.0] * 3 + [10.0] * 7, dtype=torch.float64))
    assert len(realised_classes(Q, W[:4].float(), 10).kappa) == 4


@pytest.mark.parametrize("m", [1, 5, 400, 20_000])
def test_spread_takes_every_part_evenly(m: int) -> None:
    found = population_classes(Q, 10)
    chosen = found.spread(m)
    assert chosen.shape == (m,)
    assert bool((chosen.diff() >= 0).all())
    if m >= 400:
        assert float(chosen.square().mean()) == pytest.approx(1 / D, rel=0.03)
        for part in torch.chunk(chosen, 10):  # a tenth of them in each class
            assert len(part) == m // 10
        inner = torch.quantile(found.values, torch.linspace(0, 1, 11, dtype=torch.float64))[1:-1]
        counts = torch.searchsorted(chosen, inner).double() / m
        torch.testing.assert_close(counts, torch.linspace(0.1, 0.9, 9, dtype=torch.float64), rtol=0, atol=1 / m)


def test_split_is_what_is_left_of_the_rows() -> None:
    """Var w_⊥ᵀx given κ, of rows w = κq + √(1 − κ²) u with u uniform orthogonal to q: 100,000 of them."""
    X = setting(spike=4.0).X[:5]
    found = population_classes(Q, 6)
    one = replace(found, kappa=torch.tensor([0.3]).double(), weights=torch.ones(1, dtype=torch.float64))
    t, s, rho = one.split(X)
    torch.testing.assert_close(t, X @ Q)
    u = torch.from_numpy(unit_rows(stream(5, "u"), 100_000, D))
    u -= torch.outer(u @ Q, Q)
    W = 0.3 * Q + math.sqrt(1 - 0.09) * u / u.norm(dim=1, keepdim=True)
    rest = W @ X.T - 0.3 * t
    products = rest[:, :, None] * rest[:, None, :]
    error = products.std(dim=0) / math.sqrt(len(W))
    assert float(((products.mean(dim=0) - s[:, None] * rho * s) / error).abs().max()) < 4.5


def test_when_neurons_are_told_apart() -> None:
    W = torch.from_numpy(unit_rows(stream(0, "rows"), 50, D))
    weak, strong = setting(0.5, W=W), setting(30.0, W=W)
    assert choose_conditioning(weak, "auto", 8) is None
    assert choose_conditioning(strong, "none", 8) is None
    for kind, source in (("auto", strong), ("population", weak), ("population", strong)):
        found = choose_conditioning(source, kind, 8)
        assert found is not None
        assert (found.kind, len(found.kappa)) == ("population", 8)
    realised = choose_conditioning(strong, "realised", 8)
    assert realised is not None
    assert realised.kind == "realised"
    assert abs(float(realised.direction @ Q)) > 0.99
    torch.testing.assert_close(realised.values, (W @ realised.direction).sort().values)
    with pytest.raises(InputError, match="'realised' needs a draw"):
        choose_conditioning(setting(30.0), "realised", 8)


def test_weight_decay_is_not_conditioned_by_itself() -> None:
    assert choose_conditioning(setting(30.0, weight_decay=0.1), "auto", 8) is None
    assert choose_conditioning(setting(30.0, weight_decay=0.1), "population", 8) is not None


@pytest.mark.parametrize("kind", ["auto", "none", "population"])
def test_rows_that_depend_on_q_are_always_conditioned(kind: str) -> None:
    orthogonal = choose_conditioning(setting(0.1, inner="orthogonal", spike_direction=Q), kind, 8)
    assert orthogonal is not None
    assert (orthogonal.kind, orthogonal.kappa.tolist(), orthogonal.weights.tolist()) == ("κ = 0", [0.0], [1.0])
    assert torch.equal(orthogonal.direction, Q)
    aligned = choose_conditioning(setting(0.1, inner="aligned", spike_direction=Q), kind, 8)
    assert aligned is not None
    assert torch.equal(aligned.direction, Q)
    expected = 80**-0.25 / math.sqrt(1 + 80**-0.5)
    assert float(aligned.weights @ aligned.kappa) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("spike", [0.0, 3.0, 12.0])
def test_the_direction_and_the_deviation_along_it(spike: float) -> None:
    X = setting(spike, n=4000).X
    q = leading_direction(X)
    right = torch.linalg.svd(X, full_matrices=False).Vh[0]
    assert abs(float(q @ right)) == pytest.approx(1.0, abs=1e-9)
    # (1 + ζ²) along q against d − 1 across, each to a relative √(2/n).
    assert along_direction(X, Q) == pytest.approx(math.sqrt((1 + spike**2) / (D - 1)), rel=4 * math.sqrt(2 / 4000))
    assert (along_direction(X, Q) > LARGE_SPIKE) == (spike == 12.0)
    assert along_direction(torch.outer(torch.ones(3).double(), Q), Q) > 1e6
