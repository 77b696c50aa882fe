"""`FactoredGradient`: G = XᵀΔ from backpropagated signals, and the signals of the two-layer network."""

import torch

from gradrank.linalg.factored import Factored
from gradrank.problem.draw import Draw


class FactoredGradient(Factored):
    """The gradient of a layer's weights, G = XᵀΔ of shape (d, m), kept as inputs X (n, d) and signals Δ (n, m).

    Column j belongs to neuron j: the transpose of PyTorch's ``weight.grad``. Δ is the derivative of the loss by the
    layer's preactivations, the 1/n of the mean included.
    """


def backpropagated_signal(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Δ = (γ/n)(r aᵀ) ∘ σ′(XWᵀ), shape (n, m), and the mean of σ′ over the samples, shape (m,) (LRG, section 2)."""
    derivative, network = draw.network.activation.derivative, draw.network
    H = draw.preactivations
    n, m = H.shape
    signal = torch.empty_like(H)
    mean = torch.zeros(m, dtype=torch.float64, device=H.device)
    weights = draw.residue * (network.gamma / n)
    row = 0
    for chunk in draw.row_chunks(H):
        slopes = derivative(chunk)
        mean += slopes.sum(dim=0)
        stop = row + len(chunk)
        torch.mul(slopes, weights[row:stop, None], out=signal[row:stop])
        signal[row:stop] *= network.a
        row = stop
    return signal, (mean / n).to(H.dtype)


def jacobian_signal(draw: Draw) -> torch.Tensor:
    """Return the signal of the penalty (λ/2n) Σ‖∂f/∂W‖²: λ(γ²/n) Diag(‖x_i‖²)[σ′ ∘ σ″] Diag(a_j²), shape (n, m).

    The gradient of the penalty is Xᵀ times this (LRG, section 4).
    """
    activation, network = draw.network.activation, draw.network
    H = draw.preactivations
    row_norms = torch.linalg.vector_norm(draw.X, dim=1).square()
    weights = row_norms * (draw.regularisers.jacobian * network.gamma**2 / len(H))
    signal = torch.empty_like(H)
    row = 0
    for chunk in draw.row_chunks(H):
        stop = row + len(chunk)
        product = activation.derivative(chunk) * activation.second_derivative(chunk)
        torch.mul(product, weights[row:stop, None], out=signal[row:stop])
        signal[row:stop] *= network.a.square()
        row = stop
    return signal
