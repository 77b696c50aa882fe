"""Simulated Gaussian columns of one covariance against Silverstein's law, of two against a direct simulation."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import ConvergenceError
from gradrank.linalg.gaussian_columns import gaussian_samples, positive_part, sample_values, sampled_spectrum
from gradrank.linalg.silverstein import SilversteinLaw

K, M = 120, 240
DECAY = torch.arange(1, K + 1, dtype=torch.float64) ** -0.5


def rotated(eigenvalues: torch.Tensor, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    Q, _ = torch.linalg.qr(torch.randn(len(eigenvalues), len(eigenvalues), generator=generator, dtype=torch.float64))
    return (Q * eigenvalues) @ Q.T


def test_one_class_follows_silverstein() -> None:
    """Counts of eigenvalues scatter by less than one about the law: 4/K is a wide bound for their largest deviation."""
    C = rotated(DECAY)
    mean, samples = gaussian_samples(lambda _: C, [1.0], M, 3, seed=0)
    torch.testing.assert_close(mean, C)
    law, ranks = SilversteinLaw(DECAY.numpy(), M), np.arange(K)
    for values in sampled_spectrum(mean, samples, K).values:
        above = K * (1 - law.cdf(values**2))
        assert np.abs(above - ranks - 0.5).max() < 4


def test_every_column_has_its_covariance() -> None:
    """E YYᵀ/number of each class, entry by entry, by the standard error of a Gaussian product moment."""
    classes, weights = [rotated(DECAY[:20], seed) for seed in (1, 2, 3)], [0.5, 0.3, 0.2]
    columns = 40_000
    mean, (Y,) = gaussian_samples(classes.__getitem__, weights, columns, 1, seed=4)
    torch.testing.assert_close(mean, sum(w * C for w, C in zip(weights, classes, strict=True)))
    ends = [0, 20_000, 32_000, 40_000]
    for C, start, stop in zip(classes, ends[:-1], ends[1:], strict=True):
        part = Y[:, start:stop]
        variance = (torch.outer(C.diagonal(), C.diagonal()) + C**2) / (stop - start)
        assert float(((part @ part.T / (stop - start) - C).abs() / variance.sqrt()).max()) < 4.5


def test_two_classes_against_a_direct_simulation() -> None:
    """Means over draws of the bulk's moments and of the largest value: two ways to draw, one law."""
    classes = [torch.diag(DECAY), torch.diag(9 * DECAY.flip(0))]
    draws = 40
    mean, samples = gaussian_samples(classes.__getitem__, [0.75, 0.25], M, draws, seed=1)
    found = sampled_spectrum(mean, samples, K).values
    rng = np.random.default_rng(9)
    direct = np.empty_like(found)
    for draw in range(draws):
        roots = np.sqrt(np.where(np.arange(M) % 4 > 0, DECAY[:, None], 9 * DECAY.flip(0)[:, None]))
        direct[draw] = np.linalg.svd(roots * rng.standard_normal((K, M)), compute_uv=False) / math.sqrt(M)
    for statistic in (lambda v: v[:, 0], lambda v: (v**4).mean(axis=1), lambda v: np.median(v, axis=1)):
        a, b = statistic(found), statistic(direct)
        assert abs(a.mean() - b.mean()) < 3.5 * math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / draws)
    # One law of the mean covariance is not enough: the fourth moments differ.
    one = SilversteinLaw(np.sort(mean.diagonal().numpy())[::-1], M)
    fourth = np.mean(one.quantile((np.arange(2000) + 0.5) / 2000) ** 2)
    moments = (direct**4).mean(axis=1)
    assert moments.mean() - fourth > 10 * moments.std(ddof=1) / math.sqrt(draws)


def test_shares_are_rounded_to_whole_columns() -> None:
    """24 classes of 100 columns: 4 or 5 each, 100 in all, and none without a number."""
    scales = torch.arange(1.0, 25.0, dtype=torch.float64)
    _, (Y,) = gaussian_samples(lambda b: scales[b] ** 2 * torch.eye(400, dtype=torch.float64), [1 / 24] * 24, 100, 1, 0)
    sizes = torch.linalg.vector_norm(Y, dim=0) / 20  # scale (1 ± 1/√800)
    nearest = (sizes[:, None] - scales).abs().argmin(dim=1)
    numbers = np.array([int(((sizes > s - 0.5) & (sizes < s + 0.5)).sum()) for s in (1.0, 2.0, 3.0)])
    assert bool(torch.isfinite(Y).all())
    assert set(numbers.tolist()) <= {4, 5}
    assert nearest.max() == 23


def test_a_class_too_small_for_a_column_has_none() -> None:
    mean, (Y,) = gaussian_samples(
        lambda b: torch.eye(10, dtype=torch.float64) * (1.0 if b else 1e6), [0.001, 0.999], 100, 1, 0
    )
    assert float(Y.abs().max()) < 10
    assert float(mean[0, 0]) == pytest.approx(1000.999)


def test_semidefinite_covariances_and_their_rank() -> None:
    C = rotated(torch.cat([DECAY[:30], torch.zeros(K - 30, dtype=torch.float64)]))
    mean, samples = gaussian_samples(lambda _: C, [1.0], M, 3, seed=0)
    spectrum = sampled_spectrum(mean, samples, 30)
    assert spectrum.values.shape == (3, 30)
    assert spectrum.population.rank == 30
    rest = np.array([sample_values(Y)[30:] for Y in samples])
    assert rest.max() < 1e-5 * spectrum.values.min()  # rounding on the diagonal: √(1e-12)
    law = SilversteinLaw(np.append(DECAY[:30].numpy(), np.zeros(K - 30)), M)
    for values in spectrum.values:
        assert np.abs(K * (1 - law.cdf(values**2)) - np.arange(30) - 0.5).max() < 3


def test_a_spiked_semidefinite_covariance_has_a_factor() -> None:
    """Rounding of a dominant eigenvalue may be larger than the others together."""
    eigenvalues = torch.cat([torch.tensor([1e9]), DECAY[:40], torch.zeros(K - 41)]).double()
    C = rotated(eigenvalues)
    _, (Y,) = gaussian_samples(lambda _: C, [1.0], M, 1, seed=0)
    assert bool(torch.isfinite(Y).all())
    values = sample_values(Y)
    assert values[0] == pytest.approx(math.sqrt(1e9), rel=4.5 / math.sqrt(2 * M))


def test_a_class_of_zeros() -> None:
    _, (Y,) = gaussian_samples(lambda b: b * torch.eye(5, dtype=torch.float64), [0.5, 0.5], 10, 1, seed=0)
    assert bool((Y[:, :5] == 0).all())
    assert bool((Y[:, 5:] != 0).all())


def test_an_indefinite_covariance_is_refused() -> None:
    C = rotated(torch.cat([DECAY[:-1], torch.tensor([-0.01], dtype=torch.float64)]))
    with pytest.raises(ConvergenceError, match="negative eigenvalue"):
        gaussian_samples(lambda _: C, [1.0], M, 1, seed=0)
    with pytest.raises(ConvergenceError, match="not finite"):
        gaussian_samples(lambda _: torch.full((3, 3), torch.nan, dtype=torch.float64), [1.0], M, 1, seed=0)


def test_the_seed_decides() -> None:
    C = rotated(DECAY)

    def draw(seed: int) -> torch.Tensor:
        return torch.stack(gaussian_samples(lambda _: C, [1.0], M, 2, seed)[1])

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
    assert not torch.equal(draw(3)[0], draw(3)[1])


def test_outlying_directions_are_taken_out_of_the_bulk() -> None:
    eigenvalues = torch.cat([torch.tensor([60.0, 30.0], dtype=torch.float64), torch.ones(K - 2, dtype=torch.float64)])
    C = rotated(eigenvalues)
    mean, samples = gaussian_samples(lambda _: C, [1.0], M, 40, seed=2)
    found = sampled_spectrum(mean, samples, K)
    assert found.population.count == 2
    projector = found.directions @ found.directions.T
    torch.testing.assert_close(C @ projector, projector @ C, atol=1e-9, rtol=0)
    assert found.overlaps.shape == (40, 2)
    error = found.overlaps.std(axis=0, ddof=1) / math.sqrt(40)
    mixing = 2 * (2 / M) ** 2  # second order in 1/(m δ²), δ = ½
    assert (np.abs(found.overlaps.mean(axis=0) - found.population.overlaps) < 3 * error + mixing).all()
    top = found.bulk_tops**2
    edge = (1 + math.sqrt((K - 2) / M)) ** 2
    width = (math.sqrt(K) + math.sqrt(M)) * (1 / math.sqrt(K) + 1 / math.sqrt(M)) ** (1 / 3) / M
    # Tracy-Widom: mean −1.2065, deviation 1.268; the centre is off by a part of the width at this size.
    assert abs((top.mean() - edge) / width + 1.2065) < 3 * 1.268 / math.sqrt(40) + 0.25
    assert (found.bulk_tops < found.values[:, 1]).all()


def test_rounding_is_cut_to_zeros() -> None:
    values = positive_part(torch.tensor([1.0, 1e-10, 1e-16, -1e-16], dtype=torch.float64))
    np.testing.assert_array_equal(values, [1.0, 1e-10, 0.0, 0.0])
    Y = torch.diag(torch.tensor([1.0, 1e-12, 1e-16], dtype=torch.float64))
    np.testing.assert_allclose(sample_values(Y), np.array([1.0, 1e-12, 0.0]) / math.sqrt(3), rtol=1e-6)


def test_leading_values_are_free_of_the_samples_own_deviation() -> None:
    """Same mean as the raw ones, ψ of the eigenvalue, and a scatter that falls from m^(−½) to what the bulk adds."""
    eigenvalues = torch.cat([torch.tensor([200.0, 50.0], dtype=torch.float64), torch.ones(K - 2, dtype=torch.float64)])
    mean, samples = gaussian_samples(lambda _: torch.diag(eigenvalues), [1.0], M, 60, seed=3)
    found = sampled_spectrum(mean, samples, K)
    raw, leading = found.values[:, :2], found.leading
    assert leading.shape == (60, 2)
    expected = np.sqrt(found.population.positions)
    error = leading.std(axis=0, ddof=1) / math.sqrt(60)
    # The two push each other apart by a relative 1/(m δ), δ = 3/4 and 3.
    assert (np.abs(leading.mean(axis=0) - expected) < 3.5 * error + expected * 1.5 / M).all()
    assert (np.abs(leading.mean(axis=0) - raw.mean(axis=0)) < 3.5 * raw.std(axis=0, ddof=1) / math.sqrt(60)).all()
    assert (leading.std(axis=0) < 0.2 * raw.std(axis=0)).all()
