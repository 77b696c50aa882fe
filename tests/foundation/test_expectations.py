import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from gradrank.foundation import expectations
from gradrank.foundation.errors import ConvergenceError
from gradrank.foundation.expectations import DIRECT_LIMIT, gaussian_expectation

STDS = [1e-3, 0.1, 1.0, 3.0, 27.0, 1e3]
Function = Callable[[torch.Tensor], torch.Tensor]


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tanh_slope(t: torch.Tensor) -> torch.Tensor:
    return 1 / torch.cosh(t.clamp(-300, 300)) ** 2


def step(c: float) -> Function:
    return lambda t: (t > c).to(t.dtype)


def upper_tail(c: float, s: float) -> float:
    return float(special.erfc(c / (s * math.sqrt(2))) / 2)


CLOSED_FORMS = {
    "erf slope": (
        lambda t: torch.exp(-t * t) * 2 / math.sqrt(math.pi),
        lambda s: 2 / math.sqrt(math.pi * (1 + 2 * s * s)),
    ),
    "cosine": (torch.cos, lambda s: math.exp(-s * s / 2)),
    "square": (torch.square, lambda s: s**2),
    "eighth power": (lambda t: t**8, lambda s: 105 * s**8),
    "odd": (torch.tanh, lambda _: 0.0),
    "kink": (torch.relu, lambda s: s / math.sqrt(2 * math.pi)),
    "kink off zero": (
        lambda t: (t - 0.7).abs(),
        lambda s: s * math.sqrt(2 / math.pi) * math.exp(-0.245 / s**2) + 0.7 * math.erf(0.7 / (s * math.sqrt(2))),
    ),
    "jump": (step(0.0), lambda _: 0.5),
    "jump off zero": (step(0.7), lambda s: upper_tail(0.7, s)),
    "two jumps": (lambda t: step(-1.3)(t) - step(2.1)(t), lambda s: upper_tail(-1.3, s) - upper_tail(2.1, s)),
}


def assert_within_its_error(found: expectations.Expectation, exact: list[float], scale: float = 1.0) -> None:
    """The stated error must bound the true one and be small; the closed form has rounding errors of its own."""
    exact_values = tensor(*exact)
    assert bool(((found.value - exact_values).abs() <= found.error + 1e-15 * exact_values.abs().clamp(min=scale)).all())
    assert bool((found.error <= 1e-11 * exact_values.abs().clamp(min=scale)).all())


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_against_closed_forms(name: str) -> None:
    f, exact = CLOSED_FORMS[name]
    assert_within_its_error(gaussian_expectation(f, tensor(*STDS)), [exact(s) for s in STDS])


@pytest.mark.parametrize("name", ["kink off zero", "jump off zero", "two jumps"])
def test_given_breaks_change_the_cost_and_not_the_value(name: str) -> None:
    f, exact = CLOSED_FORMS[name]
    breaks = (0.7,) if "off" in name else (-1.3, 2.1)
    counts = []

    def counted(t: torch.Tensor) -> torch.Tensor:
        counts[-1] += t.numel()
        return f(t)

    for given_breaks in ((), breaks):
        counts.append(0)
        found = gaussian_expectation(counted, tensor(*STDS), breaks=given_breaks)
        assert_within_its_error(found, [exact(s) for s in STDS])
    assert counts[1] < counts[0]


@pytest.mark.parametrize("s", STDS)
def test_sigmoid_and_tanh_slopes_against_mpmath(s: float) -> None:
    edges = [-12 * s, *sorted({sign * min(edge, 12 * s) for edge in (1, 5, 20, 60) for sign in (-1, 1)}), 0, 12 * s]
    with mpmath.workdps(30):

        def exact(slope: Callable[[mpmath.mpf], mpmath.mpf]) -> float:
            density = lambda t: mpmath.exp(-(t**2) / (2 * s**2)) / (s * mpmath.sqrt(2 * mpmath.pi))  # noqa: E731
            return float(mpmath.quad(lambda t: slope(t) * density(t), sorted(set(edges))))

        tanh, sigmoid = exact(lambda t: mpmath.sech(t) ** 2), exact(lambda t: mpmath.sech(t / 2) ** 2 / 4)
    assert_within_its_error(gaussian_expectation(tanh_slope, tensor(s)), [tanh], scale=tanh)
    ours = gaussian_expectation(lambda t: torch.sigmoid(t) * torch.sigmoid(-t), tensor(s))
    assert_within_its_error(ours, [sigmoid], scale=sigmoid)


def test_fixed_gauss_hermite_rule_fails_where_this_does_not() -> None:
    # With 180 nodes at s = 27 the nodes nearest to 0 step over the feature of width 1.
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    fixed = float(weights @ tanh_slope(torch.from_numpy(27 * nodes)).numpy() / math.sqrt(2 * math.pi))
    exact, _ = integrate.quad(
        lambda t: math.exp(-(t**2) / (2 * 27**2)) / (27 * math.sqrt(2 * math.pi)) / math.cosh(t) ** 2, -40, 40
    )
    assert fixed / exact - 1 == pytest.approx(-0.95, abs=0.01)
    # quad's own tolerance is 1.5e-8.
    assert float(gaussian_expectation(tanh_slope, tensor(27.0)).value) == pytest.approx(exact, rel=2e-8)


def test_against_simulation() -> None:
    g = torch.randn(200_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for s in (0.3, 2.0, 15.0):
        sample = torch.nn.functional.elu(s * g)
        error = float(sample.std() / math.sqrt(len(g)))
        value = float(gaussian_expectation(torch.nn.functional.elu, tensor(s), breaks=(0.0,)).value)
        assert abs(value - float(sample.mean())) < 4 * error


@given(center=st.floats(-5, 5), width=st.floats(0.2, 10), log_s=st.floats(-3, 3))
@settings(deadline=None, max_examples=40)
def test_stated_error_bounds_the_true_error_of_bumps(center: float, width: float, log_s: float) -> None:
    s = 10.0**log_s
    spread = width**2 + s**2
    exact = width / math.sqrt(spread) * math.exp(-(center**2) / (2 * spread))
    found = gaussian_expectation(lambda t: torch.exp(-((t - center) ** 2) / (2 * width**2)), tensor(s))
    assert_within_its_error(found, [exact])


@given(jumps=st.lists(st.floats(-6, 6), min_size=1, max_size=4), log_s=st.floats(-2, 3))
@settings(deadline=None, max_examples=25)
def test_stated_error_bounds_the_true_error_of_unknown_jumps(jumps: list[float], log_s: float) -> None:
    s = 10.0**log_s
    found = gaussian_expectation(lambda t: sum(step(c)(t) for c in jumps), tensor(s))
    exact = sum(upper_tail(c, s) for c in jumps)
    # A jump within 1e-12 of the end of a panel is not seen: less than the tolerance.
    assert abs(float(found.value) - exact) <= float(found.error) + 1e-12
    assert float(found.error) < 1e-11


@pytest.mark.parametrize("c", [1e-5, -1e-7, 0.125 + 1e-6, 2 - 1e-4, 3.0002])
def test_jump_between_the_last_node_and_the_end_of_a_panel_is_seen(c: float) -> None:
    s = [0.5, 1.0, 2.0001, 30.0]
    assert_within_its_error(gaussian_expectation(step(c), tensor(*s)), [upper_tail(c, x) for x in s])


@pytest.mark.parametrize("span", [(0.9, 1.1), (0.05, 20.0)])
@pytest.mark.parametrize("f", [tanh_slope, step(0.7), torch.relu], ids=["smooth", "jump", "kink"])
def test_many_standard_deviations_are_interpolated_at_less_cost(f: Function, span: tuple[float, float]) -> None:
    evaluations = [0]

    def counted(t: torch.Tensor) -> torch.Tensor:
        evaluations[0] += t.numel()
        return f(t)

    s = torch.logspace(math.log10(span[0]), math.log10(span[1]), 400, dtype=torch.float64)
    many = gaussian_expectation(counted, s)
    interpolated, evaluations[0] = evaluations[0], 0
    direct = [gaussian_expectation(counted, few) for few in s.split(DIRECT_LIMIT)]
    if span == (0.9, 1.1):
        assert interpolated < evaluations[0] / 2
    value, error = torch.cat([part.value for part in direct]), torch.cat([part.error for part in direct])
    assert bool(((many.value - value).abs() <= many.error + error).all())
    assert float(many.error.max()) < 1e-10


def test_one_repeated_standard_deviation() -> None:
    found = gaussian_expectation(torch.square, torch.full((100,), 1.7, dtype=torch.float64))
    assert found.value.shape == (100,)
    assert float((found.value - 1.7**2).abs().max()) < 1e-13


def test_zero_gives_the_value_at_zero_alone_or_among_many() -> None:
    assert float(gaussian_expectation(torch.cos, tensor(0.0)).value) == pytest.approx(1.0, abs=1e-14)
    s = torch.linspace(0, 2, 60, dtype=torch.float64)
    found = gaussian_expectation(torch.cos, s)
    assert float((found.value - torch.exp(-(s**2) / 2)).abs().max()) < 1e-13


@pytest.mark.parametrize("f", [torch.log, lambda t: torch.where(t > 3, torch.inf, t)], ids=["nan", "infinite"])
def test_function_that_is_not_finite_is_refused_with_the_standard_deviation(f: Function) -> None:
    with pytest.raises(ConvergenceError, match=r"not finite at standard deviation 2\.5$"):
        gaussian_expectation(f, tensor(2.5))


def test_integral_that_does_not_exist_is_not_reported_as_converged() -> None:
    with pytest.raises(ConvergenceError, match=r"diverges at standard deviation 1$"):
        gaussian_expectation(lambda t: 1 / t.abs(), tensor(1.0))


def test_a_function_that_grows_too_fast_is_refused_though_it_is_finite_within_the_cutoff() -> None:
    with pytest.raises(ConvergenceError, match="grows too fast at standard deviation 1: it still counts 12"):
        gaussian_expectation(lambda t: torch.exp(2 * t * t / 3), tensor(1.0))
    found = gaussian_expectation(lambda t: torch.exp(t * t / 4), tensor(1.0))
    assert float(found.value) == pytest.approx(2**0.5, rel=1e-12)


@pytest.mark.parametrize(("weights", "degree"), [(expectations.KRONROD, 31), (expectations.GAUSS, 19)])
def test_rules_integrate_polynomials_up_to_their_degree(weights: torch.Tensor, degree: int) -> None:
    for power in range(degree + 1):
        exact = (1 - (-1) ** (power + 1)) / (power + 1)
        # 21 terms of at most 0.15, each rounded.
        assert float((weights * expectations.NODES**power).sum()) == pytest.approx(exact, abs=1e-14)


def test_nodes_and_weights_are_those_of_quadpack() -> None:
    # QUADPACK (1983), routine QK21.
    assert float(expectations.NODES[-1]) == pytest.approx(0.995657163025808080735527280689003, abs=1e-15)
    assert float(expectations.KRONROD[-1]) == pytest.approx(0.011694638867371874278064396062192, abs=1e-15)
    assert float(expectations.KRONROD[10]) == pytest.approx(0.149445554002916905664936468389821, abs=1e-15)
