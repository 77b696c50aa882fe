"""The setting of the one-step theory: Gaussian inputs, a single-index teacher, and what each seed draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gradrank.foundation.devices import device_named
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.memory import require_memory
from gradrank.foundation.numbers import at_least_zero, whole
from gradrank.foundation.random import stream, unit_vector
from gradrank.onestep.arguments import checked_ratio
from gradrank.onestep.functions import Scalar, centred
from gradrank.problem.draw import Draw
from gradrank.problem.inputs import Inputs
from gradrank.problem.losses import Loss
from gradrank.problem.losses import loss as loss_named
from gradrank.problem.network import Network
from gradrank.problem.regularisers import Regularisers

OUTER = ("gaussian", "signs")
TEST_SAMPLES = 20  # times d, unless another number is given


@dataclass(frozen=True)
class Sizes:
    """Input dimension, width, and the samples of the step, of the ridge regression and of the test."""

    d: int
    m: int
    step: int
    ridge: int
    test: int

    @classmethod
    def of(cls, d: int, psi1: float, psi2: float, psi0: float | None, test: int | None) -> Sizes:
        """Return the sizes of given ratios to d, each rounded.

        Raises
        ------
        InputError
            If a ratio is not above zero or gives fewer than two samples or neurons.
        """
        d = whole("d", d, 2)
        ratios = {"psi1": psi1, "psi2": psi2, "psi0": psi1 if psi0 is None else psi0}
        found = {}
        for name, ratio in ratios.items():
            found[name] = round(checked_ratio(name, ratio) * d)
            if found[name] < 2:
                raise InputError(f"{name}: {ratio} is not allowed; {name}·d must be at least 2, and d = {d}")
        samples = TEST_SAMPLES * d if test is None else whole("test", test, 2)
        return cls(d, found["psi2"], found["psi0"], found["psi1"], samples)


@dataclass(frozen=True)
class World:
    """The population, and how each seed draws from it: named streams, the same for every η."""

    sizes: Sizes
    sigma: Scalar
    teacher: Scalar
    noise: float
    outer: str
    loss: Loss
    device: torch.device
    unit_rows: bool  # whether W₀ has rows of norm one

    @classmethod
    def of(
        cls,
        sizes: Sizes,
        activation: Any,
        teacher: Any,
        noise: float,
        *,
        outer: str = "gaussian",
        loss: Any = "mse",
        device: str = "cpu",
        unit_rows: bool = False,
    ) -> World:
        """Check what a user gave; see `gradrank.onestep.simulation.simulate`."""
        noise = at_least_zero("noise", noise)
        if outer not in OUTER:
            raise unusable("outer", outer, f"give one of {', '.join(OUTER)}")
        rows = sizes.step + sizes.ridge
        entries = (rows + sizes.test + sizes.m) * sizes.d + rows * sizes.m
        require_memory("d", 8.0 * entries, "give a smaller d or fewer samples")
        sigma, target = centred(activation, "activation"), centred(teacher, "teacher")
        return cls(sizes, sigma, target, noise, outer, loss_named(loss), device_named(device), unit_rows)

    def direction(self, seed: int) -> torch.Tensor:
        """Return the teacher's direction β, uniform on the sphere, shape (d,)."""
        return torch.from_numpy(unit_vector(stream(seed, "onestep.direction"), self.sizes.d)).to(self.device)

    def first_draw(self, seed: int) -> Draw:
        """Return network and samples of the step."""
        beta = self.direction(seed)
        X, target = self.samples(seed, "step", self.sizes.step, beta)
        y = self.labels(seed, "step", target)
        return Draw(seed, Inputs(given=X), y, {"beta": beta}, self.network(seed), self.loss, Regularisers())

    def samples(self, seed: int, name: str, count: int, beta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return fresh inputs (count, d) and f* (count,)."""
        X = torch.from_numpy(stream(seed, f"onestep.{name}.inputs").standard_normal((count, self.sizes.d)))
        X = X.to(self.device)
        return X, self.teacher.value(X @ beta)

    @property
    def slope(self) -> float:
        """μ₁ = E σ′(z)."""
        return float(self.sigma.activation().expected_derivative(torch.ones(1, dtype=torch.float64)).value[0])

    def labels(self, seed: int, name: str, target: torch.Tensor) -> torch.Tensor:
        """Return y = f* + noise·ε."""
        noise = torch.from_numpy(stream(seed, f"onestep.{name}.noise").standard_normal(len(target)))
        return target + self.noise * noise.to(self.device)

    def network(self, seed: int) -> Network:
        """Draw W₀ and ã."""
        m, d = self.sizes.m, self.sizes.d
        W = stream(seed, "onestep.inner").standard_normal((m, d)) / d**0.5
        if self.unit_rows:
            W /= np.linalg.norm(W, axis=1, keepdims=True)
        rng = stream(seed, "onestep.outer")
        a = rng.standard_normal(m) if self.outer == "gaussian" else rng.integers(0, 2, m) * 2.0 - 1.0
        drawn = Network(torch.from_numpy(W), torch.from_numpy(a), 1.0 / m, self.sigma.activation(), "gaussian")
        return drawn.to(torch.float64, self.device)
