"""Fixed points x = F(x) of positive vectors, by Anderson's acceleration of the logarithms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradrank.foundation.errors import ConvergenceError

DEPTH = 6
GROWTH = 2.0  # of the change between two evaluations, at which the history is given up
LARGEST = 3.0  # of a step in a logarithm
TINY = 1e-300


def fixed_point(
    image_of: Callable[[np.ndarray], np.ndarray], start: np.ndarray, *, tolerance: float, most: int, name: str
) -> tuple[np.ndarray, float]:
    """Return x = F(x) > 0, and the last change max|log F(x) − log x|.

    The combination of the last images whose residuals cancel best (Anderson 1965), in logarithms, so that entries of
    very different sizes count alike and stay positive. Where it makes the change grow, the iteration goes on from the
    plain image, without a history.

    Raises
    ------
    ConvergenceError
        If the change is above the tolerance after ``most`` evaluations; the message has the name.
    """
    points: list[np.ndarray] = []
    images: list[np.ndarray] = []
    x, before = np.log(np.maximum(start, TINY)), np.inf
    for _ in range(most):
        image = np.log(np.maximum(image_of(np.exp(x)), TINY))
        change = float(np.abs(image - x).max())
        if change <= tolerance:
            return np.exp(image), change
        if not change < GROWTH * before:
            points, images = [], []
        points, images, before = [*points[-DEPTH:], x], [*images[-DEPTH:], image], change
        x = x + np.clip(_combined(points, images) - x, -LARGEST, LARGEST)
    raise ConvergenceError(
        f"{name}: the fixed point is not reached in {most} evaluations, the last relative change is {change:.1e}"
    )


def _combined(points: list[np.ndarray], images: list[np.ndarray]) -> np.ndarray:
    if len(points) == 1:
        return images[0]
    outputs = np.stack(images, axis=1)
    residuals = outputs - np.stack(points, axis=1)
    gamma = np.linalg.lstsq(np.diff(residuals, axis=1), residuals[:, -1], rcond=1e-10)[0]
    return np.asarray(outputs[:, -1] - np.diff(outputs, axis=1) @ gamma)
