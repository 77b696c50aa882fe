import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.convolution import filter_gradient
from gradrank.gradient.decomposition import decompose
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Dense
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian


def convolution(filters: int, kernel_size: int, d: int = 20, **regularisers: float) -> Draw:
    m = filters * (d - kernel_size + 1)
    return Problem(
        inputs=SpikedGaussian(n=15, d=d, nu=0.5, alpha=0.4), loss="log-cosh",
        network=TwoLayer(m=m, activation="swish", inner="conv", kernel_size=kernel_size),
        regularisers=Regularisers(**regularisers),
    ).draw(6)  # fmt: skip


def conv_layer_gradient(draw: Draw, filters: int, kernel_size: int) -> torch.Tensor:
    """Return the weight gradient of the same network built from torch's own convolution."""
    positions = draw.X.shape[1] - kernel_size + 1
    layer = torch.nn.Conv1d(1, filters, kernel_size, bias=False, dtype=torch.float64)
    layer.weight.data.copy_(draw.network.W[::positions, :kernel_size][:, None, :])
    hidden = torch.nn.functional.silu(layer(draw.X[:, None, :]))
    f = draw.network.gamma * hidden.flatten(1) @ draw.network.a
    torch.log(torch.cosh(f - draw.y)).mean().backward()
    return layer.weight.grad[:, 0, :]


@pytest.mark.parametrize("split", ["oracle", "empirical"])
@pytest.mark.parametrize(("filters", "kernel_size"), [(1, 4), (3, 4), (3, 1), (2, 20), (3, 19)])
def test_gradient_and_sum_of_parts_are_torch_conv1ds(filters: int, kernel_size: int, split: str) -> None:
    draw = convolution(filters, kernel_size)
    exact = conv_layer_gradient(draw, filters, kernel_size)
    parts = decompose(draw, split=split)
    tolerance = {"rtol": 0, "atol": 1e-13 * max(1.0, float(exact.abs().max()))}
    torch.testing.assert_close(filter_gradient(parts.gradient, kernel_size), exact, **tolerance)
    torch.testing.assert_close(sum(filter_gradient(part, kernel_size) for part in parts.values()), exact, **tolerance)
    torch.testing.assert_close(
        filter_gradient(parts.spikes, kernel_size) + filter_gradient(parts["remainder"], kernel_size),
        exact,
        **tolerance,
    )


def test_every_kind_of_part_by_the_formula() -> None:
    # g_f[l] = Σ_i G[i + l, f P + i], entry by entry, for factored, rank-one, scaled, summed and implicit matrices.
    parts = decompose(convolution(3, 4, weight_decay=0.2, jacobian=2.0))
    for part in (parts.gradient, *parts.values()):
        G = part.dense()
        exact = torch.tensor(
            [[sum(G[i + k, 17 * f + i] for i in range(17)) for k in range(4)] for f in range(3)], dtype=torch.float64
        )
        torch.testing.assert_close(filter_gradient(part, 4), exact, rtol=0, atol=1e-13 * float(G.abs().max()))


def test_matrix_wider_than_a_block_of_columns() -> None:
    G = torch.randn(600, 2 * 598, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = torch.stack(
        [torch.stack([torch.diagonal(G[k:, f * 598 :][:598, :598]).sum() for k in range(3)]) for f in range(2)]
    )
    torch.testing.assert_close(filter_gradient(Dense(G), 3), exact, rtol=0, atol=1e-12)


def test_two_leading_terms_give_the_filters_gradient_up_to_the_rest() -> None:
    # Remark 1 of LRG: with G ≈ Σ_j σ_j u_j v_jᵀ, g_l ≈ Σ_j σ_j Σ_i u_j[i + l] v_j[i]. What is left out has the norm σ₃,
    # and each entry of its map is a sum of P = 17 of its entries.
    draw = convolution(1, 4)
    G = decompose(draw).gradient.dense()
    U, sigma, Vt = torch.linalg.svd(G, full_matrices=False)
    two = LowRank(U[:, :2], sigma[:2], Vt[:2].T)
    terms = [sum(sigma[j] * U[i + k, j] * Vt[j, i] for j in range(2) for i in range(17)) for k in range(4)]
    found = filter_gradient(two, 4)
    torch.testing.assert_close(found[0], torch.stack(terms), rtol=0, atol=1e-14)
    left_out = found - conv_layer_gradient(draw, 1, 4)
    assert float(left_out.abs().max()) <= 17 * float(sigma[2])


@pytest.mark.parametrize("kernel_size", [0, -1, 21, 5, 3])
def test_sizes_that_do_not_fit(kernel_size: int) -> None:
    gradient = decompose(
        convolution(2, 4)
    ).gradient  # 34 columns: 18 positions of k = 3 or 16 of k = 5 do not divide them
    with pytest.raises(
        InputError, match=rf"kernel_size: {kernel_size} is not allowed for a gradient of shape \(20, 34\)"
    ):
        filter_gradient(gradient, kernel_size)
