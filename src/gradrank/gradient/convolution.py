"""Weight tying: from the gradient of shifted copies to the gradient of the filters (LRG, Remark 1)."""

import torch

from gradrank.foundation.errors import InputError
from gradrank.linalg.factored import Factored
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import COLUMN_BLOCK, Dense, Operator


def filter_gradient(gradient: Operator | torch.Tensor, kernel_size: int) -> torch.Tensor:
    """Map the gradient G (d, m) of a convolution written as a matrix to the filters' gradient, shape (filters, k).

    A one-dimensional valid convolution of stride 1 with filters of length k has P = d − k + 1 positions, and the row
    f P + i of W is filter f shifted by i. Then g_f[l] = Σ_i G[i + l, f P + i] for l = 0 … k − 1, linear in G: the filter
    gradients of the parts of a decomposition add up to that of the whole. A factored or low-rank G is not formed.

    Raises
    ------
    InputError
        If k does not fit d, or m is not a multiple of the number of positions.
    """
    if isinstance(gradient, torch.Tensor):
        gradient = Dense(gradient)
    d, m = gradient.shape
    positions = d - kernel_size + 1
    if not 1 <= kernel_size <= d or m % positions:
        raise InputError(
            f"kernel_size: {kernel_size} is not allowed for a gradient of shape ({d}, {m}); give k between 1 and d = {d} "
            "with m a multiple of d − k + 1"
        )
    if isinstance(gradient, Factored):
        windows = gradient.X.unfold(1, positions, 1)  # (n, k, P): window l holds X[:, l : l + P]
        signals = gradient.signal.reshape(len(gradient.signal), -1, positions)
        return torch.einsum("nlp,nfp->fl", windows, signals)
    if isinstance(gradient, LowRank):
        windows = gradient.left.T.unfold(1, positions, 1)  # (r, k, P)
        right = (gradient.right * gradient.values).T.reshape(gradient.rank, -1, positions)
        return torch.einsum("rlp,rfp->fl", windows, right)
    result = torch.zeros(m // positions, kernel_size, dtype=gradient.dtype, device=gradient.device)
    for start in range(0, m, COLUMN_BLOCK):
        block = gradient.columns(start, min(start + COLUMN_BLOCK, m))
        for offset in range(block.shape[1]):
            index, position = divmod(start + offset, positions)
            result[index] += block[position : position + kernel_size, offset]
    return result
