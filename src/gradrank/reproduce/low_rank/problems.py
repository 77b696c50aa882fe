"""The problems of the paper's figures, by the fields that vary."""

from __future__ import annotations

from typing import Any

import xarray

from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.reproduce.reproduction import fixed_of

PAPER, QUICK = (750, 1000, 1250), (300, 400, 500)


def sizes(quick: bool) -> list[int]:
    """Return (n, d, m) as a list, which can be written down."""
    return list(QUICK if quick else PAPER)


def size_of(results: xarray.Dataset) -> tuple[int, ...]:
    """Return the (n, d, m) that an experiment was run at."""
    return tuple(fixed_of(results)["size"])


def synthetic(
    size: list[int],
    *,
    nu: float = 0.0,
    alpha: float = 0.0,
    direction: str = "random",
    activation: str = "sigmoid",
    scaling: str = "ntk",
    inner: str = "sphere",
    targets: Any = "triple-index",
    loss: str = "mse",
    input_noise: float = 0.0,
    jacobian: float = 0.0,
) -> Problem:
    """Return a problem with spiked Gaussian inputs."""
    n, d, m = size
    return Problem(
        inputs=SpikedGaussian(n=n, d=d, nu=nu, alpha=alpha, direction=direction),
        network=TwoLayer(m=m, activation=activation, scaling=scaling, inner=inner),
        targets=targets,
        loss=loss,
        regularisers=Regularisers(input_noise=input_noise, jacobian=jacobian),
    )
