import pytest
import torch
from torch.func import grad, vmap
from training_loss import ACTIVATIONS, LOSSES, gradient, jacobian_penalty

from gradrank.gradient.factored_gradient import FactoredGradient, backpropagated_signal, jacobian_signal
from gradrank.problem import draw as draw_module
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian


def small(activation: str, loss: str = "mse", jacobian: float = 0.0, seed: int = 5) -> Draw:
    return Problem(
        inputs=SpikedGaussian(n=13, d=10, nu=0.4), network=TwoLayer(m=8, activation=activation), loss=loss,
        regularisers=Regularisers(jacobian=jacobian),
    ).draw(seed)  # fmt: skip


@pytest.mark.parametrize("loss", ["mse", "logistic", "huber", "log-cosh", "squared-hinge"])
@pytest.mark.parametrize("activation", ["sigmoid", "relu", "elu", "softplus"])
def test_signal_is_the_derivative_of_the_loss_by_the_preactivations(activation: str, loss: str) -> None:
    draw = small(activation, loss)

    def mean_loss(H: torch.Tensor) -> torch.Tensor:
        return LOSSES[loss](draw.network.gamma * (ACTIVATIONS[activation](H) @ draw.network.a), draw.y).mean()

    signal, mean = backpropagated_signal(draw)
    torch.testing.assert_close(signal, grad(mean_loss)(draw.X @ draw.network.W.T), rtol=1e-12, atol=1e-16)
    torch.testing.assert_close(
        mean, vmap(vmap(grad(ACTIVATIONS[activation])))(draw.preactivations).mean(dim=0), rtol=1e-13, atol=0
    )


@pytest.mark.parametrize("activation", ["sigmoid", "elu", "swish", "gelu"])
def test_jacobian_signal_gives_the_gradient_of_the_penalty(activation: str) -> None:
    draw = small(activation, jacobian=3.0)
    exact = grad(jacobian_penalty)(draw.network.W, draw, activation).T
    scale = float(exact.abs().max())
    torch.testing.assert_close(draw.X.T @ jacobian_signal(draw), exact, rtol=0, atol=1e-13 * scale)


def test_rows_taken_a_few_at_a_time_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small("swish", jacobian=3.0)
    expected = (*backpropagated_signal(whole), jacobian_signal(whole))
    monkeypatch.setattr(draw_module, "CHUNK_ENTRIES", 3 * 8)
    parts = small("swish", jacobian=3.0)
    assert len(parts.row_chunks(parts.preactivations)) == 5
    for found, exact in zip((*backpropagated_signal(parts), jacobian_signal(parts)), expected, strict=True):
        torch.testing.assert_close(found, exact, rtol=1e-13, atol=0)


def test_gradient_is_the_transpose_of_a_torch_layers_weight_grad() -> None:
    draw = small("tanh")
    layer = torch.nn.Linear(10, 8, bias=False, dtype=torch.float64)
    layer.weight.data.copy_(draw.network.W)
    f = draw.network.gamma * torch.tanh(layer(draw.X)) @ draw.network.a
    (torch.nn.functional.mse_loss(f, draw.y) / 2).backward()
    found = FactoredGradient(draw.X, backpropagated_signal(draw)[0])
    assert found.shape == (10, 8)
    torch.testing.assert_close(found.dense(), layer.weight.grad.T, rtol=0, atol=1e-14)
    torch.testing.assert_close(found.dense(), gradient(draw, "tanh", "mse"), rtol=0, atol=1e-14)
