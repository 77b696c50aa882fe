"""Whether the columns of a gradient concentrate, as Silverstein's law needs: how far their scatter moves its edge."""

from __future__ import annotations

import torch

from gradrank.gradient.column_covariance import ColumnCovariances
from gradrank.gradient.simulated_columns import network_samples
from gradrank.linalg.outliers import Separation
from gradrank.linalg.silverstein_edge import largest_eigenvalue_law

NEURONS = 128


def edge_shift(columns: ColumnCovariances, separation: Separation, vectors: torch.Tensor, seed: int) -> float:
    """Return how far the edge moves for want of concentration, over the Tracy-Widom scale of the largest eigenvalue.

    Columns t_j^½ z_j of random size, E t = 1 and Var t = v, obey z = b w with a b = E ta/(1 + ta) = −s(w), b = E t/(1 + ta)
    and s(w) = (1/m) Σ τ/(w − τ). To first order in v that is z = w (1 + s)(1 + v s): the edge E moves by v s(w₀) E. Here v is
    measured on 128 fresh neurons with the forms yᵀAy, A = (w₀I − C)⁻¹ on the bulk, h = τ/(w₀ − τ):

        v = Var(yᵀAy)/E(yᵀAy)² − 2 Σh²/(Σh)²

    where the second term is that of Gaussian columns. Where a neuron's σ′ is negligible on all but s samples, v ~ 3/s. For
    larger shifts it is too large by a factor of up to four. Not a number where the forms of all neurons are zero.

    Parameters
    ----------
    columns, separation, vectors
        The covariance, its eigenvalues cut into outliers and bulk, and its eigenvectors (K, K) in descending order.
    seed
        Of the neurons.
    """
    law = separation.edge_law
    rank = separation.above + law.population.count
    tau = torch.from_numpy(separation.population[separation.above : rank].copy())
    distance = law.spike_threshold - tau
    sample = network_samples(columns, 1, seed, neurons=NEURONS)[0]
    forms = ((vectors[:, separation.above : rank].T @ sample).square() / distance[:, None]).sum(dim=0)
    h = tau / distance
    v = float(forms.var() / forms.mean() ** 2 - 2.0 * h.square().sum() / h.sum() ** 2)
    _, scale = largest_eigenvalue_law(law)
    return v * float(h.sum()) / law.columns * law.upper_edge / scale
