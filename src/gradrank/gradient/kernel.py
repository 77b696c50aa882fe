"""The kernel Φ of the derivative, which carries the activation into the law of the gradient's singular values."""

import math

import torch

from gradrank.foundation.errors import ConvergenceError, InputError
from gradrank.foundation.gaussian_kernels import SAME, Kernel, gaussian_kernel
from gradrank.foundation.shifted_kernel import shifted_kernel
from gradrank.foundation.smoothing import find_breaks
from gradrank.problem.activations import LEAKY_SLOPE, Activation

MAX_SHIFTS = 3201


def derivative_kernel(X: torch.Tensor, activation: Activation, direction: torch.Tensor | None = None) -> Kernel:
    """Return Φ_ik = E_w[σ′(wᵀxᵢ) σ′(wᵀxₖ)], w ~ N(0, I/d) (docs/prediction.md, "Derivation").

    Φ depends on sᵢ = ‖xᵢ‖/√d and ρ_ik = xᵢᵀxₖ/(‖xᵢ‖‖xₖ‖). ReLU: ½ − arccos(ρ)/(2π); leaky ReLU from it; erf:
    (4/π)/√((1 + 2sᵢ²)(1 + 2sₖ²) − 4 sᵢ²sₖ²ρ²); the others by `gaussian_kernel`. Diagonal and duplicate rows have
    E σ′(s g)², rows of zeros σ′(0).

    Parameters
    ----------
    X
        Data, shape (n, d).
    activation
        The activation. One given by the user without breaks is searched for them.
    direction
        A direction q, shape (d,), of any length: Φ is then averaged over κ = wᵀq with Hermite series of the part
        orthogonal to q, an independent way to the same matrix that is fast only where one direction dominates.

    Raises
    ------
    InputError
        If X is not a finite matrix, or the direction has not its width or is zero.
    ConvergenceError
        If the accuracy is not reached.
    """
    X = _usable(X)
    if direction is not None:
        return _averaged(X, activation, direction)
    s, rho = scales_and_correlations(X)
    if activation.name in CLOSED_FORMS:
        return Kernel(CLOSED_FORMS[activation.name](s, rho), 1e-15, "closed form")
    breaks = breaks_of(activation, float(s.max()))
    return gaussian_kernel(activation.derivative, activation.derivative, breaks, breaks, s, rho)


def conditioned_kernel(
    X: torch.Tensor, activation: Activation, direction: torch.Tensor, kappa: torch.Tensor, weights: torch.Tensor
) -> Kernel:
    """Return Σ_j p_j Φ(κ_j), Φ(κ)_ik = E σ′(κ xᵢᵀq + w_⊥ᵀxᵢ) σ′(κ xₖᵀq + w_⊥ᵀxₖ) (docs/prediction.md, "A large spike").

    q is the direction scaled to unit length, κ_j = w_jᵀq (standard deviation 1/√d over neurons), w_⊥ the rest of w.
    One κ with weight 1 gives the kernel conditioned on it. Shapes: X (n, d), direction (d,), kappa and weights (J,).
    """
    X = _usable(X)
    t, s, rho = _split(X, direction)
    breaks = breaks_of(activation, float(s.max()) + float(kappa.abs().max() * t.abs().max()))
    sigma = activation.derivative
    return shifted_kernel(sigma, sigma, breaks, breaks, t, s, rho, kappa, weights)


def scales_and_correlations(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return s (n,) and ρ (n, n) of the rows in float64; ρ is 0 beside a row of zeros and 1 on the diagonal.

    Rows are scaled by their largest entry first, so that no square over- or underflows.
    """
    X = X.detach().to("cpu", torch.float64)
    largest = X.abs().amax(dim=1, keepdim=True) if X.shape[1] else torch.zeros(len(X), 1, dtype=torch.float64)
    unit = X / largest.masked_fill(largest == 0, 1.0)
    norm = unit.norm(dim=1, keepdim=True)
    unit = unit / norm.masked_fill(norm == 0, 1.0)
    rho = (unit @ unit.T).clamp_(-1.0, 1.0)
    rho[rho.abs() >= 1 - SAME] = rho[rho.abs() >= 1 - SAME].sign()
    rho.fill_diagonal_(1.0)
    return (norm * largest)[:, 0] / math.sqrt(max(1, X.shape[1])), rho


def _usable(X: torch.Tensor) -> torch.Tensor:
    if X.ndim != 2 or X.numel() == 0 or not bool(torch.isfinite(X).all()):
        raise InputError(f"derivative_kernel: X of shape {tuple(X.shape)}; a finite non-empty n × d matrix is needed")
    return X.detach().to("cpu", torch.float64)


def breaks_of(activation: Activation, largest: float) -> tuple[float, ...]:
    """Return the breaks of σ′; those of a user's activation are not known and looked for."""
    if activation.breaks or activation.smooth:
        return activation.breaks
    return find_breaks(activation.derivative, max(10.0, min(12 * largest, 200.0)))


def _split(X: torch.Tensor, direction: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return xᵢᵀq and the scales and correlations of the rows orthogonal to q."""
    q = direction.detach().to("cpu", torch.float64).reshape(-1)
    if len(q) != X.shape[1] or not float(q.norm()) > 0:
        raise InputError(f"derivative_kernel: direction of shape ({len(q)},); a non-zero one of {X.shape[1]} is needed")
    q = q / q.norm()
    t = X @ q
    s, rho = scales_and_correlations(X - t[:, None] * q)
    return t, s, rho


def _averaged(X: torch.Tensor, activation: Activation, direction: torch.Tensor, tolerance: float = 1e-7) -> Kernel:
    """Average over κ by the trapezoidal rule, which converges exponentially for a smooth Gaussian-weighted integrand.

    Its step follows the sharpest feature, of width s_⊥ / |t| in units of the standard deviation of κ, and is halved
    until the kernel no longer changes; Gauss-Hermite nodes (61 are 0.4 apart) miss features of width 1/15.
    """
    t, s, _ = _split(X, direction)
    loading = t / math.sqrt(X.shape[1])
    steepest = float((loading.abs() / s.clamp(min=0.1)).max())
    count = 2 * math.ceil(9.0 / (0.8 / max(1.6, steepest))) + 1
    before: Kernel | None = None
    while count <= MAX_SHIFTS:
        z = torch.linspace(-9.0, 9.0, count, dtype=torch.float64)
        weights = torch.exp(-(z**2) / 2) / torch.exp(-(z**2) / 2).sum()
        kernel = conditioned_kernel(X, activation, direction, z / math.sqrt(X.shape[1]), weights)
        if before is not None:
            change = float((kernel.value - before.value).abs().max() / kernel.value.diagonal().abs().max())
            if change <= tolerance:
                return Kernel(kernel.value, kernel.error + change, "Hermite series averaged over the direction")
        before, count = kernel, 2 * count - 1
    raise ConvergenceError(
        f"derivative_kernel: the average over the direction is not converged with {MAX_SHIFTS} nodes; "
        "leave the direction out"
    )


def _step_kernel(s: torch.Tensor, rho: torch.Tensor) -> torch.Tensor:
    """Return E[1(u > 0) 1(u′ > 0)] = ½ − arccos(ρ)/(2π); 1(0 > 0) = 0 for rows of zeros."""
    value = 0.5 - torch.arccos(rho) / (2 * math.pi)
    live = s > 0
    return value * (live[:, None] & live[None, :])


def _leaky_kernel(s: torch.Tensor, rho: torch.Tensor) -> torch.Tensor:
    """Return the kernel of a + (1 − a) 1(u > 0)."""
    a, mean = LEAKY_SLOPE, 0.5 * (s > 0)
    return a**2 + a * (1 - a) * (mean[:, None] + mean[None, :]) + (1 - a) ** 2 * _step_kernel(s, rho)


def _erf_kernel(s: torch.Tensor, rho: torch.Tensor) -> torch.Tensor:
    """Return (4/π) E exp(−x² − y²) = (4/π) / √det(I + 2C); det without cancellation where ρ is near ±1."""
    a, b = (s**2)[:, None], (s**2)[None, :]
    return (4 / math.pi) / torch.sqrt(1 + 2 * (a + b) + 4 * a * b * (1 - rho) * (1 + rho))


CLOSED_FORMS = {"relu": _step_kernel, "leaky_relu": _leaky_kernel, "erf": _erf_kernel}
