import torch

from gradrank.linalg.operators import Dense
from gradrank.linalg.spectrum import Spectrum, certified

VALUES = torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)


def diagonal() -> tuple[Dense, Spectrum]:
    axes = torch.eye(4, 3, dtype=torch.float64)
    return Dense(axes * VALUES @ torch.eye(3, dtype=torch.float64)), Spectrum(
        VALUES, axes, torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), True, "by hand"
    )


def test_first_triplets() -> None:
    _, spectrum = diagonal()
    first = spectrum.first(2)
    assert len(spectrum) == 3
    assert len(first) == 2
    assert first.values.tolist() == [3.0, 2.0]
    assert first.left.equal(spectrum.left[:, :2])
    assert first.right.equal(spectrum.right[:, :2])
    assert first.residuals.shape == (2,)
    assert (first.converged, first.method, first.dtype) == (True, "by hand", torch.float64)


def test_first_values_alone() -> None:
    bare = Spectrum(VALUES, None, None, None, False, "by hand").first(1)
    assert bare.values.tolist() == [3.0]
    assert bare.left is None
    assert bare.residuals is None
    assert not bare.converged


def test_certified_measures_the_residuals_against_another_operator() -> None:
    operator, spectrum = diagonal()
    assert float(certified(spectrum, operator).residuals.max()) < 1e-15
    # G + 0.3 e₁e₁ᵀ: both residuals of the first triplet are 0.3 and the others stay zero.
    moved = operator.matrix.clone()
    moved[0, 0] += 0.3
    residuals = certified(spectrum, Dense(moved)).residuals
    assert torch.allclose(residuals, torch.tensor([0.3 * 2**0.5, 0, 0], dtype=torch.float64), atol=1e-14)


def test_certified_at_a_scale_whose_squares_vanish() -> None:
    operator, spectrum = diagonal()
    small = Dense(operator.matrix.float() * 1e-25)
    off = Spectrum(VALUES.float() * 1.1e-25, spectrum.left.float(), spectrum.right.float(), None, True, "by hand")
    expected = VALUES.float() * 0.1e-25 * 2**0.5
    assert torch.allclose(certified(off, small).residuals, expected, rtol=1e-5, atol=0.0)


def test_certified_leaves_what_has_no_vectors_and_zero() -> None:
    operator, _ = diagonal()
    bare = Spectrum(VALUES, None, None, None, True, "by hand")
    assert certified(bare, operator) is bare
    zero = Dense(torch.zeros(4, 3, dtype=torch.float64))
    spectrum = zero.top(2)
    assert certified(spectrum, zero) is spectrum
