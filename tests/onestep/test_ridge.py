"""The ridge path: normal equations, scikit-learn, the pseudo-inverse, and what it refuses."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from gradrank.foundation.errors import InputError
from gradrank.onestep.arguments import checked_ridges
from gradrank.onestep.ridge import ridge_path

RIDGES = [1e-3, 0.1, 10.0]


def data(n: int, N: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(n + N)
    return torch.from_numpy(rng.standard_normal((n, N)) + 0.5), torch.from_numpy(rng.standard_normal(n) + 2.0)


@pytest.mark.parametrize(("n", "N", "form"), [(40, 25, "primal"), (25, 40, "dual"), (30, 30, "primal")])
def test_it_solves_the_normal_equations(n: int, N: int, form: str) -> None:
    S, y = data(n, N)
    path = ridge_path(S, y, RIDGES)
    assert path.form == form
    K = S.T @ S / n
    for column, ridge in enumerate(RIDGES):
        whole = K + ridge * torch.eye(N, dtype=S.dtype)
        torch.testing.assert_close(
            path.weights[:, column], torch.linalg.solve(whole, S.T @ y / n), rtol=1e-9, atol=1e-9
        )
        assert float(path.degrees_of_freedom[column]) == pytest.approx(
            float(torch.trace(K @ torch.linalg.inv(whole))), rel=1e-9
        )
    torch.testing.assert_close(path.predict(S), S @ path.weights)
    assert not path.intercepts.any()


@pytest.mark.parametrize(("n", "N"), [(40, 25), (25, 40)])
def test_the_intercept_is_that_of_scikit_learn(n: int, N: int) -> None:
    S, y = data(n, N)
    path = ridge_path(S, y, RIDGES, intercept=True)
    for column, ridge in enumerate(RIDGES):
        other = Ridge(alpha=ridge * n).fit(S.numpy(), y.numpy())
        np.testing.assert_allclose(path.weights[:, column].numpy(), other.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(path.predict(S)[:, column].numpy(), other.predict(S.numpy()), rtol=1e-8)


@pytest.mark.parametrize(("n", "N", "rank"), [(40, 25, 25), (25, 40, 25), (40, 30, 12), (30, 40, 12)])
def test_no_penalty_is_the_solution_of_least_norm(n: int, N: int, rank: int) -> None:
    rng = np.random.default_rng(1)
    S = torch.from_numpy(rng.standard_normal((n, rank)) @ rng.standard_normal((rank, N)))
    y = torch.from_numpy(rng.standard_normal(n))
    path = ridge_path(S, y, 0.0)
    torch.testing.assert_close(path.weights[:, 0], torch.linalg.pinv(S) @ y, rtol=1e-8, atol=1e-10)
    assert float(path.degrees_of_freedom[0]) == pytest.approx(rank)
    small = ridge_path(S, y, 1e-9)
    torch.testing.assert_close(small.weights, path.weights, rtol=1e-4, atol=1e-6)


def test_a_grid_gives_what_its_members_give() -> None:
    S, y = data(20, 15)
    together = ridge_path(S, y, [0.0, *RIDGES], intercept=True)
    for column, ridge in enumerate([0.0, *RIDGES]):
        alone = ridge_path(S, y, ridge, intercept=True)
        torch.testing.assert_close(together.weights[:, column], alone.weights[:, 0], rtol=1e-12, atol=1e-14)


def test_features_of_zeros_predict_the_mean() -> None:
    y = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    path = ridge_path(torch.zeros(3, 2, dtype=torch.float64), y, [0.0, 1.0], intercept=True)
    torch.testing.assert_close(path.predict(torch.ones(1, 2, dtype=torch.float64)), torch.full((1, 2), 3.0).double())


@pytest.mark.parametrize(
    ("ridges", "message"),
    [
        ([], "ridge: an empty"),
        ([[1.0]], "ridge: an empty or nested"),
        (-1.0, "ridge: -1.0 is not allowed"),
        ([0.1, float("nan")], "ridge: an entry is NaN or infinite"),
        (float("nan"), "ridge: nan is not allowed"),
        (["0.1", 0.2], "ridge: .* is not allowed"),
        (True, "ridge: True is not allowed"),
        (np.array([1 + 1j]), "ridge: .* is not allowed"),
        (1e200, "ridge: 1e\\+200 is not allowed"),
        ("much", "ridge: 'much' is not allowed"),
    ],
)
def test_penalties_that_are_refused(ridges: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_ridges(ridges)


def test_a_penalty_that_rounding_hides_is_refused() -> None:
    S, y = data(40, 25)
    with pytest.raises(InputError, match="rounding hides penalties below"):
        ridge_path(S, y, 1e-18)


def test_the_penalty_on_normalised_features() -> None:
    """min (1/n)‖y − Φa‖² + (λ/m)‖a‖² with Φ = S/√m and a = √m w is the same problem: λ′ on ‖a‖² is λ = mλ′ on ‖w‖²."""
    S, y = data(40, 25)
    ridge, m, n = 0.3, S.shape[1], len(y)
    Phi = S / m**0.5
    a = torch.linalg.solve(Phi.T @ Phi / n + ridge / m * torch.eye(m, dtype=S.dtype), Phi.T @ y / n)
    torch.testing.assert_close(Phi @ a, ridge_path(S, y, ridge).predict(S)[:, 0], rtol=1e-9, atol=1e-11)
