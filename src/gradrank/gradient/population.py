"""Gaussian calculus of the residue: r over one sample and over the random network and targets, without any data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from scipy.special import ndtri

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.random import stream
from gradrank.foundation.references import is_reference, resolve
from gradrank.foundation.shifted_kernel import hermite_coefficients
from gradrank.gradient.kernel import breaks_of
from gradrank.linalg.silverstein_equation import Reals
from gradrank.problem.activations import Activation, activation
from gradrank.problem.losses import loss
from gradrank.problem.network import TwoLayer
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import LINKS, MultiIndex

SAMPLES = (
    2048  # quasi-random samples of (z, bulk of f, bulk of the b_kᵀx, label noise), each taken with both signs of f's
)
NODES = 61  # of κ = wᵀq
REACH = 6.5  # standard deviations of κ
GRID = 801  # points at which smoothed derivatives are tabulated
DECLINED = {
    "data": "its rows depend on the data",
    "given": "given weights are not a population",
    "conv": "its rows repeat the filters and are not independent",
}


@dataclass(frozen=True, eq=False)
class Bulk:
    """The bulk's covariance Σ̂ with input noise, and how the spike direction lies in it."""

    clean: Reals  # (d,) eigenvalues that the labels see
    eigenvalues: Reals  # (d,) with the input noise
    along: tuple[float, float]  # qᵀΣ̂q and qᵀΣ̂²q, clean; of a random q their means
    noise: float  # τ² of the input noise

    @classmethod
    def of(cls, inputs: SpikedGaussian, noise: float) -> Bulk:
        """Read the covariance from the specification of the inputs."""
        clean = np.arange(1, inputs.d + 1, dtype=np.float64) ** -inputs.alpha
        squares = np.full(inputs.d, 1.0 / inputs.d)
        if inputs.direction == "eigenvector":
            squares = np.eye(1, inputs.d, inputs.eigenvector - 1)[0]
        elif not isinstance(inputs.direction, str) and inputs.basis == "canonical":
            vector = np.asarray(inputs.direction, dtype=np.float64)
            vector = vector / np.abs(vector).max()
            squares = vector**2 / (vector @ vector)
        along = (float(squares @ clean), float(squares @ clean**2))
        return cls(clean, clean + noise, along, noise)

    def variance(self, cosine: float, *, clean: bool = False) -> float:
        """Return uᵀΣ̂u averaged over unit vectors u with ⟨u, q⟩ = cosine."""
        d = len(self.clean)
        across = (float(self.clean.sum()) - self.along[0]) / max(1, d - 1)
        return (1 - cosine**2) * across + cosine**2 * self.along[0] + (0.0 if clean else self.noise)


@dataclass(frozen=True, eq=False)
class Neurons:
    """σ of a random neuron given κ = wᵀq at scores z: means over the bulk w_⊥ᵀx_B ~ N(0, s²); arrays (J, N) over κ and z.

    With t = κζz: S⁽ᵖ⁾ = E σ⁽ᵖ⁾(t + s g), by Stein's lemma S⁽²⁾ = E[g σ′]/s and S⁽³⁾ = E[(g² − 1) σ′]/s².
    """

    kappa: Reals  # (J,)
    share: Reals  # (J,) probabilities
    deviation: float  # s
    mean_slope: Reals  # (J,) μ = E σ′ over z too
    value: Reals  # S
    variance: Reals  # Var σ given z
    slope: Reals  # S⁽¹⁾
    second: Reals  # S⁽²⁾
    third: Reals  # S⁽³⁾
    slope_square: Reals  # E σ′²


class ResiduePopulation:
    """r = ∂ℓ/∂f(f, y) over samples, for each of several draws of the network and the target directions.

    Given the spike's score z, f(x) = F(z) + √V(z) g_f with F(z) = γ Σ_j a_j S(κ_jζz), V its variance over the bulk, and
    y = Σ_k link_k(β_kζz + τ_k g_k) + noise · ε, β_k = b_kᵀq. Over the draws, F is a Gaussian process of covariance
    γ²m E_κ S(κζz)S(κζz′) and √d β_k is standard normal. Taken as independent Gaussians: g_f and g_k (their correlations are
    O(d^(−½)), of random sign), and F, a sum over m neurons (corrections O(1/m)). Samples are quasi-random, draws come
    from a fixed stream with their second moments matched.

    Raises
    ------
    InputError
        If inputs, targets or the choice of W are not a population that this covers, or an expectation does not exist.
    """

    def __init__(self, problem: Problem, draws: int, seed: int) -> None:
        inputs, targets = _covered(problem)
        self.n, self.d, self.m = inputs.n, inputs.d, problem.network.m
        self.has_spike = inputs.has_spike
        self.strength = _strength(inputs)
        self.bulk = Bulk.of(inputs, problem.regularisers.input_noise)
        self.gamma = problem.network.gamma
        points = torch.quasirandom.SobolEngine(len(targets.links) + 3, scramble=True, seed=1).draw(  # type: ignore[no-untyped-call]
            SAMPLES, dtype=torch.float64
        )
        g = ndtri(points.numpy() * (1 - 1e-9) + 5e-10)
        g = np.concatenate([g, g])
        self.z, self.f_normal, self.target_normals = g[:, 0], g[:, 1], g[:, 3:]  # (N,), (N,), (N, K)
        self.f_normal[SAMPLES:] *= -1
        sigma = activation(problem.network.activation)
        kappa, share = _kappa_law(problem.network, self.n, self.d, self.has_spike)
        try:
            self.neurons = _neurons(sigma, kappa, share, self.bulk, self.strength, self.z)
        except ConvergenceError as error:
            raise InputError(
                f"network.activation: {sigma.name} has no finite expectations here ({error}); give another"
            ) from error
        rng = stream(seed, "norm_prediction")
        self.f_variance = self.gamma**2 * self.m * (share @ self.neurons.variance)  # (N,)
        xi = _matched(rng.standard_normal((draws, len(kappa)))) * np.sqrt(share)
        f = self.gamma * math.sqrt(self.m) * xi @ self.neurons.value + np.sqrt(self.f_variance) * self.f_normal
        self.cosines = _target_cosines(targets, draws, self.d, rng)  # (draws, K)
        self.target_deviations = np.array(
            [math.sqrt(self.bulk.variance(c, clean=True)) for c in np.sqrt((self.cosines**2).mean(axis=0))]
        )
        y = self._labels(targets, g[:, 2])
        residue = loss(problem.loss).residue(torch.from_numpy(f), torch.from_numpy(y))
        self.r: Reals = residue.detach().numpy()  # (draws, N)

    def _labels(self, targets: MultiIndex, epsilon: Reals) -> Reals:
        """Return y of every draw and sample, shape (draws, N)."""
        y = np.broadcast_to(targets.noise * epsilon, (len(self.cosines), len(self.z))).copy()
        strength = self.strength if targets.on == "inputs" else 0.0
        for k, name in enumerate(targets.links):
            link = resolve("targets.links", name) if is_reference(name) else LINKS[name]
            t = strength * np.outer(self.cosines[:, k], self.z) + self.target_deviations[k] * self.target_normals[:, k]
            y += link(torch.from_numpy(t)).numpy()
        return y

    def mean(self, values: Reals) -> Reals:
        """Return the mean over the samples, the last axis."""
        return np.asarray(values.mean(axis=-1))

    @cached_property
    def stein(self) -> tuple[Reals, Reals]:
        """Weights h with E[h φ] = E ∂φ/∂f, shape (N,), and E ∂φ/∂(b_kᵀx), shape (N, K), for any φ(r, z) (Stein 1981).

        No derivative of φ is needed: h = g_f/√V(z) and g_k/τ_k.
        """
        scale = np.sqrt(self.f_variance)
        by_f = np.divide(self.f_normal, scale, out=np.zeros_like(scale), where=scale > 0)
        return by_f, np.asarray(self.target_normals / self.target_deviations)

    @cached_property
    def slopes(self) -> tuple[Reals, Reals]:
        """E[x_B r] = Σ̂ Σ_j γ a_j c(κ_j) w_j + Σ̂ Σ_k c_k b_k: c(κ) = E[S⁽¹⁾(κζz) ∂r/∂f], c_k; shapes (draws, J), (draws, K)."""
        by_f, by_targets = self.stein
        N = len(self.z)
        return np.asarray((self.r * by_f) @ self.neurons.slope.T / N), np.asarray(self.r @ by_targets / N)

    @cached_property
    def component_variance(self) -> tuple[Reals, Reals]:
        """Variances of one component of v = E∇_x r, of the network's and of the targets' part, each (draws,)."""
        by_network, by_targets = self.slopes
        across = (by_targets**2 * (1.0 - self.fixed_cosines**2)).sum(axis=1)
        network = self.gamma**2 * self.m * (by_network**2 @ self.neurons.share)
        return network / self.d, across / self.d

    @cached_property
    def aligned_signal(self) -> Reals:
        """‖Σ̂ q‖² times the square of v's component along q that aligned target directions share, (draws,)."""
        _, by_targets = self.slopes
        return np.asarray((by_targets @ self.fixed_cosines) ** 2 * self.bulk.along[1])

    @cached_property
    def fixed_cosines(self) -> Reals:
        """⟨b_k, q⟩ of the directions for which it is stated, 0 for the random ones; shape (K,)."""
        fixed = self.cosines.std(axis=0) == 0.0
        return np.where(fixed, self.cosines[0], 0.0)


def _covered(problem: Problem) -> tuple[SpikedGaussian, MultiIndex]:
    """Return the inputs and targets, or say which part of the problem is not a known population."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: a {type(problem).__name__} is not allowed; give a Problem")
    inputs, targets, network = problem.inputs, problem.targets, problem.network
    if not isinstance(inputs, SpikedGaussian):
        raise InputError(
            "inputs: the population of real data is not known; give spiked Gaussian inputs, or decompose a draw"
        )
    if not isinstance(targets, MultiIndex):
        raise InputError("targets: the population of given labels is not known; give a multi-index target")
    if network.inner in DECLINED:
        raise InputError(
            f"network.inner: '{network.inner}' has no predicted norms, since {DECLINED[network.inner]}; "
            "give sphere, gaussian, aligned or orthogonal"
        )
    if not inputs.has_spike and set(targets.directions) != {"random"}:
        raise InputError("targets.directions: the inputs have no spike to refer to; give 'random'")
    return inputs, targets


def _strength(inputs: SpikedGaussian) -> float:
    """Return ζ = n^ν, or 0 where there is no spike."""
    if not inputs.has_spike:
        return 0.0
    try:
        return math.pow(inputs.n, inputs.nu)
    except OverflowError:
        raise InputError(f"inputs.nu: {inputs.nu} is not allowed; n^ν must be a finite number") from None


def _kappa_law(network: TwoLayer, n: int, d: int, has_spike: bool) -> tuple[Reals, Reals]:
    """Return nodes and probabilities of κ = wᵀq: of a uniform unit vector its density is (1 − κ²)^((d−3)/2)."""
    if network.inner == "orthogonal" or not has_spike:
        return np.zeros(1), np.ones(1)
    if network.inner == "gaussian":
        kappa = np.linspace(-REACH, REACH, NODES) / math.sqrt(d)
        weight = np.exp(-(kappa**2) * d / 2)
    else:
        reach = min(np.pi / 2 * (1 - 1e-9), REACH / math.sqrt(d))
        angle = np.linspace(-reach, reach, NODES)
        kappa, weight = np.sin(angle), np.cos(angle) ** (d - 2)
    if network.inner == "aligned":
        offset = n**-0.25
        kappa = (kappa + offset) / np.sqrt(1 + 2 * offset * kappa + offset**2)
    return kappa, weight / weight.sum()


def _target_cosines(targets: MultiIndex, draws: int, d: int, rng: np.random.Generator) -> Reals:
    """Return β_k = b_kᵀq of every draw, shape (draws, K)."""
    kinds = targets.directions if len(targets.directions) > 1 else targets.directions * len(targets.links)
    random = _matched(rng.standard_normal((draws, len(kinds)))) / math.sqrt(d)
    fixed = {"aligned": targets.cosine, "orthogonal": 0.0}
    return np.stack(
        [random[:, k] if kind == "random" else np.full(draws, fixed[kind]) for k, kind in enumerate(kinds)], 1
    )


def _matched(normal: Reals) -> Reals:
    """Scale every column to second moment one."""
    return np.asarray(normal / np.sqrt((normal**2).mean(axis=0)))


def _neurons(sigma: Activation, kappa: Reals, share: Reals, bulk: Bulk, strength: float, z: Reals) -> Neurons:
    """Tabulate the smoothed derivatives over t and read them off at κζz; raises ConvergenceError."""
    s = math.sqrt(bulk.variance(math.sqrt(float(share @ kappa**2))))
    largest = 1.02 * strength * float(np.abs(kappa).max()) * float(np.abs(z).max()) + 1e-3
    breaks = breaks_of(sigma, math.hypot(s, largest / REACH))
    scale = min(1.0, max(s, 0.05)) / 2  # t = κζz has its structure around 0, at the scale of σ or of the smoothing
    t = scale * np.sinh(np.linspace(-1, 1, GRID) * np.arcsinh(largest / scale))
    one = torch.ones(1, dtype=torch.float64)

    def coefficients(f: Callable[[torch.Tensor], torch.Tensor], orders: int) -> Reals:
        return hermite_coefficients(f, breaks, one, one * s, torch.from_numpy(t), 0, orders)[:, 0].numpy()

    argument = strength * np.outer(kappa, z)

    def at(values: Reals) -> Reals:
        return np.asarray(CubicSpline(t, values)(argument))

    value, (slope, first, second) = coefficients(sigma.value, 1)[0], coefficients(sigma.derivative, 3)
    S = at(value)
    mean_slope = sigma.expected_derivative(torch.from_numpy(np.sqrt(s**2 + (kappa * strength) ** 2))).value.numpy()
    return Neurons(
        kappa=kappa,
        share=share,
        deviation=s,
        mean_slope=mean_slope,
        value=S,
        variance=np.maximum(at(coefficients(lambda x: sigma.value(x) ** 2, 1)[0]) - S**2, 0.0),
        slope=at(slope),
        second=at(first / s),
        third=at(math.sqrt(2) * second / s**2),
        slope_square=at(coefficients(lambda x: sigma.derivative(x) ** 2, 1)[0]),
    )
