"""`decompose`: the gradient as an exact sum of named parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property

import torch

from gradrank.foundation.errors import InputError
from gradrank.gradient.alignments import Alignments, alignments, cosines
from gradrank.gradient.centring import MeanDerivative, mean_derivative
from gradrank.gradient.directions import left_directions
from gradrank.gradient.factored_gradient import FactoredGradient, backpropagated_signal, jacobian_signal
from gradrank.gradient.remainder import Remainder
from gradrank.gradient.split import SpikeSplit, spike_split
from gradrank.linalg.low_rank import LowRank
from gradrank.linalg.operators import Dense, Operator, Scaled, Sum
from gradrank.linalg.products import largest_entry
from gradrank.linalg.shared import shared_krylov
from gradrank.linalg.spectrum import Spectrum, certified
from gradrank.problem.draw import Draw

PROBES = 8
PROBE_SEED = 11


class Decomposition(Mapping[str, Operator]):
    """The gradient G (d, m) as an ordered mapping from a part's name to the part; the parts add up to G.

    Without regularisers (LRG, section 2), with c = γ r/n and ã = a∘μ:

    * ``residue_spike`` S₁ = (X_Bᵀc) ãᵀ
    * ``interpolant`` S₁₂ = ζ (zᵀc) q ãᵀ
    * ``data_spike`` S₂ = ζ q (Δᵀz − (zᵀc) ã)ᵀ
    * ``remainder`` E = X_Bᵀ(Δ − c ãᵀ)

    A Jacobian penalty adds ``jacobian_spike`` and ``jacobian_remainder``, weight decay adds ``weight_decay`` (section 4).
    """

    def __init__(
        self,
        parts: Mapping[str, Operator],
        gradient: Operator,
        split: SpikeSplit,
        mean: MeanDerivative,
        left_directions: Mapping[str, torch.Tensor],
        right_directions: Mapping[str, torch.Tensor],
    ) -> None:
        self._parts = dict(parts)
        self.gradient = gradient
        self.split = split
        self.mean_derivative = mean
        self.left_directions = dict(left_directions)
        self.right_directions = dict(right_directions)
        self._leading: Spectrum | None = None
        self._norms: dict[str, float] = {}

    def __getitem__(self, name: str) -> Operator:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def spikes(self) -> LowRank:
        """The sum of the rank-one parts, of rank two: everything along X_Bᵀr, and everything along q."""
        terms = [part for part in self.values() if isinstance(part, LowRank)]
        if not self.split.has_spike:
            return terms[0]
        q = self.split.direction
        along_q = sum(
            (part.right[:, 0] * (part.values[0] * (q @ part.left[:, 0])) for part in terms[1:]),
            start=torch.zeros_like(terms[0].right[:, 0]),
        )
        first, second = terms[0], LowRank.rank_one(q, along_q)
        return LowRank(
            torch.cat([first.left, second.left], dim=1),
            torch.cat([first.values, second.values]),
            torch.cat([first.right, second.right], dim=1),
        )

    def leading(self, k: int = 10) -> Spectrum:
        """Return the k largest singular triplets of the gradient, with residuals against the gradient itself.

        Where the remainder is the only part that is not of rank one, its norm comes out of the same iteration.
        """
        if self._leading is None or len(self._leading) < min(k, *self.gradient.shape):
            bulks = [name for name, part in self.items() if not isinstance(part, LowRank)]
            if bulks == ["remainder"] and self.gradient.magnitude() > 0.0:  # parts may cancel to a gradient of zeros
                spectrum, remainder = shared_krylov(self["remainder"], self.spikes, k)
                self._norms["remainder"] = float(remainder.values[0])
                self._leading = certified(spectrum, self.gradient)
            else:
                self._leading = self.gradient.top(k)
        return self._leading.first(k)

    def norms(self) -> dict[str, float]:
        """Return the spectral norm of the gradient and of every part; those of rank one are products of vector norms."""
        self._norms["gradient"] = float(self.leading(1 if self._leading is None else len(self._leading)).values[0])
        for name, part in self.items():
            if name not in self._norms:
                self._norms[name] = part.norm()
        return {name: self._norms[name] for name in ("gradient", *self)}

    @cached_property
    def frobenius_squared(self) -> float:
        """‖G‖_F²."""
        return self.gradient.frobenius_squared()

    def shares(self) -> dict[str, float] | None:
        """Return ⟨part, G⟩_F / ‖G‖_F² for every part, adding to one; None where ‖G‖_F² is zero or beyond float64.

        The share of the remainder is what the others leave, which is the same number since the parts add up to G.
        """
        whole = self.frobenius_squared
        if not 0.0 < whole < float("inf"):
            return None
        shares = {name: part.inner(self.gradient) / whole for name, part in self.items() if name != "remainder"}
        shares["remainder"] = 1.0 - sum(shares.values())
        return {name: shares[name] for name in self}

    @cached_property
    def reconstruction_error(self) -> float:
        """‖(G − Σ parts) Ω‖_F / ‖G Ω‖_F for 8 Gaussian probes Ω, an estimate of ‖G − Σ parts‖_F / ‖G‖_F.

        For a gradient of zeros: ‖(Σ parts) Ω‖_F over the largest entry of a part.
        """
        generator = torch.Generator().manual_seed(PROBE_SEED)
        probes = torch.randn(self.gradient.shape[1], PROBES, dtype=torch.float64, generator=generator)
        scale = self.gradient.magnitude() or max(part.magnitude() for part in self.values())
        if scale == 0.0:
            return 0.0
        probes = probes.to(dtype=self.gradient.dtype, device=self.gradient.device) / scale
        whole = self.gradient.matmat(probes).double()
        rebuilt = sum(part.matmat(probes).double() for part in self.values())
        size = float(torch.linalg.vector_norm(whole))
        error = float(torch.linalg.vector_norm(whole - rebuilt))
        return error / size if size > 0 else error

    def part_alignments(self) -> dict[str, tuple[float, float]]:
        """Return, for each rank-one part, the |cosines| of its vectors with u₁ and v₁ of the gradient; NaN if one is zero."""
        U, V = self._leading_vectors(1 if self._leading is None else len(self._leading))
        return {
            name: (float(cosines(U[:, :1], part.left[:, 0])), float(cosines(V[:, :1], part.right[:, 0])))
            if part.magnitude() > 0.0
            else (math.nan, math.nan)
            for name, part in self.items()
            if isinstance(part, LowRank)
        }

    def _leading_vectors(self, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the k leading singular vectors; NaN for a gradient of zeros, of which any vectors would do."""
        spectrum = self.leading(k)
        U, V = spectrum.vectors()
        return (U * math.nan, V * math.nan) if spectrum.status == "zero" else (U, V)

    def alignments(
        self, directions: Mapping[str, torch.Tensor] | None = None, k: int = 10, *, named: bool = True
    ) -> Alignments:
        """Return the cosines of the k leading singular vectors with the draw's named directions and any others given.

        Left: ``q``, ``bulk_residue`` X_Bᵀr, ``bulk_labels`` X_Bᵀy and the target directions; right: ``residue_right`` a∘μ
        and ``data_right``, the right vector of the data spike. ``directions`` are vectors of R^d.
        """
        left_vectors, right_vectors = self._leading_vectors(k)
        left = {**(self.left_directions if named else {}), **(directions or {})}
        return alignments(left_vectors, right_vectors, left, self.right_directions if named else {})


def decompose(draw: Draw, *, split: str = "auto", centring: str = "auto") -> Decomposition:
    """Decompose the gradient of a draw into its named parts (LRG, sections 2 and 4); exact for every choice.

    Parameters
    ----------
    draw
        From ``problem.draw(seed)``.
    split
        "oracle" (bulk and spike as drawn), "empirical" (from the first singular vector of X), or "auto": the oracle where
        the draw knows its spike.
    centring
        μ_j as the "population" expectation or the "empirical" mean over the samples; "auto" goes with the split.

    Raises
    ------
    InputError
        If a split or a centring is not possible for these data, or a number is not finite.
    """
    if not isinstance(draw, Draw):
        raise InputError(f"draw: a {type(draw).__name__} is not allowed; give what problem.draw(seed) returns")
    signal, sample_mean = backpropagated_signal(draw)
    if not largest_entry(signal) * largest_entry(draw.X) < float(torch.finfo(signal.dtype).max):
        name = str(signal.dtype).removeprefix("torch.")
        raise InputError(
            f"problem: the gradient is not finite in {name}; give smaller inputs or labels, a smaller scaling, "
            "another activation, or dtype = 'float64'"
        )
    spike = spike_split(draw, split)
    if centring == "auto":
        centring = "population" if spike.kind == "oracle" else "empirical"
    mean = mean_derivative(draw, centring, sample_mean)
    r, q, z = draw.residue, spike.direction, spike.scores
    c = r * (draw.network.gamma / len(r))
    a_mu = draw.network.a * mean.value
    score = float((z.double() @ c.double()).item())
    data_right = signal.T @ z - score * a_mu
    left = left_directions(draw, spike)
    parts: dict[str, Operator] = {
        "residue_spike": LowRank.rank_one(left["bulk_residue"], a_mu),
        "interpolant": LowRank.rank_one(q * (spike.strength * score), a_mu),
        "data_spike": LowRank.rank_one(q * spike.strength, data_right),
    }
    whole = signal
    if draw.regularisers.jacobian > 0:
        penalty = jacobian_signal(draw)
        parts["jacobian_spike"] = LowRank.rank_one(q * spike.strength, penalty.T @ z)
        parts["jacobian_remainder"] = Remainder(spike.bulk, penalty)
        whole = signal + penalty
    gradient: Operator = FactoredGradient(draw.X, whole)
    if draw.regularisers.weight_decay > 0:
        parts["weight_decay"] = Scaled(draw.regularisers.weight_decay, Dense(draw.network.W.T))
        gradient = Sum([gradient, parts["weight_decay"]])
    parts["remainder"] = Remainder(spike.bulk, signal, (c, a_mu))
    right = {"residue_right": a_mu} | ({"data_right": data_right} if spike.has_spike else {})
    return Decomposition(parts, gradient, spike, mean, left, right)
