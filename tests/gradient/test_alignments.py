import math

import numpy as np
import pytest
import torch

from gradrank.gradient.alignments import alignments, chance_level, cosines


def orthonormal(d: int, k: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0])


def test_cosines_are_those_of_numpy_and_of_numpy_alone_in_scale() -> None:
    vectors, direction = orthonormal(12, 4), np.random.default_rng(1).standard_normal(12)
    exact = np.abs(vectors.numpy().T @ direction) / np.linalg.norm(direction)
    for scale in (1.0, -3.0, 1e-200, 1e200):  # the squares of the last two underflow and overflow
        np.testing.assert_allclose(cosines(vectors, torch.from_numpy(scale * direction)), exact, rtol=1e-13)


def test_cosine_with_itself_is_one_and_never_more() -> None:
    for seed in range(50):
        vectors = orthonormal(7, 3, seed)
        found = cosines(vectors, vectors[:, 1])
        assert float(found.max()) <= 1.0
        np.testing.assert_allclose(found, [0, 1, 0], atol=1e-14)


def test_cosine_with_nothing_is_not_a_number() -> None:
    assert bool(cosines(orthonormal(7, 3), torch.zeros(7, dtype=torch.float64)).isnan().all())


def test_every_direction_is_named() -> None:
    left, right = orthonormal(12, 3), orthonormal(9, 3)
    found = alignments(left, right, {"one": left[:, 0], "two": left[:, 0] + left[:, 2]}, {"three": right[:, 1]})
    np.testing.assert_allclose(found.left["one"], [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(found.left["two"], [0.5**0.5, 0, 0.5**0.5], atol=1e-14)
    np.testing.assert_allclose(found.right["three"], [0, 1, 0], atol=1e-14)
    assert (found.chance_left, found.chance_right) == (chance_level(12), chance_level(9))


@pytest.mark.parametrize("d", [100, 1000])
def test_chance_level_against_closed_form_and_simulation(d: int) -> None:
    # The mean of |u·v| on the sphere is Γ(d/2)/(√π Γ((d+1)/2)) = √(2/(πd)) (1 + 1/(4d) + …).
    exact = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    assert chance_level(d) * (1 + 1 / (4 * d)) == pytest.approx(exact, rel=1 / d**2)
    u = np.random.default_rng(0).standard_normal((4000, d))
    sample = np.abs(u[:, 0]) / np.linalg.norm(u, axis=1)
    assert abs(sample.mean() - chance_level(d)) < 4 * sample.std() / math.sqrt(len(sample))
