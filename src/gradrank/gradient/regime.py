"""`regime`: which spike should dominate, and by which theorem (LRG, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from gradrank.foundation.errors import InputError
from gradrank.problem.activations import activation
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import MultiIndex


@dataclass(frozen=True)
class Condition:
    """One condition of the theory with its verdict; ``holds`` is None where the exponents cannot tell."""

    text: str
    holds: bool | None
    required: bool = False  # without it there is no prediction


@dataclass(frozen=True)
class Regime:
    """The prediction of the theory for the leading part of the gradient at initialisation."""

    dominant: str | None  # "residue_spike", "interpolant", "data_spike", "both", or None where no theorem applies
    rank: int | None  # of the leading part
    theorem: str
    conditions: tuple[Condition, ...]
    nu: float | None
    alpha: float | None
    beta: float | None
    beta_source: str
    status: str = "ok"  # or the reason why there is no prediction


def regime(
    problem: Problem, *, beta: float | None = None, nu: float | None = None, alpha: float | None = None
) -> Regime:
    """Return which spike the theory expects to dominate, from the exponents alone; nothing is drawn.

    * ν < ½ (Theorem 3.1: σ′ Lipschitz, W independent of X, 2ν + α < 1 so that the remainder is negligible): below ν = ¼
      the gradient is S₁ + S₁₂, of rank one; it is S₁ for β > 2ν + α and S₁₂ for β < 2ν. From ¼ on it is S₁ + S₁₂ + S₂,
      of rank two, where S₂ stands above the remainder.
    * ν ≥ ½ (Theorem 3.2, no smoothness or independence needed): rank one along q for ν > β/2.
    * Proposition 3.1 (ReLU): for 2ν > 1 − α with rows of W on the sphere the remainder and S₂ grow and hide S₁.

    Where two parts are of one order the answer is "both". The statements hold as n grows; at a finite size the norms
    themselves decide.

    Parameters
    ----------
    problem
        The problem; ν and α are read from `SpikedGaussian` inputs.
    beta
        Residue alignment exponent. Left out, it is taken by counting orders: E[z r] = ζ qᵀE∇r with qᵀb ~ d^(−½) for random
        directions gives β = max(0, 1 − 2ν); targets or weights aligned with q give 0.
    nu, alpha
        Exponents of data that are not synthetic.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem: a {type(problem).__name__} is not allowed; give a Problem")
    inputs = problem.inputs
    if isinstance(inputs, SpikedGaussian):
        if not inputs.has_spike:
            return _without_spike(problem, inputs.alpha if alpha is None else alpha)
        nu, alpha = inputs.nu if nu is None else nu, inputs.alpha if alpha is None else alpha
    if nu is None or alpha is None:
        reason = "the exponents of real data are not part of the problem; give nu and alpha"
        return Regime(None, None, "none", (), nu, alpha, beta, "not known", reason)
    source = "given"
    if beta is None:
        beta, source = _expected_beta(problem, nu), "orders of magnitude for these directions"
    conditions = (*_required(problem, nu, alpha), *_assumptions(problem, nu, alpha))
    if nu >= 0.5:
        dominant, rank, theorem = _large_spike(nu, beta)
        conditions += (Condition("ν > β/2 (Theorem 3.2)", nu > beta / 2),)
    else:
        dominant, rank, theorem = _small_spike(nu, alpha, beta)
        conditions += (
            Condition("β > 2ν + α: S₁ over S₁₂", beta > 2 * nu + alpha),
            Condition("β < 2ν: S₁₂ over S₁", beta < 2 * nu),
        )
    return _verdict(dominant, rank, theorem, conditions, nu, alpha, beta, source)


def _verdict(
    dominant: str,
    rank: int | None,
    theorem: str,
    conditions: tuple[Condition, ...],
    nu: float | None,
    alpha: float,
    beta: float | None,
    source: str,
) -> Regime:
    """Return the prediction, or none with the reason where a required condition fails."""
    failed = [condition.text for condition in conditions if condition.required and condition.holds is False]
    if failed:
        status = f"the theorem needs {'; '.join(failed)}"
        return Regime(None, None, "none", conditions, nu, alpha, beta, source, status)
    return Regime(dominant, rank, theorem, conditions, nu, alpha, beta, source)


def _large_spike(nu: float, beta: float) -> tuple[str, int | None, str]:
    if nu > beta / 2:
        return "data_spike", 1, "Theorem 3.2"
    return "both", None, "rule of thumb"


def _small_spike(nu: float, alpha: float, beta: float) -> tuple[str, int, str]:
    if nu >= 0.25:
        return "both", 2, "Theorem 3.1, ¼ ≤ ν < ½"
    if beta > 2 * nu + alpha:
        return "residue_spike", 1, "Theorem 3.1, ν < ¼"
    if beta < 2 * nu:
        return "interpolant", 1, "Theorem 3.1, ν < ¼"
    return "both", 1, "Theorem 3.1, ν < ¼"


def _without_spike(problem: Problem, alpha: float) -> Regime:
    """Return the regime of inputs that have no spike: S₁ is the only candidate."""
    conditions = (*_required(problem, 0.0, alpha), *_assumptions(problem, None, alpha))
    return _verdict("residue_spike", 1, "Theorem 3.1 without a spike", conditions, None, alpha, None, "no spike")


def _expected_beta(problem: Problem, nu: float) -> float:
    """Return β by counting orders of magnitude; see `regime`."""
    targets = problem.targets
    aligned = isinstance(targets, MultiIndex) and "aligned" in targets.directions and targets.cosine != 0
    if aligned or problem.network.inner == "aligned":
        return 0.0
    return max(0.0, 1.0 - 2.0 * nu)


def _required(problem: Problem, nu: float, alpha: float) -> tuple[Condition, ...]:
    """Return the conditions without which the theorem of this ν says nothing."""
    sigma, inner = activation(problem.network.activation), problem.network.inner
    if nu >= 0.5:
        if not (sigma.bounded and inner == "aligned"):
            return ()
        # All neurons saturate along q together: S₁₂ and S₂ cancel, and u₁ need not follow q.
        return (
            Condition(
                "μ_j = Ω(1): w_jᵀΣw_j grows as n^(2ν−½) for weights aligned with q (assumption 4.3)", False, True
            ),
        )
    smooth = True if sigma.smooth else None if sigma.formula == "given by the user" else False
    return (
        Condition("σ twice differentiable almost everywhere, σ′ Lipschitz (Theorem 3.1)", smooth, True),
        Condition("W independent of X (Theorem 3.1)", None if inner == "given" else inner != "data", True),
        Condition("2ν + α < 1: the remainder is negligible (Theorem 3.1, ‖W‖ of order one)", 2 * nu + alpha < 1, True),
    )


def _assumptions(problem: Problem, nu: float | None, alpha: float) -> tuple[Condition, ...]:
    """Return the standing assumptions; a prediction that needs more than holds is doubtful, and says so."""
    sigma, inner, regularisers = activation(problem.network.activation), problem.network.inner, problem.regularisers
    conditions = []
    n, d = (problem.inputs.n, problem.inputs.d) if isinstance(problem.inputs, SpikedGaussian) else (None, None)
    if n is not None and d is not None:
        conditions.append(Condition("n < d (ψ₁ < 1)", n < d))
    if sigma.bounded and nu is not None:
        bounded = _bounded_variance(inner, nu, alpha)
        conditions.append(Condition("w_jᵀΣw_j = O(1), so that μ_j = Ω(1) (assumption 4.3)", bounded))
    if sigma.name == "relu" and nu is not None:
        hidden = 2 * nu > 1 - alpha and inner in ("sphere", "gaussian")
        conditions.append(Condition("2ν ≤ 1 − α: ReLU does not hide S₁ (Proposition 3.1)", not hidden))
    if regularisers.jacobian > 0:
        conditions.append(Condition("the Jacobian penalty is small: its data spike grows with λ (section 4)", None))
    if regularisers.input_noise > 0:
        conditions.append(Condition("the input noise is weak: S₂ and S₁₂ sink as it grows (section 4)", None))
    if regularisers.weight_decay > 0:
        conditions.append(Condition("λ‖W‖ = o(√m γ): weight decay hides neither spike (section 4)", None))
    return tuple(conditions)


def _bounded_variance(inner: str, nu: float, alpha: float) -> bool | None:
    """Return whether ζ²(w_jᵀq)² = O(1): w_jᵀq is 0, of order n^(−1/4), ζ/√(tr Σ̂ + ζ²) or n^(−1/2) by the choice of W."""
    if inner == "given":
        return None
    thresholds = {"orthogonal": float("inf"), "aligned": 0.25, "data": max(0.0, 1.0 - alpha) / 4}
    return nu <= thresholds.get(inner, 0.5)
