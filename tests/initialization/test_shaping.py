"""Shaped activations: published digits, kernels by quadrature, one-layer increments by simulation, and what is refused."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from gradrank.foundation.errors import InputError
from gradrank.initialization import ShapedReLU, ShapedSmooth, sample_network
from gradrank.initialization.shaped_relu import angle_defect


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def silu(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * torch.sigmoid(x)


def mixed(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) + 0.5 * torch.tanh(x) ** 2


V = tensor(1.2, 0.5, 0.5, 0.8).reshape(2, 2)
THREE = tensor(1, 0.4, -0.2, 0.4, 1.5, 0.3, -0.2, 0.3, 0.8).reshape(3, 3)
SMOOTH = {  # φ; φ″, φ‴, drift 11, 12, 22 with c = 1/E φ_s² and with c = 1, c at s = 10
    "tanh": ("tanh", 0, -2, (-0.48, 0, 0.32), (-2.88, -1, -1.28), 1.019839),
    "silu": (silu, 1, 0, (0.18, -0.01, -0.12), (1.08, 0.365, 0.48), 0.992617),
    "mixed": (mixed, 1, -2, (-0.30, -0.01, 0.20), (-1.8, -0.635, -0.8), 1.012580),
}


def test_digits_of_shaped_relu() -> None:
    one = ShapedReLU(0, -1)
    rho = tensor(-1, -0.5, 0, 0.3, 0.7, 0.9, 0.99)
    expected = [0.5, 0.304499, 0.159155, 0.0913721, 0.0250452, 0.00476920, 0.000150128]
    np.testing.assert_allclose(one.nu(rho).numpy(), expected, rtol=4e-6)
    assert one.slopes(100) == pytest.approx((1, 0.9))
    assert one.normaliser(100) == pytest.approx(1.104972, rel=1e-6)
    at = tensor(0.3)
    assert float(100 * (one.kernel(at, 100) - at)) == pytest.approx(0.100964, rel=1e-5)
    assert float(100 * (ShapedReLU(0.5, -0.5).kernel(at, 100) - at)) == pytest.approx(0.0911443, rel=1e-5)
    assert float(one.drift(V)[0, 1]) == pytest.approx(0.0517237, rel=1e-5)
    assert float(ShapedReLU(1, -1).drift_flow(V, 0.1)[0, 1]) == pytest.approx(0.520689, rel=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_digits_of_smooth_activations(name: str) -> None:
    phi, second, third, drift, plain, c = SMOOTH[name]
    one = ShapedSmooth(phi, 1.0)
    assert (one.second, one.third) == pytest.approx((second, third), abs=1e-12)
    for shaping, expected in ((one, drift), (ShapedSmooth(phi, 1.0, normalised=False), plain)):
        found = shaping.drift(V)
        np.testing.assert_allclose([found[0, 0], found[0, 1], found[1, 1]], expected, atol=1e-12)
    assert one.normaliser(100) == pytest.approx(c, rel=1e-6)
    assert one.growth == pytest.approx(0.75 * second**2 + third)


def test_digits_of_a_drift_map() -> None:
    found = ShapedSmooth(mixed, 1.0).drift_map(THREE, 0.05)
    upper = [found[0, 0], found[0, 1], found[0, 2], found[1, 1], found[1, 2], found[2, 2]]
    np.testing.assert_allclose(upper, [1.003113, 0.399982, -0.182866, 1.464145, 0.303019, 0.811670], atol=6e-7)


@pytest.mark.parametrize("shaping", [ShapedReLU(1, -1), ShapedSmooth("tanh"), ShapedSmooth(silu, 0.7)], ids=str)
def test_drift_flows_follow_the_drift_and_keep_the_cone(shaping: ShapedReLU | ShapedSmooth) -> None:
    small = 1e-6
    np.testing.assert_allclose((shaping.drift_flow(THREE, small) - THREE) / small, shaping.drift(THREE), atol=1e-5)
    singular = torch.outer(tensor(1.0, -2.0, 0.5), tensor(1.0, -2.0, 0.5))
    for matrix in (THREE, singular):
        for step in (0.01, 0.3, 0.9):
            assert float(torch.linalg.eigvalsh(shaping.drift_flow(matrix, step))[0]) > -1e-12 * float(
                matrix.diagonal().max()
            )


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(("size", "rtol"), [(0.01, 1e-3), (1.0, 1e-3), (30.0, 3e-3), (3000.0, 0.01)])
def test_drift_flows_solve_the_differential_equation(name: str, normalised: bool, size: float, rtol: float) -> None:
    """Against SciPy's Runge-Kutta, for covariances of any size."""
    shaping, time = ShapedSmooth(SMOOTH[name][0], 1.0, normalised=normalised), 0.005
    start = size * THREE

    def rate(_t: float, flat: np.ndarray) -> np.ndarray:
        return shaping.drift(torch.from_numpy(flat.reshape(3, 3).copy())).numpy().ravel()

    if (
        1.5 * size * shaping.growth * time > 0.9
    ):  # it explodes: the identity times a large number, for the caller to stop at
        assert float(torch.linalg.eigvalsh(shaping.drift_flow(start, time))[0]) > 1e100
        return
    solved = solve_ivp(rate, (0, time), start.numpy().ravel(), rtol=1e-10, atol=1e-12, method="LSODA").y[:, -1]
    found, expected = shaping.drift_flow(start, time).numpy(), solved.reshape(3, 3)
    np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=1e-6)
    root = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(root, root), expected / np.outer(root, root), atol=rtol)


@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_drift_flows_of_long_times(size: float) -> None:
    """Inputs that grow to their rest within one step, with correlations that move on the way; and what has come to rest."""
    shaping, start = ShapedSmooth(mixed), size * THREE

    def rate(_t: float, flat: np.ndarray) -> np.ndarray:
        return shaping.drift(torch.from_numpy(flat.reshape(3, 3).copy())).numpy().ravel()

    time = 16.0 if size < 1 else 4.0
    solved = solve_ivp(rate, (0, time), start.numpy().ravel(), rtol=1e-10, atol=1e-18, method="LSODA").y[:, -1]
    np.testing.assert_allclose(shaping.drift_flow(start, time).numpy(), solved.reshape(3, 3), atol=0.02)
    rest = shaping.drift_flow(start, 1e5)
    np.testing.assert_allclose(shaping.drift(rest), 0 * rest, atol=1e-4)


def test_the_kernel_of_a_finite_width_by_quadrature() -> None:
    """n(cE[φ_s φ_s] − V) by a product Gauss-Hermite rule: published digits at n = 100, and the drift for large n."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    L = np.linalg.cholesky(V.numpy())
    z1 = L[0, 0] * nodes[:, None] + 0 * nodes[None, :]
    z2 = L[1, 0] * nodes[:, None] + L[1, 1] * nodes[None, :]
    mass = np.outer(weights, weights)
    digits = {
        "tanh": (-0.460738, -0.00180319, 0.310486),
        "silu": (0.175448, -0.00926623, -0.117351),
        "mixed": (-0.299390, -0.00696024, 0.200196),
    }
    for name, expected in digits.items():
        for n, wanted, error in ((100, expected, 2e-6), (10**5, SMOOTH[name][3], 1e-4)):
            one = ShapedSmooth(SMOOTH[name][0])
            h1, h2 = (one.apply_(torch.from_numpy(z.copy()), n).numpy() for z in (z1, z2))
            c = one.normaliser(n)
            found = [n * (c * (mass * x * y).sum() - v) for x, y, v in ((h1, h1, 1.2), (h1, h2, 0.5), (h2, h2, 0.8))]
            np.testing.assert_allclose(found, wanted, atol=error)


@pytest.mark.parametrize("shaping", [ShapedReLU(1, -1), ShapedSmooth("tanh"), ShapedSmooth(mixed)], ids=str)
def test_drift_and_diffusion_are_those_of_one_layer(shaping: ShapedReLU | ShapedSmooth) -> None:
    """Mean and covariance of n increments of one layer of width n, by simulation, against drift and diffusion."""
    n, samples = 200, 60_000
    dV = sample_network(V, 1, n, shaping, samples, seed=1) - V
    entries = torch.stack([dV[:, 0, 0], dV[:, 0, 1], dV[:, 1, 1]])
    drift = shaping.drift(V, n)
    expected = np.array([drift[0, 0], drift[0, 1], drift[1, 1]])
    error = n * entries.std(dim=1).numpy() / samples**0.5
    # beyond the noise, of order n^(−½) for the drift of shaped ReLU and 1/n else
    assert bool((np.abs(n * entries.mean(dim=1).numpy() - expected) < 4 * error + 0.03).all())
    covariance = n * torch.cov(entries).numpy()
    sigma = np.array([[2.88, 1.2, 0.5], [1.2, 1.21, 0.8], [0.5, 0.8, 1.28]])  # V^{αγ}V^{βδ} + V^{αδ}V^{βγ}
    np.testing.assert_allclose(covariance, sigma, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_excess_variance_of_a_layer(name: str) -> None:
    """n Var(V′/V) − 2 by a Gauss-Hermite rule, to first order in 1/n; for ReLU in closed form."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights, n, v, one = weights / weights.sum(), 10**4, 1.7, ShapedSmooth(SMOOTH[name][0])
    squares = one.apply_(torch.from_numpy(nodes * v**0.5), n).numpy() ** 2
    relative = (weights @ squares**2) / (weights @ squares) ** 2 - 1
    found = float(one.excess(tensor(v).reshape(1, 1), n))
    assert relative - 2 == pytest.approx(found, rel=0.02, abs=1e-6)
    relu = ShapedReLU(1, -1)
    positive, negative = relu.slopes(50)
    fourth, second = 1.5 * (positive**4 + negative**4), (positive**2 + negative**2) / 2
    assert float(relu.excess(tensor(1.0).reshape(1, 1), 50)) == pytest.approx(fourth / second**2 - 3, rel=1e-12)


def test_the_angle_defect_keeps_its_digits() -> None:
    theta = tensor(1e-6, 1e-4, 9.99e-3, 1.01e-2, 1.0, math.pi)
    expected = [3.3333333333e-19, 3.33333333e-13]
    np.testing.assert_allclose(angle_defect(theta)[:2], expected, rtol=1e-8)
    np.testing.assert_allclose(angle_defect(theta)[4:], [math.sin(1) - math.cos(1), math.pi], rtol=1e-14)
    left, right = angle_defect(theta)[2:4] / theta[2:4] ** 3
    assert float(left) == pytest.approx(float(right), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShapedReLU(math.nan, 0), "c_plus: nan is not allowed"),
        (lambda: ShapedReLU(0, "a"), "c_minus: 'a' is not allowed"),
        (lambda: ShapedSmooth("sigmoid"), r"phi: φ\(0\) = 0\.5 is not allowed"),
        (lambda: ShapedSmooth("erf"), r"phi: φ′\(0\) = 1\.128 is not allowed"),
        (lambda: ShapedSmooth("tanh", 0.0), r"a: 0\.0 is not allowed"),
        (lambda: ShapedReLU(10, -10).drift_flow(V, 0.5), r"step: a drift of 0\.5 is not allowed; give at most 0\.01"),
        (lambda: ShapedReLU(1, -1).normaliser(0), "width: 0 is not allowed"),
        (lambda: ShapedSmooth("tanh").normaliser(-1), "width: -1 is not allowed"),
        (lambda: ShapedReLU(-2, -2).normaliser(4), "width: 4 is not allowed; both slopes are zero"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
