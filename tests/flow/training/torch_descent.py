"""The same training as a user of torch writes it: a module, autograd, weight_norm and torch.optim.SGD."""

import torch
from torch.func import grad, vmap
from torch.nn.utils.parametrizations import weight_norm

from gradrank.problem.draw import Draw


class TwoLayerModule(torch.nn.Module):
    def __init__(self, draw: Draw, normalised: bool) -> None:
        super().__init__()
        m, d = draw.network.W.shape
        self.hidden = torch.nn.Linear(d, m, bias=False, dtype=draw.X.dtype)
        self.a, self.gamma = draw.network.a, draw.network.gamma
        with torch.no_grad():
            self.hidden.weight.copy_(draw.network.W)
        if normalised:
            weight_norm(self.hidden, dim=0)
            self.hidden.parametrizations.weight.original0.requires_grad_(False)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.gamma * torch.tanh(self.hidden(X)) @ self.a


def objective(model: TwoLayerModule, draw: Draw, rows: torch.Tensor) -> torch.Tensor:
    """(1/b) Σ ½ (f − y)² + (λ/2)‖W‖² + (λ/2b) Σ ‖∂f/∂W‖², the last by torch.func's Jacobians."""
    X, y, W = draw.X[rows], draw.y[rows], model.hidden.weight
    loss = 0.5 * (model(X) - y).square().mean() + draw.regularisers.weight_decay / 2 * W.square().sum()
    if draw.regularisers.jacobian:
        jacobians = vmap(grad(lambda V, x: model.gamma * (model.a @ torch.tanh(V @ x))), in_dims=(None, 0))(W, X)
        loss = loss + draw.regularisers.jacobian / 2 * jacobians.square().sum() / len(X)
    return loss


def descend(
    draw: Draw, steps: int, rate: float, *, normalised: bool, momentum: float = 0.0, batches: list | None = None
) -> tuple[list[torch.Tensor], list[float]]:
    """Return W and the objective after 0, …, ``steps`` steps of torch.optim.SGD."""
    model = TwoLayerModule(draw, normalised)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, momentum=momentum)
    everything = torch.arange(len(draw.y))
    weights, values = [], []
    for step in range(steps + 1):
        weights.append(model.hidden.weight.detach().clone())
        optimiser.zero_grad()
        loss = objective(model, draw, everything if batches is None or step == steps else batches[step])
        values.append(loss.item())
        loss.backward()
        optimiser.step()
    return weights, values
