"""Features of many inputs at depth, as the inputs of a trainable layer: how correlation collapse reaches the first gradient."""

from __future__ import annotations

import torch

from gradrank.foundation.numbers import whole
from gradrank.foundation.random import stream
from gradrank.initialization.network import sample_network
from gradrank.initialization.shaping import Shaping


def features_at_depth(samples: int, d: int, depth: int, width: int, shaping: Shaping, seed: int = 0) -> torch.Tensor:
    """Draw d random linear features of ``samples`` independent Gaussian inputs after ``depth`` layers, shape (samples, d).

    Given the covariance V_d of all inputs (drawn exactly in law, from V_0 of inputs in R^d), the columns are
    independent N(0, V_d): what the preactivations of the next layer are. Rows are scaled so that their mean square
    is one. With growing depth the rows turn to a common direction, and the features get a data spike.

    Raises
    ------
    InputError
        If a size is not usable.
    """
    n = whole("samples", samples, 2)
    rng = stream(whole("seed", seed, 0), "initialization.features")
    X = torch.from_numpy(rng.standard_normal((n, whole("d", d, 2))))
    V = X @ X.T / d
    if whole("depth", depth, 0) > 0:
        V = sample_network(V, depth, width, shaping, 1, seed)[0]
    values, vectors = torch.linalg.eigh(V)
    root = vectors * values.clamp(min=0).sqrt()
    features = root @ torch.from_numpy(rng.standard_normal((n, d)))
    scaled: torch.Tensor = features / features.square().mean().sqrt()
    return scaled
