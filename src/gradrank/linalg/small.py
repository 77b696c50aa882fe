"""Dense factorisations, in one place: torch's or SciPy's, whichever `make bench` shows to be faster here."""

import torch


def singular_values(matrix: torch.Tensor) -> torch.Tensor:
    """Return the singular values of a (p, q) matrix, shape (min(p, q),), descending; a tall one is reduced by QR first."""
    p, q = matrix.shape
    if p < q:
        matrix, p, q = matrix.T, q, p
    if p > 1.2 * q:
        matrix = torch.linalg.qr(matrix, mode="r").R
    values: torch.Tensor = torch.linalg.svdvals(matrix)
    return values


def triangular_factor(matrix: torch.Tensor) -> torch.Tensor:
    """Return R, shape (q, q), of the QR factorisation of a (p, q) matrix with p ≥ q."""
    R: torch.Tensor = torch.linalg.qr(matrix, mode="r").R
    return R
