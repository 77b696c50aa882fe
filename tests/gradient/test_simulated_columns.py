"""Columns of simulated networks: their weights have the law that was asked for."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradrank.gradient.column_covariance import ColumnCovariances
from gradrank.gradient.conditioning import Conditioning, population_classes
from gradrank.gradient.setting import Setting
from gradrank.gradient.simulated_columns import network_samples
from gradrank.problem.activations import ACTIVATIONS

D, M = 40, 3000


def setting(m: int = M, d: int = D, n: int = 6) -> Setting:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, d, generator=generator, dtype=torch.float64)
    r = torch.randn(n, generator=generator, dtype=torch.float64)
    return Setting(X, r, ACTIVATIONS["tanh"], 0.2, m)


def seen_by(source: Setting, conditioning: Conditioning | None, draws: int = 2, seed: int = 0) -> list[dict[str, Any]]:
    """Return what `ColumnCovariances.combine` is called with."""
    calls: list[dict[str, Any]] = []

    def combine(H: torch.Tensor, signs: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        calls.append({"H": H, "signs": signs, "W": W})
        return H

    network_samples(SimpleNamespace(setting=source, conditioning=conditioning, combine=combine), draws, seed)  # type: ignore[arg-type]
    return calls


def test_rows_are_uniform_on_the_sphere() -> None:
    source = setting()
    first, second = seen_by(source, None)
    for call in (first, second):
        W = call["W"]
        assert W.shape == (M, D)
        torch.testing.assert_close(W.norm(dim=1), torch.ones(M, dtype=torch.float64))
        torch.testing.assert_close(call["H"], source.X @ W.T)
        assert set(call["signs"].tolist()) == {-1.0, 1.0}
        assert abs(float(call["signs"].mean())) < 4 / math.sqrt(M)
        moment = W.T @ W / M  # E = I/d, standard errors 1/(d√m) and √2/(d√m)
        assert float((moment - torch.eye(D) / D).abs().max()) < 5.5 * math.sqrt(2) / D / math.sqrt(M)
    assert not torch.equal(first["W"], second["W"])
    torch.testing.assert_close(seen_by(source, None)[1]["W"], second["W"], rtol=0, atol=0)
    assert not torch.equal(seen_by(source, None, seed=1)[0]["W"], first["W"])


def test_conditioned_rows_have_the_classes_components() -> None:
    source, q = setting(), torch.ones(D, dtype=torch.float64) / math.sqrt(D)
    for conditioning in (population_classes(q, 24), population_classes(q, 24, 0.3)):
        call = seen_by(source, conditioning)[0]
        torch.testing.assert_close(call["W"] @ q, conditioning.spread(M))
        torch.testing.assert_close(call["W"].norm(dim=1), torch.ones(M, dtype=torch.float64))
        across = call["W"] - torch.outer(call["W"] @ q, q)
        torch.testing.assert_close(across.mean(dim=0).abs().max() * 0, torch.zeros(()).double())
        assert float(across.mean(dim=0).abs().max()) < 5 / math.sqrt(M * D)


def test_a_component_longer_than_the_row_is_the_row() -> None:
    """κ ~ N(0, 1/d) passes 1 where d is small."""
    q = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    W = seen_by(setting(d=3), population_classes(q, 24))[0]["W"]
    assert bool(torch.isfinite(W).all())


@pytest.mark.parametrize("conditioned", [False, True])
def test_their_second_moment_is_the_covariance(conditioned: bool) -> None:
    """Over the sphere in d = 200 instead of Gaussian weights: a relative 1/d beside the standard error of 60,000 columns."""
    source = setting(m=20_000, d=200)
    q = torch.ones(200, dtype=torch.float64) / math.sqrt(200)
    columns = ColumnCovariances(source, population_classes(q, 12) if conditioned else None)
    Y = torch.cat(network_samples(columns, 3, seed=5), dim=1)
    C = sum((w * columns.covariance(b) for b, w in enumerate(columns.weights)), start=torch.zeros(6, 6).double())
    moment = Y @ Y.T / Y.shape[1]
    error = ((Y**2) @ (Y**2).T / Y.shape[1] - moment**2).sqrt() / math.sqrt(Y.shape[1])
    assert bool(((moment - C).abs() < 4 * error + C.diagonal().max() / 200).all())
    assert float(error.max()) < 0.02 * float(C.diagonal().max())
