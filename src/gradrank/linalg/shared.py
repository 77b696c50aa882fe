"""The singular values of a matrix and of the same matrix plus a low-rank one, from one iteration."""

from gradrank.linalg.bidiagonal import MAX_DIMENSION, Bidiagonalisation
from gradrank.linalg.krylov import BLOCK, TOLERANCE, block_krylov, finite_magnitude
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Operator, Sum
from gradrank.linalg.spectrum import Spectrum


def shared_krylov(
    operator: Operator, low_rank: LowRank, k: int, *, tolerance: float = TOLERANCE
) -> tuple[Spectrum, Spectrum]:
    """Return the k largest triplets of E + L and the largest triplet of E, for an operator E and a low-rank L.

    Same values, residuals and errors as two calls of `block_krylov`, for the products of one: see `Bidiagonalisation`.
    Where the matrices are too small for one space, or one of them is zero, the two calls are made.
    """
    scale = max(finite_magnitude(operator), finite_magnitude(low_rank))
    roomy = min(operator.shape) > 4 * max(BLOCK, k) and k <= MAX_DIMENSION // 2 and 2 * low_rank.rank < BLOCK
    if roomy and operator.magnitude() > 0.0 and low_rank.magnitude() > 0.0:
        spectra = Bidiagonalisation(operator, scale, BLOCK, low_rank).run([(k, low_rank), (1, None)], tolerance, True)
        if spectra is not None:
            return spectra[0], spectra[1]
    return block_krylov(Sum([operator, low_rank]), k, tolerance=tolerance), block_krylov(
        operator, 1, tolerance=tolerance
    )
