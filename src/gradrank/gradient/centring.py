"""The expected derivative μ_j that the residue spike is built from."""

from dataclasses import dataclass

import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.names import allowed_names
from gradrank.problem.draw import Draw

CENTRINGS = ("population", "empirical")


@dataclass(frozen=True, eq=False)
class MeanDerivative:
    """μ_j with the largest error of its computation."""

    kind: str  # "population" or "empirical"
    value: torch.Tensor  # (m,)
    error: float  # estimated, absolute; 0 for a plain mean


def mean_derivative(draw: Draw, kind: str, sample_mean: torch.Tensor) -> MeanDerivative:
    """Return μ_j: E σ′(w_jᵀx) under N(0, Σ), or the mean of σ′(w_jᵀx_i) over the samples.

    The argument w_jᵀx is N(0, s_j²) with s_j² = w_jᵀΣ̂w_j + ζ²(w_jᵀq)², input noise included.

    Raises
    ------
    InputError
        If the population of the inputs is not known, or σ′ has no finite expectation under it.
    """
    if kind == "empirical":
        return MeanDerivative(kind, sample_mean, 0.0)
    if kind != "population":
        raise InputError(f"centring: '{kind}' is not allowed; {allowed_names(kind, ('auto', *CENTRINGS))}")
    inputs, W = draw.inputs, draw.network.W
    if inputs.covariance is None:
        raise InputError(
            "centring: 'population' is not allowed; the population of these data is not known, give 'empirical'"
        )
    variance = inputs.covariance.quadratic(W).double()
    if inputs.direction is not None:
        variance = variance + inputs.strength**2 * (W @ inputs.direction).double().square()
    try:
        expectation = draw.network.activation.expected_derivative(torch.sqrt(variance))
    except ConvergenceError as error:
        raise InputError(f"centring: 'population' is not possible here ({error}); give 'empirical'") from error
    value = expectation.value.to(device=W.device, dtype=W.dtype)
    return MeanDerivative(kind, value, float(expectation.error.max()))
