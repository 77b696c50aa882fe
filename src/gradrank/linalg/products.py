"""Products of a large matrix with a few vectors, and the largest entry of an array: the two inner loops of this floor."""

import torch

WIDTH = 16


def skinny(A: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Return A V for a large A (p, q) and a block V (q, b) of a few columns.

    On the CPU with MKL (`make bench` shows both): in float64 the transposed product VᵀAᵀ is about twice as fast; in
    float32 it is slower, and a block of 2 or 10 columns takes five times as long as one of 16, so blocks are filled up.
    """
    if A.device.type != "cpu":
        return A @ V
    if A.dtype == torch.float64:
        return (V.T @ A.T).T
    missing = -V.shape[1] % WIDTH
    if missing == 0:
        return A @ V
    return (A @ torch.nn.functional.pad(V, (0, missing)))[:, : V.shape[1]]


def largest_entry(array: torch.Tensor) -> float:
    """Return max |entry| as a float, NaN if an entry is NaN, and 0 for an empty array."""
    if array.numel() == 0:
        return 0.0
    low, high = torch.aminmax(array)
    return float(torch.maximum(-low, high))
