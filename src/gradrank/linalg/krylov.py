"""The largest singular values of an operator, by block Krylov iteration, with residual norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gradrank.foundation.errors import InputError
from gradrank.linalg.bidiagonal import MAX_DIMENSION, Bidiagonalisation
from gradrank.linalg.spectrum import Spectrum

if TYPE_CHECKING:
    from gradrank.linalg.operators import Operator

BLOCK = 12
TOLERANCE = 1e-3


def block_krylov(
    operator: Operator, k: int, *, tolerance: float = TOLERANCE, vectors: bool = True, block: int = BLOCK
) -> Spectrum:
    """Return the k largest singular triplets of ``operator``.

    Block Golub-Kahan bidiagonalisation with full reorthogonalisation (Golub, Luk and Overton 1981; with a random start,
    Musco and Musco 2015): orthonormal bases V of the Krylov space of GᵀG and U of G V, so that G V = U B exactly with B
    small and upper triangular. The singular triplets of B are those of G up to the residual
    Gᵀu − σ v = V⁺ R (last block of the coordinates of u), which costs nothing to know.

    The iteration works on G divided by its magnitude: a float32 matrix at the scale of 1e-25 is as good as any.

    Parameters
    ----------
    operator
        The (d, m) matrix.
    k
        How many triplets; fewer come back only if min(d, m) < k.
    tolerance
        ``converged`` is True when every residual is at most ``tolerance`` times its own singular value, or at the
        rounding level of the precision. A singular value always lies within the residual (Weyl); the error itself is of
        the order of residual²/gap: 1e-6 relative at the crowded edge of a bulk with the default.
    vectors
        Whether to return the vectors.
    block
        Columns of a block: also the largest multiplicity of a singular value that is seen at once.

    Raises
    ------
    InputError
        If an entry is NaN or infinite, or k < 1.
    """
    if k < 1:
        raise InputError(f"k: {k} is not allowed; give a number of at least 1")
    k = min(k, *operator.shape)
    scale = finite_magnitude(operator)
    if scale == 0.0:
        return _zero_spectrum(operator, k, vectors)
    spectra = None
    if min(operator.shape) > 4 * max(block, k) and k <= MAX_DIMENSION // 2:
        spectra = Bidiagonalisation(operator, scale, block).run([(k, None)], tolerance, vectors)
    return spectra[0] if spectra is not None else _dense_triplets(operator, k, scale, vectors)


def finite_magnitude(operator: Operator) -> float:
    """Return the operator's magnitude, or raise an `InputError` if an entry is NaN or infinite."""
    scale = operator.magnitude()
    if not scale < float("inf"):
        raise InputError("matrix: an entry is NaN or infinite; every entry must be finite")
    return scale


def _dense_triplets(operator: Operator, k: int, scale: float, vectors: bool) -> Spectrum:
    """Return the k largest triplets from the dense matrix, for shapes too small for a Krylov space."""
    G = operator.dense() / scale
    U, sigma, Vt = torch.linalg.svd(G, full_matrices=False)
    U, sigma, V = U[:, :k], sigma[:k], Vt[:k].T
    forward = torch.linalg.vector_norm(G @ V - sigma * U, dim=0)
    backward = torch.linalg.vector_norm(G.T @ U - sigma * V, dim=0)
    return Spectrum(
        values=sigma * scale,
        left=U if vectors else None,
        right=V if vectors else None,
        residuals=torch.hypot(forward, backward) * scale,
        converged=True,
        method="dense SVD",
    )


def _zero_spectrum(operator: Operator, k: int, vectors: bool) -> Spectrum:
    """Return zeros, with unit vectors as singular vectors, for a matrix of zeros."""
    d, m = operator.shape
    like = torch.zeros((), dtype=operator.dtype, device=operator.device)
    return Spectrum(
        values=like.new_zeros(k),
        left=torch.eye(d, k).to(like) if vectors else None,
        right=torch.eye(m, k).to(like) if vectors else None,
        residuals=like.new_zeros(k),
        converged=True,
        method="zero matrix",
        status="zero",
    )
