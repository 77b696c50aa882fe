"""One step: curves of the theory against the same curves by simulation, and a grid of penalties against one."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from gradrank.onestep import asymptotic_risk, conditional_risk, large_step_risk, simulate

SECTION = "One step, then ridge regression"
POINTS, SIMULATED, D, ROUNDS = 50, 5, 1000, 5
RATIOS = np.linspace(0.5, 4.0, POINTS)
GRID = list(np.geomspace(1e-4, 10, 30))


def test_a_curve_against_simulation(clock: Callable, ledger) -> None:
    """Time 50 points in n/d of both theories, and one seed of every tenth point by simulation."""
    usual = {"psi2": 1.0, "activation": "erf", "teacher": "erf", "noise": 0.3}
    clock("asymptotic", lambda: [asymptotic_risk(2.0, 0.1, psi1=p, **usual) for p in RATIOS], rounds=3)
    begin = perf_counter()
    for p in RATIOS:
        large_step_risk(2.0, 0.1, psi1=p, **usual)
    large = perf_counter() - begin
    begin = perf_counter()
    for p in RATIOS[:: POINTS // SIMULATED]:
        simulate(2.0, 0.1, psi1=p, **usual, d=D, seeds=1)
    simulated = (perf_counter() - begin) * POINTS / SIMULATED
    curve = ledger.seconds["asymptotic"]
    note = f"one seed at d = {D}, from {SIMULATED} of {POINTS} points"
    ledger.row(SECTION, "50 points of the asymptotic theory, η = Θ(1)", f"{1e3 * curve:.1f} ms", "below 1 s")
    ledger.row(SECTION, f"the same by simulation ({note})", f"{simulated / curve:.0f} ×", "at least 200 ×")
    ledger.row(SECTION, "50 points of the asymptotic theory, η = Θ(√m)", f"{large:.2f} s", "below 1 s")
    ledger.row(SECTION, "the same by simulation", f"{simulated / large:.0f} ×")


def test_thirty_penalties_against_one(clock: Callable, ledger) -> None:
    """Time calls with 30 values of λ and with one, in turn."""
    rng = np.random.default_rng(0)
    W, beta = rng.standard_normal((1000, 1000)) / 1000**0.5, np.eye(1000)[0]
    calls = {
        "simulate, d = 500": lambda ridge: simulate(2.0, ridge, 2, 1, "erf", "erf", 0.3, d=500, seeds=2),
        "conditional_risk, small step, m = 1000": lambda ridge: conditional_risk(
            W, ridge, 2000, "erf", "erf", 0.3, beta
        ),
    }
    for name, call in calls.items():
        times: dict[int, list[float]] = {1: [], len(GRID): []}
        for _ in range(ROUNDS):
            for ridges in ([0.1], GRID):
                begin = perf_counter()
                call(ridges)
                times[len(ridges)].append(perf_counter() - begin)
        ratio = median(times[len(GRID)]) / median(times[1])
        ledger.row(SECTION, f"30 values of λ over one, {name}", f"{ratio:.2f} ×", "below 1.5 ×")
    clock("thirty", lambda: calls["simulate, d = 500"](GRID), rounds=1)
