"""The parts add up to the gradient, and the gradient is that of the training loss, for every choice there is."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import grad, vmap
from training_loss import ACTIVATIONS, LOSSES, frobenius, gradient, jacobian_penalty, quartic, wavy

from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.problem.draw import Draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

INNER = ("sphere", "gaussian", "aligned", "orthogonal", "data", "conv", "given")
# Sums of at most some hundred terms of both signs: a few hundred roundings of 1e-16, or of 6e-8.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
LEVELS: dict[str, tuple[Any, ...]] = {
    "activation": tuple(ACTIVATIONS),
    "regularisers": tuple(
        (decay, noise, jacobian) for decay in (0, 0.3) for noise in (0, 0.5) for jacobian in (0, 7.0)
    ),
    "inner": INNER,
    "loss": tuple(LOSSES),
    "direction": ("random", "eigenvector", "none"),
    "scaling": ("ntk", "mf", 0.37),
    "nu": (0.0, 0.3, 0.75),
    "split": ("oracle", "empirical"),
    "centring": ("population", "empirical"),
    "dtype": ("float64", "float32"),
    "alpha": (0.0, 1.3),
    "basis": ("canonical", "haar"),
}
Case = dict[str, Any]


def possible(case: Case) -> bool:
    return not (case.get("inner") in ("aligned", "orthogonal") and case.get("direction") == "none")


def pairs(case: Case) -> set[tuple[Any, ...]]:
    return {((f, case[f]), (g, case[g])) for f, g in combinations(LEVELS, 2) if f in case and g in case}


def pairwise_cases() -> list[Case]:
    """Return cases in which every possible pair of levels of two factors occurs: greedy, without chance."""
    every = [
        {f: a, g: b} for f, g in combinations(LEVELS, 2) for a in LEVELS[f] for b in LEVELS[g] if possible({f: a, g: b})
    ]
    missing = set().union(*map(pairs, every))
    cases: list[Case] = []
    for start in every:
        if not pairs(start) & missing:
            continue
        case = dict(start)
        for turn, (factor, levels) in enumerate(LEVELS.items()):
            shift = (turn + len(cases)) % len(levels)  # ties go to another level each time
            options = (
                [case | {factor: level} for level in levels[shift:] + levels[:shift]] if factor not in case else [case]
            )
            case = max(filter(possible, options), key=lambda option: len(pairs(option) & missing))
        missing -= pairs(case)
        cases.append(case)
    return cases


CASES = pairwise_cases()


def problem(case: Case, n: int, d: int, m: int, kernel_size: int | None = None) -> Problem:
    decay, noise, jacobian = case["regularisers"]
    weights = np.random.default_rng(3).standard_normal((m, d)) if case["inner"] == "given" else None
    spike = {name: case[name] for name in ("nu", "alpha", "direction", "basis")}
    return Problem(
        inputs=SpikedGaussian(n=n, d=d, **spike),
        network=TwoLayer(
            m=m,
            activation=wavy if case["activation"] == "user" else case["activation"],
            scaling=case["scaling"],
            inner=case["inner"],
            weights=weights,
            kernel_size=kernel_size if case["inner"] == "conv" else None,
        ),
        loss=quartic if case["loss"] == "user" else case["loss"],
        regularisers=Regularisers(weight_decay=decay, input_noise=noise, jacobian=jacobian),
        dtype=case["dtype"],
    )


def rebuilt(decomposition: Decomposition) -> torch.Tensor:
    return sum(part.dense().double() for part in decomposition.values())


def check_against_autograd(
    draw: Draw, decomposition: Decomposition, case: Case, scale: float, tolerance: float
) -> None:
    # In float32 the reference is formed in float64 from the same draw: what is measured is the library's rounding
    # alone.
    exact = gradient(in_float64(draw), case["activation"], case["loss"])
    assert frobenius(decomposition.gradient.dense() - exact) <= tolerance * scale


def in_float64(draw: Draw) -> Draw:
    double, cpu = torch.float64, torch.device("cpu")
    inputs, network = draw.inputs.to(double, cpu), draw.network.to(double, cpu)
    return Draw(draw.seed, inputs, draw.y.double(), {}, network, draw.loss, draw.regularisers)


def test_every_possible_pair_of_choices_is_covered() -> None:
    covered = set().union(*(pairs(case) for case in CASES))
    for (f, first), (g, second) in combinations(LEVELS.items(), 2):
        for a in first:
            for b in second:
                assert (((f, a), (g, b)) in covered) == possible({f: a, g: b})


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(level) for level in case.values()))
def test_parts_add_up_to_the_gradient_of_the_training_loss(case: Case) -> None:
    draw = problem(case, 17, 14, 20, kernel_size=5).draw(1)
    decomposition = decompose(draw, split=case["split"], centring=case["centring"])
    whole, tolerance = decomposition.gradient.dense(), TOLERANCE[case["dtype"]]
    size = frobenius(whole)
    assert size > 0
    assert whole.dtype == draw.X.dtype
    assert frobenius(whole.double() - rebuilt(decomposition)) <= tolerance * size
    assert decomposition.reconstruction_error <= tolerance
    check_against_autograd(draw, decomposition, case, size, tolerance)


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "elu", "swish", "user"])
@pytest.mark.parametrize("split", ["oracle", "empirical"])
def test_jacobian_parts_add_up_to_the_gradient_of_the_penalty(activation: str, split: str) -> None:
    case = {
        **CASES[0],
        "activation": activation,
        "regularisers": (0.3, 0.5, 7.0),
        "inner": "sphere",
        "dtype": "float64",
    }
    draw = problem({**case, "direction": "random"}, 17, 14, 20).draw(1)
    parts = decompose(draw, split=split)
    exact = grad(jacobian_penalty)(draw.network.W, draw, activation).T
    found = parts["jacobian_spike"].dense() + parts["jacobian_remainder"].dense()
    assert frobenius(found - exact) <= 1e-12 * frobenius(exact)
    assert (frobenius(exact) > 0) == (activation != "relu")
    # λ S₃ = λ (γ²ζ/n) q zᵀ Diag(‖x_i‖²)[σ′∘σ″] Diag(a²), with torch.func's σ′ and σ″.
    slope = vmap(vmap(grad(ACTIVATIONS[activation])))
    curvature = vmap(vmap(grad(grad(ACTIVATIONS[activation]))))
    H, q, z = draw.X @ draw.network.W.T, parts.split.direction, parts.split.scores
    weights = z * draw.X.square().sum(dim=1) * (7.0 * draw.network.gamma**2 * parts.split.strength / len(z))
    spike = torch.outer(q, weights @ (slope(H) * curvature(H)))
    assert frobenius(parts["jacobian_spike"].dense() - spike) <= 1e-12 * frobenius(spike)


@st.composite
def anything(draw: st.DrawFn) -> tuple[Case, Problem, int]:
    n, d = draw(st.integers(2, 24), label="n"), draw(st.integers(2, 24), label="d")
    case = {name: draw(st.sampled_from(levels), label=name) for name, levels in LEVELS.items()}
    case |= {"nu": draw(st.floats(0, 1), label="ν"), "alpha": draw(st.floats(0, 2), label="α"), "dtype": "float64"}
    if not possible(case):
        case["direction"] = "random"
    kernel_size = draw(st.integers(1, d), label="kernel size")
    m = (
        draw(st.integers(1, 3)) * (d - kernel_size + 1)
        if case["inner"] == "conv"
        else draw(st.integers(1, 24), label="m")
    )
    return case, problem(case, n, d, m, kernel_size), draw(st.integers(0, 2**32), label="seed")


@given(anything())
@settings(deadline=None, max_examples=150, derandomize=True)
def test_any_problem_of_any_size(example: tuple[Case, Problem, int]) -> None:
    case, specification, seed = example
    draw = specification.draw(seed)
    decomposition = decompose(draw, split=case["split"], centring=case["centring"])
    parts = {name: part.dense() for name, part in decomposition.items()}
    # At sizes of one or two the gradient may vanish while its parts do not (all neurons of a ReLU network off), so the
    # largest part is the yardstick.
    size = max(frobenius(part) for part in parts.values())
    assert frobenius(decomposition.gradient.dense() - sum(parts.values())) <= TOLERANCE["float64"] * size
    check_against_autograd(draw, decomposition, case, size, TOLERANCE["float64"])
    for name, norm in decomposition.norms().items():
        dense = decomposition.gradient.dense() if name == "gradient" else parts[name]
        assert norm == pytest.approx(float(torch.linalg.matrix_norm(dense, 2)), rel=1e-6, abs=1e-12 * size)
