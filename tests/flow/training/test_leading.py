"""Warm-started singular triplets against full decompositions: along training, through crossings, at zero."""

import math
from typing import ClassVar

import pytest
import torch

import gradrank as gr
from gradrank.flow.training.leading import LeadingTriplets
from gradrank.flow.training.schedule import ALWAYS
from gradrank.flow.training.state import State
from gradrank.flow.training.trackers import TopSingularValues


class FullDecomposition:
    schedule = ALWAYS
    dims: ClassVar = {}

    def record(self, state: State) -> dict:
        U, sigma, Vt = torch.linalg.svd(state.gradient, full_matrices=False)
        return {"exact": sigma[:3], "exact_left": U[:, :2].T, "exact_right": Vt[:2]}


@pytest.mark.parametrize(
    ("nu", "network"),
    [
        (0.3, {"scaling": "ntk"}),
        (0.0, {"scaling": "ntk", "activation": "relu"}),
        (0.25, {"scaling": "mf", "activation": "tanh"}),
        (0.75, {"scaling": "mf"}),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_along_a_trajectory(nu: float, network: dict, dtype: str) -> None:
    draw = gr.Problem(
        inputs=gr.SpikedGaussian(n=120, d=150, nu=nu), network=gr.TwoLayer(m=200, **network), dtype=dtype
    ).draw(0)
    run = gr.train(draw, gr.Descent(steps=15), [TopSingularValues(2), FullDecomposition()])
    ours, exact = torch.from_numpy(run.values("singular_values")), torch.from_numpy(run.values("exact"))
    relative = 1e-6 if dtype == "float64" else 1e-5
    torch.testing.assert_close(ours, exact[:, :2], rtol=relative, atol=0)
    for side in ("left", "right"):
        vectors, reference = (torch.from_numpy(run.values(name)) for name in (f"{side}_vectors", f"exact_{side}"))
        assert vectors.shape == reference.shape
        cosines = (vectors * reference).sum(dim=2).abs()
        gaps = torch.minimum(exact[:, 1:2] / exact[:, 2:3], exact[:, 0:1] / exact[:, 1:2])[:, 0]
        assert bool((cosines[gaps > 1.2] > 1 - 1e-5).all())
        assert bool((gaps > 1.2).any()) or nu == 0.0
    residuals = torch.from_numpy(run.values("residuals"))
    assert bool((residuals <= 5e-4 * ours * 1.001).all())


def triplets(strengths: list[float], noise: float = 0.01) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    U = torch.linalg.qr(torch.randn(150, 4, dtype=torch.float64, generator=generator)).Q
    V = torch.linalg.qr(torch.randn(200, 4, dtype=torch.float64, generator=generator)).Q
    bulk = torch.randn(150, 200, dtype=torch.float64, generator=generator) * noise
    return U @ torch.diag(torch.tensor(strengths, dtype=torch.float64)) @ V.T + bulk, U, V


def test_crossing_singular_values() -> None:
    """Four directions of which the last rises from inside the bulk past all others: values and order are exact throughout."""
    leading = LeadingTriplets()
    for step in range(41):
        rise = 2.0 * step / 40
        G, U, _ = triplets([1.0, 0.8, 0.6, rise])
        exact_U, sigma, _ = torch.linalg.svd(G)
        spectrum = leading.of(G, 2)
        torch.testing.assert_close(spectrum.values, sigma[:2], rtol=1e-6, atol=0)
        if rise > 1.2:
            assert float(spectrum.left[:, 0] @ U[:, 3]) ** 2 > 0.95
            assert float((spectrum.left[:, 0] @ exact_U[:, 0]).abs()) > 1 - 1e-6


def test_direction_from_nowhere() -> None:
    """A new outlier, orthogonal to everything remembered, is found at the step where it appears."""
    for noise in (0.01, 0.0):
        leading = LeadingTriplets()
        leading.of(triplets([1.0, 0.8, 0.6, 0.0], noise)[0], 2)
        for strength in (1.5, 3.0):
            G, U, _ = triplets([1.0, 0.8, 0.6, strength], noise)
            fresh = LeadingTriplets(leading.block)
            spectrum = fresh.of(G, 2)
            torch.testing.assert_close(spectrum.values, torch.linalg.svdvals(G)[:2], rtol=1e-6, atol=0)
            assert float((spectrum.left[:, 0] @ U[:, 3]).abs()) > 0.99


def test_equal_singular_values() -> None:
    leading = LeadingTriplets()
    for _ in range(3):
        G, _, _ = triplets([1.0, 1.0, 1.0, 1.0], 0.0)
        torch.testing.assert_close(leading.of(G, 3).values, torch.ones(3, dtype=torch.float64), rtol=1e-10, atol=0)


def test_zero_matrix_in_between() -> None:
    leading = LeadingTriplets()
    G, _, _ = triplets([1.0, 0.8, 0.6, 0.4])
    leading.of(G, 2)
    zero = leading.of(torch.zeros_like(G), 2)
    assert zero.status == "zero"
    assert zero.values.tolist() == [0.0, 0.0]
    torch.testing.assert_close(leading.of(G, 2).values, torch.linalg.svdvals(G)[:2], rtol=1e-6, atol=0)


def test_scale_of_the_matrix_does_not_matter() -> None:
    G, _, _ = triplets([1.0, 0.8, 0.6, 0.4])
    for scale in (1e-200, 1e150):
        leading = LeadingTriplets()
        for _ in range(2):
            values = leading.of(G * scale, 2).values
            torch.testing.assert_close(values / scale, torch.linalg.svdvals(G)[:2], rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", [(3, 5), (1, 40), (12, 300), (60, 80)])
def test_small_shapes(shape: tuple[int, int]) -> None:
    leading = LeadingTriplets()
    generator = torch.Generator().manual_seed(0)
    G = torch.randn(*shape, dtype=torch.float64, generator=generator)
    for _ in range(3):
        G = G + 0.01 * torch.randn(*shape, dtype=torch.float64, generator=generator)
        k = min(3, *shape)
        torch.testing.assert_close(leading.of(G, k).values, torch.linalg.svdvals(G)[:k], rtol=1e-6, atol=0)


def test_another_k_at_the_same_matrix() -> None:
    leading = LeadingTriplets()
    G, _, _ = triplets([1.0, 0.8, 0.6, 0.4])
    for k in (2, 8, 1, 4):
        torch.testing.assert_close(leading.of(G, k).values, torch.linalg.svdvals(G)[:k], rtol=1e-6, atol=0)


def test_bad_input() -> None:
    with pytest.raises(gr.InputError, match=r"k: 9 is not allowed; give a number from 1 to min\(d, m\) = 4"):
        LeadingTriplets().of(torch.ones(4, 6), 9)
    with pytest.raises(gr.InputError, match="an entry is NaN or infinite"):
        LeadingTriplets().of(torch.full((4, 6), math.nan), 1)
