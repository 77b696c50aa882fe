"""`predict_norms`: the norms of the gradient's parts from the population alone, before any data are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import erf

from gradrank.foundation.errors import unusable
from gradrank.gradient.population import ResiduePopulation
from gradrank.gradient.remainder_edge import remainder_edges
from gradrank.linalg.silverstein_equation import Reals
from gradrank.problem.problem import Problem

PARTS = ("residue_spike", "interpolant", "data_spike", "remainder")
EDGE_DRAWS = 24  # for which ‖E‖ is computed; those of the others follow from a regression on moments of r
HEAVY = 0.05  # share of one sample in E r² from which the expectation cannot be trusted
SMALL = 50  # min(n, d, m) below which the expansions are a rough guide


@dataclass(frozen=True)
class NormPrediction:
    """Expected spectral norms of the parts of the gradient over draws of a problem; NaN where withheld."""

    norms: dict[str, float]  # means; of "interpolant" the root mean square
    spread: dict[str, float]  # standard deviations over draws
    status: dict[str, str] = field(default_factory=dict)  # "ok", or what to keep in mind, or why a norm is withheld

    def to_dict(self) -> dict[str, dict[str, float | None] | dict[str, str]]:
        """Return plain data for strict JSON, None for a norm that is withheld."""

        def plain(values: dict[str, float]) -> dict[str, float | None]:
            return {name: value if math.isfinite(value) else None for name, value in values.items()}

        return {"norms": plain(self.norms), "spread": plain(self.spread), "status": dict(self.status)}


def predict_norms(problem: Problem, *, draws: int = 512, seed: int = 0) -> NormPrediction:
    """Predict ‖S₁‖, ‖S₁₂‖, ‖S₂‖ and ‖E‖ of `decompose` (oracle split) by Gaussian calculus; no data are drawn.

    With v = E∇_x r, s² = tr Σ̂/d, means over x for one network and target, then over these (LRG, section 2; Stein 1981):

    * ‖S₁‖ = γ ‖X_Bᵀr/n‖ ‖a∘μ‖, ‖X_Bᵀr/n‖² ≈ Σ_k (λ_k²v² + λ_k E r²/n) χ²_k, of mean ‖Σ̂v‖² + tr Σ̂ E r²/n.
      Neglected: 2‖Σ̂v‖²/n, O(1/n).
    * ‖S₁₂‖ = γζ |zᵀr/n| ‖a∘μ‖, E (zᵀr/n)² = (E z r)² + Var(z r)/n exactly; E[z r] = ζqᵀv. Root mean square.
    * ‖S₂‖² = γ²ζ² Σ_j [M(κ_j)² + E(z r σ′_⊥)²/n], M(κ) = E[z r (S⁽¹⁾(κζz) − μ)] at κ = wᵀq. Neglected: the overlaps of w with
      v, O(1/d) of the noise term.
    * ‖E‖: `remainder_edges`, at 24 draws; the others by a regression of log ‖E‖ on log moments of r.

    ‖a∘μ‖² = m E μ², O(m^(−½)) of itself. What all rest on is the law of r in `ResiduePopulation`, which is averaged over a few
    scalars per draw of the network and the targets (the projection F(z) of f on the spike's scores, and the β_k = b_kᵀq), by
    Monte Carlo: the means have a standard error of ``spread``/√draws, of which matching second moments leaves a part.
    Jacobian penalty and weight decay leave these parts as they are; input noise adds τ² to Σ̂, with labels of clean inputs.

    Parameters
    ----------
    problem
        With spiked Gaussian inputs, a multi-index target and W from a law that does not depend on the data.
    draws
        Draws of the scalars that stand for network and targets.
    seed
        Of these draws.

    Raises
    ------
    InputError
        If the population is not known (real data, given labels, W given, convolutional or made from data).
    """
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 2 * EDGE_DRAWS:
        raise unusable("draws", draws, f"give a whole number of at least {2 * EDGE_DRAWS}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise unusable("seed", seed, "give a whole number of at least 0")
    population = ResiduePopulation(problem, draws, seed)
    withheld = _reason(population)
    if withheld:
        return NormPrediction(
            dict.fromkeys(PARTS, math.nan), dict.fromkeys(PARTS, math.nan), dict.fromkeys(PARTS, withheld)
        )
    small = min(population.n, population.d, population.m) < SMALL
    status = f"min(n, d, m) < {SMALL}: the expansions are a rough guide" if small else "ok"
    found = {"residue_spike": _residue_spike(population)}
    if population.has_spike:
        found |= {"interpolant": _interpolant(population), "data_spike": _data_spike(population)}
    else:
        found |= {"interpolant": (0.0, 0.0), "data_spike": (0.0, 0.0)}
    found["remainder"], solved = _remainder(population)
    states = dict.fromkeys(PARTS, status)
    if not solved:
        states["remainder"] = "the equation for the edge of the remainder was not solved"
    return NormPrediction({k: v[0] for k, v in found.items()}, {k: v[1] for k, v in found.items()}, states)


def _reason(population: ResiduePopulation) -> str:
    """Return why the moments of r cannot be trusted, or nothing."""
    square = population.r**2
    if not bool(np.isfinite(square).all()):
        return "the residue is not finite for some outputs and labels"
    total = square.sum(axis=1)
    share = np.divide(square.max(axis=1), total, out=np.zeros_like(total), where=total > 0)
    if float(np.median(share)) > HEAVY:
        return f"one in {square.shape[1]} samples carries more than {HEAVY:.0%} of E r²: its expectation may not exist"
    return ""


def _root(mean: Reals, variance: Reals) -> tuple[float, float]:
    """Return mean and standard deviation of √Q over draws with conditional moments of Q; the mean to second order."""
    safe = np.maximum(mean, 0.0)
    relative = np.divide(np.sqrt(variance), safe, out=np.zeros_like(safe), where=safe > 0) ** 2
    relative = np.minimum(relative, 2.0)  # of a chi square of one degree of freedom
    root = np.sqrt(safe) * (1.0 - relative / 8.0)
    inner = safe * relative / 4.0
    return float(root.mean()), math.sqrt(float(root.var() + inner.mean()))


def _outer_length(population: ResiduePopulation) -> float:
    """Return γ ‖a∘μ‖."""
    neurons = population.neurons
    return population.gamma * math.sqrt(population.m * float(neurons.share @ neurons.mean_slope**2))


def _residue_spike(population: ResiduePopulation) -> tuple[float, float]:
    """Return mean and standard deviation of ‖S₁‖; see `predict_norms`."""
    r, n = population.r, population.n
    noisy, clean = population.bulk.eigenvalues, population.bulk.clean
    square = population.mean(r**2)
    by_network, by_targets = population.component_variance
    along = population.aligned_signal  # of the direction q, not random
    terms = np.outer(by_network, noisy**2) + np.outer(by_targets, clean**2) + np.outer(square / n, noisy)
    kurtosis = population.mean(r**4) / np.maximum(square, 1e-300) ** 2 - 1.0
    noise = noisy.sum() * square / n
    variance = 2.0 * (terms**2).sum(axis=1) + noise**2 * kurtosis / n
    mean, spread = _root(terms.sum(axis=1) + along, variance)
    length = _outer_length(population)
    return length * mean, length * spread


def _interpolant(population: ResiduePopulation) -> tuple[float, float]:
    """Return root mean square and standard deviation of ‖S₁₂‖; at fixed network and targets zᵀr/n is Gaussian."""
    product = population.r * population.z
    mean = population.mean(product)
    deviation = np.sqrt(np.maximum(population.mean(product**2) - mean**2, 0.0) / population.n)
    square = float((mean**2 + deviation**2).mean())
    ratio = mean / np.maximum(deviation, 1e-300)
    folded = deviation * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + mean * erf(ratio / math.sqrt(2))
    scale = _outer_length(population) * population.strength
    return scale * math.sqrt(square), scale * math.sqrt(max(square - float(folded.mean()) ** 2, 0.0))


def _data_spike(population: ResiduePopulation) -> tuple[float, float]:
    """Return mean and standard deviation of ‖S₂‖; see `predict_norms`."""
    neurons, n, m = population.neurons, population.n, population.m
    product = population.r * population.z  # (draws, N)
    centred = neurons.slope - neurons.mean_slope[:, None]
    mean = product @ centred.T / product.shape[1]  # (draws, J)
    power = neurons.share @ (
        neurons.slope_square + (neurons.mean_slope[:, None] - 2 * neurons.slope) * neurons.mean_slope[:, None]
    )
    signal = mean**2 @ neurons.share
    along = ((mean * neurons.share) @ centred) * product  # what one sample adds to the signal
    noise = m * population.mean(product**2 * power) / n
    square = m * signal * (1.0 - 1.0 / n) + noise
    variance = m**2 * 4.0 * (population.mean(along**2) - signal**2) / n + m * (mean**4 @ neurons.share - signal**2)
    fourth = population.mean((product**2 * power) ** 2) * (m / n) ** 2 - noise**2
    variance = variance + fourth / n  # the noise itself fluctuates with the mean of (z r)² over n samples
    value, spread = _root(square, np.maximum(variance, 0.0))
    scale = population.gamma * population.strength
    return scale * value, scale * spread


def _remainder(population: ResiduePopulation) -> tuple[tuple[float, float], bool]:
    """Return mean and standard deviation of ‖E‖, and whether it was found for most of the draws."""
    r, z = population.r, population.z
    square = np.maximum(population.mean(r**2), 1e-300)
    order = np.argsort(square)
    draws = order[np.linspace(0, len(order) - 1, EDGE_DRAWS + 2).round().astype(int)[1:-1]]
    edges = remainder_edges(population, draws)
    solved = np.isfinite(edges.value)
    if int(solved.sum()) < EDGE_DRAWS // 2:
        return (math.nan, math.nan), False
    if not bool((edges.value[solved] > 0).all()):
        return (0.0, 0.0), True
    weighted = np.maximum(population.mean(r**2 * z**2), 1e-300)
    offset = population.mean(r) ** 2 / square
    features = np.stack([np.ones_like(square), np.log(square), np.log(weighted / square), offset], axis=1)
    target = np.log(edges.value[solved])
    chosen = features[draws[solved]]
    fit, *_ = np.linalg.lstsq(chosen, target, rcond=1e-6)
    left = target - chosen @ fit
    scatter = float(left.std()) * math.sqrt(len(left) / max(1, len(left) - 4))
    inner = float(np.mean((edges.deviation[solved] / edges.value[solved]) ** 2))
    values = np.exp(features @ fit + scatter**2 / 2)
    mean = float(values.mean())
    return (mean, math.sqrt(float(values.var()) + mean**2 * (scatter**2 + inner))), True
