import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.problem import draw as draw_module
from gradrank.problem.activations import ACTIVATIONS
from gradrank.problem.losses import LOSSES
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian

MODULES = {
    "sigmoid": torch.nn.Sigmoid(), "tanh": torch.nn.Tanh(), "relu": torch.nn.ReLU(), "elu": torch.nn.ELU(),
    "leaky_relu": torch.nn.LeakyReLU(0.01), "swish": torch.nn.SiLU(), "softplus": torch.nn.Softplus(),
    "gelu": torch.nn.GELU(),
}  # fmt: skip


def small(**fields: object) -> Problem:
    return Problem(inputs=SpikedGaussian(n=30, d=11, nu=0.3), **fields)


@pytest.mark.parametrize("scaling", ["ntk", "mf", 0.7])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_outputs_against_a_torch_module(name: str, scaling: object) -> None:
    draw = small(network=TwoLayer(m=17, activation=name, scaling=scaling)).draw(0)
    model = torch.nn.Sequential(torch.nn.Linear(11, 17, bias=False), MODULES[name], torch.nn.Linear(17, 1, bias=False))
    model = model.double()
    gamma = {"ntk": 17**-0.5, "mf": 1 / 17}.get(scaling, scaling)
    with torch.no_grad():
        model[0].weight.copy_(draw.network.W)
        model[2].weight.copy_(gamma * draw.network.a[None])
        torch.testing.assert_close(draw.outputs, model(draw.X)[:, 0], rtol=1e-12, atol=1e-13)
    assert draw.shape == (30, 11, 17)
    torch.testing.assert_close(draw.preactivations, model[0](draw.X).detach(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_residue_is_n_times_the_slope_of_the_mean_loss(name: str) -> None:
    draw = small(network=TwoLayer(m=17), loss=name).draw(1)
    f = draw.outputs.clone().requires_grad_(True)
    criterion = {
        "mse": lambda: 0.5 * torch.nn.functional.mse_loss(f, draw.y),
        "huber": lambda: torch.nn.functional.huber_loss(f, draw.y),
        "logistic": lambda: torch.nn.functional.soft_margin_loss(f, draw.y),
        "log-cosh": lambda: torch.log(torch.cosh(f - draw.y)).mean(),
        "squared-hinge": lambda: (1 - draw.y * f).clamp(min=0).square().mean(),
    }[name]()
    (slope,) = torch.autograd.grad(criterion, f)
    torch.testing.assert_close(draw.residue, 30 * slope, rtol=1e-12, atol=1e-13)


def test_outputs_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small(network=TwoLayer(m=17, activation="gelu"))
    whole = problem.draw(0)
    monkeypatch.setattr(draw_module, "CHUNK_ENTRIES", 40)
    pieces = problem.draw(0)
    assert len(pieces.row_chunks(pieces.preactivations)) == 15
    torch.testing.assert_close(pieces.outputs, whole.outputs, rtol=1e-13, atol=1e-14)
    assert torch.cat(pieces.row_chunks(pieces.preactivations)).equal(whole.preactivations)


def test_outputs_that_overflow_are_refused_with_the_activation() -> None:
    draw = Problem(inputs=SpikedGaussian(n=5, d=4, nu=200.0), network=TwoLayer(m=3, activation=lambda x: x**3)).draw(0)
    with pytest.raises(InputError, match=r"^network\.activation: <lambda> gives outputs that are not finite"):
        _ = draw.outputs


def test_every_activation_has_a_torch_module_or_is_a_torch_function() -> None:
    assert set(ACTIVATIONS) - set(MODULES) == {"erf"}
    draw = small(network=TwoLayer(m=17, activation="erf")).draw(0)
    exact = torch.erf(draw.X @ draw.network.W.T) @ draw.network.a / 17**0.5
    torch.testing.assert_close(draw.outputs, exact, rtol=1e-12, atol=1e-13)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_draw_on_a_device_has_the_same_numbers() -> None:
    problem = small(network=TwoLayer(m=17))
    here, there = problem.draw(0), problem.draw(0, device="cuda")
    assert there.inputs.bulk.cpu().equal(here.inputs.bulk)
    assert there.network.W.cpu().equal(here.network.W)
    torch.testing.assert_close(there.residue.cpu(), here.residue, rtol=1e-10, atol=1e-12)
