import numpy as np
import pytest
import torch

from gradrank.linalg.small import singular_values, triangular_factor


@pytest.mark.parametrize("shape", [(40, 10), (10, 40), (11, 10), (10, 10), (1, 5)])
def test_singular_values_against_numpy(shape: tuple[int, int]) -> None:
    M = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = np.linalg.svd(M.numpy(), compute_uv=False)
    np.testing.assert_allclose(singular_values(M).numpy(), exact, rtol=0, atol=1e-14 * exact[0])


def test_triangular_factor_has_the_gram_matrix_of_the_columns() -> None:
    M = torch.randn(30, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    R = triangular_factor(M)
    assert R.shape == (6, 6)
    assert R.equal(torch.triu(R))
    np.testing.assert_allclose((R.T @ R).numpy(), M.numpy().T @ M.numpy(), rtol=1e-12, atol=1e-13)
