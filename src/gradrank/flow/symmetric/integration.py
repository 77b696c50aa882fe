"""One integrator for the flows: states at the times asked for, or the reason why not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from gradrank.foundation.errors import ConvergenceError, unusable
from gradrank.foundation.numbers import at_least_zero

MOST = 30_000  # evaluations of the velocity: a smooth problem takes hundreds


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    *,
    tolerance: float,
    name: str,
    method: Literal["RK45", "DOP853"] = "RK45",
) -> np.ndarray:
    """Return the solution of x′ = velocity(x), x(0) = start, at times in increasing order, shape (T, len(start)).

    "RK45" is the embedded pair of Dormand and Prince 1980, "DOP853" that of order 8; both control their steps by the
    relative tolerance, and an absolute one of a hundredth of it.

    Raises
    ------
    ConvergenceError
        If the tolerance cannot be kept, the velocity is not finite, or it takes more than 30,000 evaluations, as where the
        velocity jumps; the message has the name and the time.
    InputError
        If the tolerance is not between 0 and 1.
    """
    if not 0 < at_least_zero("tolerance", tolerance) < 1:
        raise unusable("tolerance", tolerance, "give a number between 0 and 1")
    asked, place = np.unique(times, return_inverse=True)
    if asked[-1] == 0:
        return np.tile(start, (len(times), 1))
    evaluations = itertools.count(1)

    def checked(t: float, x: np.ndarray) -> np.ndarray:
        found = velocity(x)
        if not np.isfinite(found).all():
            raise ConvergenceError(f"{name}: the velocity is not finite at t = {t:.3g}")
        if next(evaluations) > MOST:
            raise ConvergenceError(
                f"{name}: {MOST} evaluations reach t = {t:.3g} only; give a tolerance above {tolerance:g}"
            )
        return found

    solved = solve_ivp(checked, (0.0, asked[-1]), start, method, asked, rtol=tolerance, atol=tolerance / 100)
    if not solved.success:
        reached = f"t = {solved.t[-1]:.3g}" if len(solved.t) else "the start"
        raise ConvergenceError(f"{name}: the integration stopped after {reached}: {solved.message}")
    return np.asarray(solved.y.T[place])
