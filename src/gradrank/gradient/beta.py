"""`estimate_beta`: the exponent β of the residue's alignment with the spike scores, from draws of many sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from gradrank.foundation.errors import InputError, unusable
from gradrank.gradient.residue_alignment import residue_alignment
from gradrank.gradient.split import spike_split
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian

SIZES = (64, 96, 144, 216, 324)
SEEDS = 100
FEWEST_SIZES = 3
FEWEST_SEEDS = 2


@dataclass(frozen=True)
class BetaEstimate:
    """The regression of ln(|zᵀr|/(√n ‖r‖)) on ln d: β = −2 × slope."""

    beta: float
    beta_error: float  # standard error, from the scatter over seeds within each size
    intercept: float  # of the regression line, at ln d = 0
    intercept_error: float
    curvature_p_value: float  # of the sizes' means about the line: small where β changes with d
    sizes: tuple[int, ...]  # d
    shapes: tuple[tuple[int, int, int], ...]  # (n, d, m) of each size
    log_alignment: tuple[float, ...]  # mean over the seeds of each size
    scatter: float  # standard deviation over seeds of one draw's logarithm
    seeds: int  # for each size

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return plain | {"shapes": [list(shape) for shape in self.shapes]}


def estimate_beta(problem: Problem, sizes: Sequence[int] = SIZES, seeds: int = SEEDS, *, seed: int = 0) -> BetaEstimate:
    """Estimate β of |zᵀr|/(√n ‖r‖) = Θ(d^(−β/2)) by regression over sizes (LRG, section 2).

    For each d the problem is drawn with n/d and m/d as they are in ``problem``. A draw's logarithm scatters by about
    1.1, as that of |N(0, 1)| does, so that the error of β is about 2.2/(√(sizes × seeds) × deviation of ln d); its mean is
    shifted by a constant, which the intercept takes up. Every draw has a seed of its own: draws of two sizes with
    the same seed would share their random numbers.

    β is a property of sizes that grow: at a finite range of d the slope also holds what is not yet asymptotic, and
    ``curvature_p_value`` says whether the sizes lie on one line.

    Parameters
    ----------
    problem
        With `SpikedGaussian` inputs that have a spike.
    sizes
        Different values of d, at least three.
    seeds
        Draws for each size, at least two.
    seed
        The first seed; the others are the whole numbers after it.

    Raises
    ------
    InputError
        For real data (their size cannot be changed), inputs without a spike, a direction, weights or an eigenvector that
        fix the size, too few sizes or seeds, or a residue that is zero or exactly orthogonal to z in a draw.
    """
    base = _checked(problem, sizes, seeds, seed)
    ordered = tuple(sorted(int(d) for d in sizes))
    problems = [_resized(problem, base, d) for d in ordered]
    logs = np.array(
        [
            [_log_alignment(sized, seed + index * seeds + draw) for draw in range(seeds)]
            for index, sized in enumerate(problems)
        ]
    )
    return _regression(ordered, problems, logs)


def _checked(problem: Problem, sizes: Sequence[int], seeds: int, seed: int) -> SpikedGaussian:
    """Return the inputs of the problem, or say what rules the regression out."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: a {type(problem).__name__} is not allowed; give a Problem")
    inputs = problem.inputs
    if not isinstance(inputs, SpikedGaussian):
        raise unusable("inputs", inputs.kind, "real data have one size; give spiked-gaussian inputs")
    if not inputs.has_spike:
        raise unusable("inputs.direction", "none", "beta is about the spike; give inputs with one")
    if not isinstance(inputs.direction, str):
        raise InputError("inputs.direction: a vector is not allowed, it fixes d; give 'random' or 'eigenvector'")
    if problem.network.inner in ("given", "conv"):
        raise unusable("network.inner", problem.network.inner, "these weights fix the size; give another choice")
    whole = all(isinstance(d, (int, np.integer)) and not isinstance(d, bool) for d in sizes)
    if not whole or len(set(sizes)) < max(FEWEST_SIZES, len(sizes)) or min(sizes) < max(2, inputs.eigenvector):
        raise unusable(
            "sizes", list(sizes), f"give at least {FEWEST_SIZES} different values of d, whole numbers of at least 2"
        )
    if isinstance(seeds, bool) or not isinstance(seeds, (int, np.integer)) or seeds < FEWEST_SEEDS:
        raise unusable("seeds", seeds, f"give a number of draws for each size, at least {FEWEST_SEEDS}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise unusable("seed", seed, "give a whole number of at least 0")
    return inputs


def _resized(problem: Problem, inputs: SpikedGaussian, d: int) -> Problem:
    """Return the problem at dimension d, with n/d and m/d as they are."""
    n = max(2, round(d * inputs.n / inputs.d))
    m = max(1, round(d * problem.network.m / inputs.d))
    return problem.model_copy(
        update={
            "inputs": inputs.model_copy(update={"n": n, "d": d}),
            "network": problem.network.model_copy(update={"m": m}),
        }
    )


def _log_alignment(problem: Problem, seed: int) -> float:
    draw = problem.draw(seed)
    alignment = residue_alignment(spike_split(draw).scores, draw.residue)
    if not alignment > 0.0:
        n, d, _ = draw.shape
        raise InputError(
            f"problem: the residue is zero or orthogonal to the spike scores at n, d = {n}, {d} and seed {seed}; "
            "its logarithm has no value"
        )
    return math.log(alignment)


def _regression(sizes: tuple[int, ...], problems: list[Problem], logs: NDArray[np.float64]) -> BetaEstimate:
    """Return the least-squares line through the means, with errors from the scatter within each size, pooled."""
    seeds = logs.shape[1]
    means, x = logs.mean(axis=1), np.log(np.array(sizes, dtype=np.float64))
    variance = float(logs.var(axis=1, ddof=1).mean())
    centre = float(x.mean())
    spread = float(((x - centre) ** 2).sum())
    slope = float((x - centre) @ means) / spread
    intercept = float(means.mean()) - slope * centre
    residual = means - intercept - slope * x
    return BetaEstimate(
        beta=-2.0 * slope,
        beta_error=2.0 * math.sqrt(variance / seeds / spread),
        intercept=intercept,
        intercept_error=math.sqrt(variance / seeds * (1.0 / len(x) + centre**2 / spread)),
        curvature_p_value=_lack_of_fit(float(residual @ residual) * seeds / variance, len(x) - 2, len(x) * (seeds - 1)),
        sizes=sizes,
        shapes=tuple((p.inputs.n, p.inputs.d, p.network.m) for p in problems if isinstance(p.inputs, SpikedGaussian)),
        log_alignment=tuple(means.tolist()),
        scatter=math.sqrt(variance),
        seeds=seeds,
    )


def _lack_of_fit(ratio: float, lines: int, within: int) -> float:
    """Return the p-value of the F test of the means about the line against the scatter within sizes."""
    return float(f.sf(ratio / lines, lines, within))
