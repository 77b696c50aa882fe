"""The same report as people write it in a notebook: autograd, a full SVD, and spectral norms of dense parts."""

import torch

from gradrank.problem.draw import Draw


def dense_gradient(draw: Draw) -> torch.Tensor:
    """Return ∂L/∂W by autograd, transposed to (d, m)."""
    network = draw.network
    W = network.W.clone().requires_grad_(True)
    f = network.gamma * network.activation.value(draw.X @ W.T) @ network.a
    draw.loss.value(f, draw.y).mean().backward()
    assert W.grad is not None
    return W.grad.T


def report(draw: Draw, mu: torch.Tensor) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the singular values of the gradient and the spectral norms of its parts, from dense matrices."""
    network, inputs, n = draw.network, draw.inputs, len(draw.y)
    G = dense_gradient(draw)
    U, values, _ = torch.linalg.svd(G, full_matrices=False)
    H = draw.X @ network.W.T
    r = draw.loss.residue(network.gamma * network.activation.value(H) @ network.a, draw.y)
    scale = network.gamma / n
    centred = network.activation.derivative(H) - mu
    signal = scale * (r[:, None] * network.a) * centred
    a_mu, z, q, zeta = network.a * mu, inputs.scores, inputs.direction, inputs.strength
    parts = {
        "residue_spike": scale * torch.outer(inputs.bulk.T @ r, a_mu),
        "interpolant": scale * zeta * (z @ r) * torch.outer(q, a_mu),
        "data_spike": zeta * torch.outer(q, z @ signal),
        "remainder": inputs.bulk.T @ signal,
    }
    norms = {name: float(torch.linalg.matrix_norm(part, 2)) for name, part in parts.items()}
    for direction in (q, inputs.bulk.T @ r, inputs.bulk.T @ draw.y):
        (U[:, :10].T @ direction).abs() / direction.norm()
    return values, norms
