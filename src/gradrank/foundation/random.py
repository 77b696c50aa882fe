"""One named random stream per component of a draw, so that changing one component leaves the others as they were."""

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the generator of the component ``name`` of the draw ``seed``.

    The streams of two names are independent children of the same `numpy.random.SeedSequence`: the inputs drawn for a
    seed are the same whatever the width of the network, and the first n rows are the same for every larger n.
    """
    child = np.random.SeedSequence(entropy=seed, spawn_key=(zlib.crc32(name.encode()),))
    return np.random.Generator(np.random.PCG64(child))


def unit_vector(rng: np.random.Generator, d: int) -> np.ndarray:
    """Draw a vector of shape (d,) uniform on the unit sphere."""
    v = rng.standard_normal(d)
    return np.asarray(v / np.linalg.norm(v))


def unit_rows(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Draw a matrix of shape (m, d) whose rows are independent and uniform on the unit sphere."""
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W)
