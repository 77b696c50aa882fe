import math
from pathlib import Path

import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem.losses import LOSSES, loss

NAMES = sorted(LOSSES)
F = torch.linspace(-4.01, 4.03, 41, dtype=torch.float64)
LABELS = [-2.5, -1.0, -0.3, 0.0, 0.7, 1.0, 3.0]

FORMULAS = {
    "mse": lambda f, y: (f - y) ** 2 / 2,
    "logistic": lambda f, y: math.log1p(math.exp(-abs(y * f))) + max(-y * f, 0),
    "huber": lambda f, y: (f - y) ** 2 / 2 if abs(f - y) <= 1 else abs(f - y) - 0.5,
    "log-cosh": lambda f, y: abs(f - y) + math.log1p(math.exp(-2 * abs(f - y))) - math.log(2),
    "squared-hinge": lambda f, y: max(0, 1 - y * f) ** 2,
}


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", NAMES)
def test_residue_against_autograd_and_finite_differences(name: str, label: float) -> None:
    f, y, h = F.clone().requires_grad_(True), torch.full_like(F, label), 1e-5
    (slope,) = torch.autograd.grad(LOSSES[name].value(f, y).sum(), f)
    residue = LOSSES[name].residue(F, y)
    torch.testing.assert_close(residue, slope, rtol=1e-13, atol=1e-14)
    difference = (LOSSES[name].value(F + h, y) - LOSSES[name].value(F - h, y)) / (2 * h)
    # Rounding of losses up to 200 over h, and h at a kink of the slope (at most 2 y² = 18).
    torch.testing.assert_close(residue, difference, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_formula(name: str) -> None:
    grid = torch.cartesian_prod(torch.tensor([-30.0, -1.3, 0.0, 0.9, 25.0]).double(), torch.tensor(LABELS).double())
    exact = torch.tensor([FORMULAS[name](float(f), float(y)) for f, y in grid], dtype=torch.float64)
    # log-cosh subtracts log 2 from numbers of order one.
    torch.testing.assert_close(LOSSES[name].value(grid[:, 0], grid[:, 1]), exact, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_large_outputs_stay_finite(name: str, dtype: torch.dtype) -> None:
    f = torch.tensor([-1e6, -1e3, 1e3, 1e6], dtype=dtype)
    for label in (-1.0, 0.5, 1.0):
        y = torch.full_like(f, label)
        assert LOSSES[name].residue(f, y).dtype == dtype
        assert bool(torch.isfinite(LOSSES[name].residue(f, y)).all())
        assert bool(torch.isfinite(LOSSES[name].value(f, y)).all())


def test_log_cosh_far_out_is_a_line() -> None:
    f, y = torch.tensor([1e3, -1e3], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    assert LOSSES["log-cosh"].value(f, y).tolist() == pytest.approx([1e3 - math.log(2)] * 2, rel=1e-15)
    assert LOSSES["log-cosh"].residue(f, y).tolist() == [1.0, -1.0]


def test_logistic_tail_is_accurate_in_float64() -> None:
    # torch's softplus is a straight line beyond 20, an error of 2e-9 here.
    found = float(LOSSES["logistic"].value(torch.tensor([-20.5]).double(), torch.ones(1).double()))
    assert found - 20.5 == pytest.approx(math.exp(-20.5), rel=1e-5)


def test_user_loss_gets_its_residue_from_autograd() -> None:
    user = loss(lambda f, y: (f - y) ** 4)
    y = torch.full_like(F, 0.5)
    torch.testing.assert_close(user.residue(F, y), 4 * (F - y) ** 3)
    assert not user.residue(F, y).requires_grad
    assert loss(user) is user


def test_loss_named_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "losses_for_a_test.py").write_text("def quartic(f, y):\n    return (f - y) ** 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert loss("losses_for_a_test:quartic").name == "losses_for_a_test:quartic"


@pytest.mark.parametrize(
    "function",
    [
        lambda f, y: ((f - y) ** 2).mean(),
        lambda f: f,
        lambda f, y: 0 * f.detach() + y,
        lambda f, y: (f - y).abs().sqrt(),
        None,
    ],
    ids=["mean", "one argument", "no dependence", "infinite slope", "none"],
)
def test_what_is_no_elementwise_loss_is_refused(function: object) -> None:
    with pytest.raises(InputError, match=r"^loss: ") as caught:
        loss(function)
    assert "\n" not in str(caught.value)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"^loss: 'hubber' .*did you mean 'huber'"):
        loss("hubber")
