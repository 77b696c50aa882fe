"""`OneStep`: what one gradient step buys a ridge regression, on the data of any problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import whole
from gradrank.foundation.random import stream
from gradrank.gradient.alignments import cosines
from gradrank.gradient.decomposition import decompose
from gradrank.onestep.arguments import checked_ridges
from gradrank.onestep.features import Features, squared_errors
from gradrank.onestep.ridge import ridge_path
from gradrank.onestep.step import leading_directions, step_size, stepped
from gradrank.problem.draw import Draw
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian

TEST_SAMPLES = 4  # times the samples of the step, unless another number is given
LEADING = 5  # singular vectors of W₁ that are compared with the named directions


@dataclass(frozen=True, eq=False)
class OneStepRun:
    """Test risks of one draw, before and after the step, and the directions that the step brought into the weights."""

    ridges: np.ndarray  # (L,)
    risk: np.ndarray  # (L,) of the ridge regression on σ(XW₁ᵀ)
    standard_error: np.ndarray  # (L,) of `risk`, from the test samples
    risk_before: np.ndarray  # (L,) on σ(XW₀ᵀ): random features
    risk_linear: np.ndarray  # (L,) on X itself
    improvement: np.ndarray  # (L,) risk_before − risk
    improvement_error: np.ndarray  # (L,) its standard error, paired over the test samples
    null_risk: float  # of the constant that fits best
    singular_values: np.ndarray  # (k,) of W₁
    alignments: dict[str, np.ndarray]  # direction in input space → (k,) |cosine| with W₁'s vectors
    eta: float  # as applied
    shape: tuple[int, int, int, int, int]  # samples of the step, of the ridge and of the test, d, m


@dataclass(frozen=True)
class OneStep:
    """One step on the inner weights with a problem's own samples, then ridge regression on fresh samples.

    W₁ = W₀ − η √m ∇L with η = eta · m^exponent (`stepped` says how scalings of the output compare), then min over (w, b) of
    (1/n)‖y − b − Sw‖² + λ‖w‖² with S = σ(XW₁ᵀ). The constant b is free, since the activations of a problem are not centred.

    Synthetic inputs: the step takes the problem's n samples; the others are drawn from the same population, with the
    strength n^ν of the step. Real inputs: ``inputs.n`` samples make the step, others of the data the rest.

    Parameters
    ----------
    problem
        Inputs, targets, network, loss and penalties of the step.
    eta, exponent
        The size of the step.
    samples
        Samples of the ridge regression; as many as the step has unless given.
    test
        Test samples; four times as many, or all that real data have left, unless given.
    """

    problem: Problem
    eta: float = 1.0
    exponent: float = 0.0
    samples: int | None = None
    test: int | None = None

    def run(self, ridges: float | Sequence[float] | np.ndarray, seed: int = 0, *, device: str = "cpu") -> OneStepRun:
        """Draw, step, fit and test.

        The risk is the mean of (f̂ − f*)² over the test samples, f* being the target without its noise.

        Raises
        ------
        InputError
            If a value is not usable, or the data have too few samples.
        """
        if not isinstance(self.problem, Problem):
            raise unusable("problem", self.problem, "give a gradrank.Problem")
        grid = checked_ridges(ridges)
        eta = step_size(self.eta, self.exponent, self.problem.network.m)
        step, fresh, truth = self._draws(seed, device)
        samples = self._samples(len(step.y))
        train, test = slice(0, samples), slice(samples, None)
        after = stepped(step, eta)
        X, y, target = fresh.X, fresh.y, truth[test]

        def errors(features: Features) -> torch.Tensor:
            path = ridge_path(features(X[train]), y[train], grid, intercept=True)
            return squared_errors(path, features, X[test], target)

        found, before = errors(_features(after)), errors(_features(step))
        linear = errors(lambda rows: rows).mean(dim=0)
        gain = before - found
        values, directions = leading_directions(after.network.W, min(LEADING, *after.network.W.shape))
        return OneStepRun(
            ridges=grid,
            risk=_numpy(found.mean(dim=0)),
            standard_error=_standard_error(found),
            risk_before=_numpy(before.mean(dim=0)),
            risk_linear=_numpy(linear),
            improvement=_numpy(gain.mean(dim=0)),
            improvement_error=_standard_error(gain),
            null_risk=float((target - y[train].mean()).square().mean()),
            singular_values=_numpy(values),
            alignments={name: _numpy(cosines(directions, b)) for name, b in decompose(step).left_directions.items()},
            eta=eta,
            shape=(len(step.y), samples, len(target), step.shape[1], step.shape[2]),
        )

    def _samples(self, step: int) -> int:
        samples = step if self.samples is None else self.samples
        return whole("samples", samples, 2)

    def _draws(self, seed: int, device: str) -> tuple[Draw, Draw, torch.Tensor]:
        """Return the draw of the step, fresh samples for ridge and test, and f* on the fresh ones."""
        inputs = self.problem.inputs
        if isinstance(inputs, SpikedGaussian):
            return self._synthetic(inputs, seed, device)
        return self._real(seed, device)

    def _synthetic(self, inputs: SpikedGaussian, seed: int, device: str) -> tuple[Draw, Draw, torch.Tensor]:
        n = inputs.n
        rows = self._samples(n) + (TEST_SAMPLES * n if self.test is None else whole("test", self.test, 2))
        # The first n rows of a larger draw are those of the problem; ν is lowered so that its spike has the strength n^ν.
        larger = inputs.model_copy(update={"n": n + rows, "nu": inputs.nu * np.log(n) / np.log(n + rows)})
        clean = self.problem.regularisers.model_copy(update={"input_noise": 0.0})
        world = self.problem.model_copy(update={"inputs": larger, "regularisers": clean})
        fresh, truth = _with_truth(world, seed, device)
        return self.problem.draw(seed, device=device), fresh.take(slice(n, None)), truth[n:]

    def _real(self, seed: int, device: str) -> tuple[Draw, Draw, torch.Tensor]:
        n = self.problem.inputs.n
        if n is None:
            raise InputError(
                "inputs.n: is missing; give how many samples make the step, the others are for ridge and test"
            )
        if self.problem.regularisers.input_noise:
            raise InputError("regularisers.input_noise: is not allowed here for real inputs; give 0")
        everything = self.problem.model_copy(update={"inputs": self.problem.inputs.model_copy(update={"n": None})})
        drawn, truth = _with_truth(everything, seed, device)
        samples, total = self._samples(n), len(drawn.y)
        test = total - n - samples if self.test is None else whole("test", self.test, 2)
        if test < 2 or n + samples + test > total:
            raise InputError(
                f"inputs.n: {n} samples for the step, {samples} for the ridge and {max(test, 2)} for the test are more than "
                f"the {total} of the data; give fewer"
            )
        order = torch.from_numpy(stream(seed, "onestep.rows").permutation(total)[: n + samples + test])
        return drawn.take(order[:n]), drawn.take(order[n:]), truth[order[n:]]


def _with_truth(problem: Problem, seed: int, device: str) -> tuple[Draw, torch.Tensor]:
    """Return a draw, and its labels without their noise."""
    quiet = problem.model_copy(update={"targets": problem.targets.model_copy(update={"noise": 0.0})})
    return problem.draw(seed, device=device), quiet.draw(seed, device=device).y


def _features(draw: Draw) -> Features:
    sigma, W = draw.network.activation.value, draw.network.W
    return lambda rows: sigma(rows @ W.T)


def _standard_error(errors: torch.Tensor) -> np.ndarray:
    return _numpy(errors.std(dim=0) / len(errors) ** 0.5)


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return np.asarray(tensor.cpu().numpy())
