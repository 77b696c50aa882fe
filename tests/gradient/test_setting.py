"""What the law of a column depends on: taken from a draw, or from plain arrays that are checked."""

import math

import numpy as np
import pytest
import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.factored_gradient import jacobian_signal
from gradrank.gradient.setting import Setting, plain_setting, setting_of_draw
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.spiked_gaussian import SpikedGaussian

NONE: dict[str, object] = {"residue": None, "activation": None}


def problem(**fields: object) -> Problem:
    network = TwoLayer(m=30, activation="softplus", **fields)  # type: ignore[arg-type]
    return Problem(
        inputs=SpikedGaussian(n=20, d=12),
        network=network,
        regularisers=Regularisers(jacobian=0.7, weight_decay=0.2, input_noise=0.3),
        dtype="float32",
    )


def plain(**fields: object) -> Setting:
    given: dict[str, object] = {"residue": np.ones(5), "activation": "tanh", "scale": 0.1, "m": 7} | fields
    return plain_setting(given.pop("data", np.ones((5, 3))), **given)  # type: ignore[arg-type]


def test_a_draw_gives_its_parts_in_float64() -> None:
    draw = problem().draw(3)
    found = setting_of_draw(draw, NONE)
    for tensor, expected in ((found.X, draw.X), (found.residue, draw.residue), (found.W, draw.network.W)):
        assert tensor is not None
        assert tensor.dtype == torch.float64
        torch.testing.assert_close(tensor, expected.double())
    assert (found.m, found.gamma, found.inner) == (30, 30**-0.5, "sphere")
    assert (found.jacobian, found.weight_decay) == (0.7, 0.2)
    assert found.spike_direction is not None


def test_the_weights_of_the_signals_are_those_of_the_gradient() -> None:
    """√m (γ/n) r, and the Jacobian penalty's signal divided by σ′σ″, whatever the neuron."""
    draw = problem().draw(0)
    found = setting_of_draw(draw, NONE)
    torch.testing.assert_close(
        found.signal_weights, draw.residue.double() * (draw.network.gamma * math.sqrt(30) / 20), rtol=1e-6, atol=0
    )
    slopes = found.slope_product(draw.preactivations.double())
    ratio = math.sqrt(30) * jacobian_signal(draw).double() / slopes
    torch.testing.assert_close(ratio, found.penalty_weights[:, None].expand(-1, 30), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"inner": "data"}, "depend on the data"),
        ({"inner": "given", "weights": np.eye(30, 12)}, "as trained ones do"),
        ({"inner": "conv", "kernel_size": 3}, "repeat the filters"),
    ],
)
def test_weights_that_are_not_independent_rows_are_declined(fields: dict[str, object], reason: str) -> None:
    draw = problem(**fields).draw(0)
    with pytest.raises(InputError, match=reason) as caught:
        setting_of_draw(draw, NONE)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("network.inner: ")


def test_a_draw_takes_no_plain_arguments() -> None:
    with pytest.raises(InputError, match="come from the draw"):
        setting_of_draw(problem().draw(0), {"residue": None, "m": 3})


def test_plain_arrays_of_any_kind() -> None:
    for data in (np.ones((5, 3), dtype=np.float32), torch.ones(5, 3), [[1, 2, 3]] * 5, np.ones((5, 3), dtype=bool)):
        found = plain(data=data, m=np.int64(7), scale=np.float32(0.5))
        assert found.X.dtype == torch.float64
        assert (tuple(found.X.shape), found.m, found.gamma) == ((5, 3), 7, 0.5)
        assert (found.jacobian, found.weight_decay, found.W, found.spike_direction) == (0.0, 0.0, None, None)
    assert plain(activation=torch.sin).activation.value is not None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": np.ones(5)}, "data: shape (5,)"),
        ({"data": np.ones((0, 3))}, "data: shape (0, 3)"),
        ({"data": np.ones((5, 1))}, "data: shape (5, 1)"),
        ({"data": np.full((5, 3), math.nan)}, "data: 15 entries are NaN or infinite; give finite numbers"),
        ({"data": "digits"}, "data: a str is not allowed"),
        ({"data": None}, "data: a NoneType is not allowed; give a real array of shape (n, d)"),
        ({"data": [[1, 2, 3], [4, 5]]}, "data: a list is not allowed"),
        ({"data": np.ones((5, 3), dtype=complex)}, "data: a ndarray is not allowed; give a real array"),
        ({"data": torch.ones(5, 3, dtype=torch.complex64)}, "data: a Tensor is not allowed; give a real array"),
        ({"residue": None}, "residue: a NoneType is not allowed; give a real array of shape (n,)"),
        ({"residue": np.ones(4)}, "residue: length 4 is not allowed"),
        ({"residue": np.ones((5, 1))}, "residue: shape (5, 1)"),
        ({"residue": np.array([1, 2, 3, 4, math.inf])}, "residue: 1 entries are NaN or infinite; give finite numbers"),
        ({"scale": None}, "scale: None is not allowed"),
        ({"scale": 0.0}, "scale: 0.0 is not allowed"),
        ({"scale": -1}, "scale: -1 is not allowed"),
        ({"scale": math.nan}, "scale: nan is not allowed"),
        ({"scale": math.inf}, "scale: inf is not allowed"),
        ({"scale": "ntk"}, "scale: 'ntk' is not allowed"),
        ({"scale": True}, "scale: True is not allowed"),
        ({"m": None}, "m: None is not allowed"),
        ({"m": 0}, "m: 0 is not allowed"),
        ({"m": 2.0}, "m: 2.0 is not allowed"),
        ({"m": True}, "m: True is not allowed"),
        ({"m": "7"}, "m: '7' is not allowed"),
        ({"activation": None}, "activation: missing"),
        ({"activation": "tanhh"}, "activation: 'tanhh' is not allowed"),
        ({"activation": 3}, "activation: "),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plain(**fields)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
