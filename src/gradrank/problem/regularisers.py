"""Regularisers of the training loss."""

from pydantic import Field

from gradrank.problem.specification import Specification


class Regularisers(Specification):
    """Weight decay, input noise and a Jacobian penalty, in any combination (LRG, section 4)."""

    weight_decay: float = Field(0.0, ge=0)
    """λ of (λ/2) ‖W‖_F²: adds λWᵀ to the gradient."""
    input_noise: float = Field(0.0, ge=0)
    """τ², the variance of N(0, τ²I) noise added to every input; the labels come from the clean inputs."""
    jacobian: float = Field(0.0, ge=0)
    """λ of (λ/2n) Σ_i ‖∂f(x_i)/∂W‖_F²."""
