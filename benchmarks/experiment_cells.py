"""Cells for the benchmark of the experiments' engine, importable by its workers."""

import numpy as np


def trivial(a: int, seed: int) -> dict[str, object]:
    return {"y": float(a + seed)}


def busy(a: int, seed: int) -> dict[str, object]:
    rng = np.random.default_rng((a, seed))
    matrix = rng.standard_normal((500, 500))
    for _ in range(20):
        values = np.linalg.svd(matrix, compute_uv=False)
    return {"y": float(values[0])}
