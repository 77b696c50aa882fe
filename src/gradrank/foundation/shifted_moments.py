"""Second moments of Σ_p aₚᵢ fₚ(κ tᵢ + sᵢ u) over samples i, one matrix for each value κ of a common variable."""

from collections.abc import Sequence

import torch

from gradrank.foundation.gaussian_kernels import SAME
from gradrank.foundation.shifted_kernel import hermite_coefficients
from gradrank.foundation.smoothing import Function

TERMS = (16, 32, 64, 128, 192)


class ShiftedMoments:
    """E h(i) h(k), h(i) = Σ_p aₚᵢ fₚ(κ tᵢ + sᵢ uᵢ), uᵢ standard normal of correlations ρ_ik, for given κ and weights a.

    With c_l(κ, i) = Σ_p aₚᵢ E fₚ(κ tᵢ + sᵢ u) h_l(u), h_l the normalised Hermite polynomials, the matrix is
    Σ_l ρ_ik^l c_l(κ, i) c_l(κ, k). The coefficients of all κ are computed at once, the (n, n) matrices one by one.

    Parameters
    ----------
    functions
        Pairs (fₚ, breaks of fₚ), elementwise functions of a float64 tensor.
    t, s
        Loading on the common variable and standard deviation of the rest, each of shape (n,).
    rho
        Correlations of the rest, shape (n, n).
    kappa
        Values of the common variable, shape (J,).
    tolerance
        Terms are doubled, up to 192, until the remainder is below this relative to the largest E fₚ².
    """

    def __init__(
        self,
        functions: Sequence[tuple[Function, Sequence[float]]],
        t: torch.Tensor,
        s: torch.Tensor,
        rho: torch.Tensor,
        kappa: torch.Tensor,
        tolerance: float = 1e-5,
    ) -> None:
        self._rho = rho.clamp(-1.0, 1.0)
        same = (rho >= 1 - SAME) & ((s[:, None] - s).abs() <= SAME * s) & ((t[:, None] - t).abs() <= SAME * t.abs())
        self._same = same.fill_diagonal_(True)
        self._exact = {
            (p, q): _product_mean(functions[p], functions[q], t, s, kappa)
            for p in range(len(functions))
            for q in range(p, len(functions))
        }
        apart = self._rho.abs().masked_fill(self._same, 0.0)
        size = [max(float(self._exact[p, p].max()), 1e-300) for p in range(len(functions))]
        self._series = [torch.empty(0, len(t), len(kappa), dtype=torch.float64) for _ in functions]
        self.error = float("inf")  # largest off-diagonal remainder of E fₚ f_q, relative to the largest √(E fₚ² E f_q²)
        for terms in TERMS:
            remainders = []
            for p, (f, breaks) in enumerate(functions):
                new = hermite_coefficients(f, breaks, t, s, kappa, len(self._series[p]), terms)
                self._series[p] = torch.cat([self._series[p], new])
                left = (self._exact[p, p] - self._series[p].square().sum(dim=0)).amax(dim=1).clamp(min=0)
                remainders.append(torch.sqrt(left / size[p]))
            power = apart**terms
            self.error = max(float((power * a[:, None] * b).max()) for a in remainders for b in remainders)
            if self.error <= tolerance:
                break

    def matrix(self, index: int, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the (n, n) matrix for κ number ``index`` and the weights aₚ, each of shape (n,)."""
        combined = sum(a * series[:, :, index] for a, series in zip(weights, self._series, strict=True))
        assert isinstance(combined, torch.Tensor)
        value = torch.zeros_like(self._rho)
        for c in reversed(combined.unbind()):  # Horner's scheme in ρ
            value.mul_(self._rho).addr_(c, c)
        exact = torch.zeros_like(weights[0])
        for (p, q), mean in self._exact.items():
            exact += weights[p] * weights[q] * mean[:, index] * (1.0 if p == q else 2.0)
        return torch.where(self._same, (exact[:, None] + exact) / 2, value)


def _product_mean(
    first: tuple[Function, Sequence[float]],
    second: tuple[Function, Sequence[float]],
    t: torch.Tensor,
    s: torch.Tensor,
    kappa: torch.Tensor,
) -> torch.Tensor:
    """Return E f(κ tᵢ + sᵢ u) g(κ tᵢ + sᵢ u), shape (n, J), by quadrature."""
    (f, breaks_f), (g, breaks_g) = first, second
    both = tuple(dict.fromkeys([*breaks_f, *breaks_g]))
    return hermite_coefficients(lambda x: f(x) * g(x), both, t, s, kappa, 0, 1)[0]
