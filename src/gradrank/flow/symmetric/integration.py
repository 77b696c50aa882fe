"""One integrator for the flows: states at the times asked for, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from gradrank.foundation.errors import ConvergenceError


def integrate(
    velocity: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    *,
    tolerance: float,
    name: str,
    method: Literal["RK45", "DOP853"] = "RK45",
) -> np.ndarray:
    """Return the solution of x′ = velocity(x), x(0) = start, at increasing times, shape (T, len(start)).

    "RK45" is the embedded pair of Dormand and Prince 1980, "DOP853" that of order 8; both control their steps by the
    relative tolerance, and an absolute one of a hundredth of it.

    Raises
    ------
    ConvergenceError
        If the tolerance cannot be kept; the message has the name and the time.
    """
    if times[-1] == 0:
        return np.tile(start, (len(times), 1))
    solved = solve_ivp(
        lambda _, x: velocity(x), (0.0, times[-1]), start, method, times, rtol=tolerance, atol=tolerance / 100
    )
    if not solved.success:
        reached = f"t = {solved.t[-1]:.3g}" if len(solved.t) else "the start"
        raise ConvergenceError(f"{name}: the integration stopped after {reached}: {solved.message}")
    return np.asarray(solved.y.T)
