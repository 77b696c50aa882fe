"""`count_spikes`: how many singular values stand above the noise, by which null and at which level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from gradrank.foundation.errors import ConvergenceError, InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.gradient.spectrum_prediction import SpectrumPrediction, predict_spectrum
from gradrank.linalg.factored import Factored
from gradrank.linalg.noise_nulls import distance_from_noise, largest_of_noise, rank_deficient, shape_of_noise
from gradrank.linalg.operators import Dense, Operator
from gradrank.linalg.product_null import product_null
from gradrank.linalg.spectrum import Spectrum
from gradrank.problem.draw import Draw

NULLS = ("auto", "law", "factored", "iid")
SMALLEST = 20  # side of a matrix; see `count_spikes`
FIRST, MOST = 6, 96  # singular values looked at; more spikes than half the smaller side, or than 96, are no low rank
FIT, FIT_PER_VALUE = (
    0.005,
    6.0,
)  # largest distance of the bulk from its law: 5/M is the most seen in 1500 noise matrices
SHAPE = 1e-4  # p-value of the shape of the bulk below which the entries are not i.i.d.

LAW = (
    "columns of the gradient independent given inputs and residue (neurons drawn independently of the data); "
    "bulk edge predicted from the data, Tracy-Widom fluctuations by "
)
FACTORED = (
    "the bulks of inputs and signals are in general position (X replaced by OX, O a random rotation of the samples); "
    "outliers of either factor and dependence between them count as spikes; Tracy-Widom fluctuations"
)
IID = "entries of low rank plus independent noise of one variance; Tracy-Widom fluctuations"


@dataclass(frozen=True, eq=False)
class SpikeCount:
    """The number of singular values above a null's noise, with what it rests on."""

    count: int | None  # None where withheld, with the reason in ``status``
    null: str  # "law", "factored", "iid", or "none" where no null is right
    level: float  # probability of a false alarm in noise alone
    p_values: tuple[float, ...]  # of the spikes in descending order, and of the first that is none
    singular_values: tuple[float, ...]  # of the spikes
    edge: float | None  # upper edge of the noise, in units of the singular values
    assumption: str
    status: str = "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        return {
            "count": self.count,
            "null": self.null,
            "level": self.level,
            "p_values": list(self.p_values),
            "singular_values": list(self.singular_values),
            "edge": self.edge,
            "assumption": self.assumption,
            "status": self.status,
        }


def count_spikes(
    G: ArrayLike | torch.Tensor | Operator | Draw | Decomposition,
    *,
    null: str = "auto",
    level: float = 0.01,
    draw: Draw | None = None,
    prediction: SpectrumPrediction | None = None,
    values: Spectrum | ArrayLike | torch.Tensor | None = None,
    seed: int = 0,
) -> SpikeCount:
    """Count the singular values that stand above noise, each with its p-value under a named null.

    The largest singular value is tested, then the next with the larger ones taken as spikes, until one has a p-value above
    ``level``. In noise alone a spike is reported with probability ``level``, asymptotically. The nulls:

    * "law" (default for a draw of a two-layer network): the largest singular value of the bulk predicted by
      `predict_spectrum`. Where the prediction declines, as for trained weights, "auto" turns to "factored" and says so.
    * "factored" (default for G = XᵀΔ): the bulks of X and of Δ, with nothing to do with each other; see
      `gradrank.linalg.product_null.product_null`. A spike is an outlier of X or of Δ that survives in G, or an alignment
      between the two. Dependence of the bulks counts too: where σ′ is close to linear, Δ holds RXWᵀ, the edge is up to a
      fifth too low, and values that the law would call bulk are reported (more than 10 for ELU and Softplus).
    * "iid" (default for a matrix): noise of i.i.d. entries; see `gradrank.linalg.noise_nulls.largest_of_noise`. After k
      spikes the rest is taken as an (N − k)×(M − k) noise.

    Withheld, with the reason: for fewer than 20 rows, columns or samples (at 20×20 the level of 1 % is 1.1 %, at 10×10
    1.3 %); by "law" where the predicted bulk has fewer than 20 values, as for a gradient of low rank, or its edge is not
    known; by "iid" for a matrix that is rank deficient to its precision, or whose bulk is not Marchenko and Pastur's (a
    product of noises is not; correlations of neighbouring rows or columns are seen by `shape_of_noise` from 0.15 on at
    1000×100, but at 200×100 not always those of 0.3: what passes may count as spikes); for zeros; for entries that are not
    finite; for more than 96 spikes, or half the smaller side.

    Parameters
    ----------
    G
        A matrix (d, m), an operator, a draw, or a decomposition, which is taken as its gradient, or as its draw if that is
        given.
    null, level
        Which null, and the probability of a false alarm.
    draw
        What a decomposition is of.
    prediction, values
        What is already known of a draw: its prediction, and singular values in descending order. With ``values`` only these are
        looked at.
    seed
        Of the prediction, where columns are simulated.

    Raises
    ------
    InputError
        If an argument cannot be used, or the null cannot be had for this kind of G.
    """
    if null not in NULLS:
        raise unusable("null", null, allowed_names(str(null), NULLS))
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise unusable("level", level, "give a probability between 0 and 1")
    if draw is not None and not isinstance(draw, Draw):
        raise InputError(f"draw: a {type(draw).__name__} is not allowed; give what problem.draw(seed) returns")
    known = None if values is None else _known(values)
    subject = draw if isinstance(G, Decomposition) and draw is not None else G
    _check_known(G, subject, prediction, known)
    if isinstance(subject, Draw):
        if null in ("auto", "law"):
            return _by_law(G, subject, null, level, prediction, known, seed)
    elif null == "law":
        raise unusable("null", null, f"a {type(G).__name__} has no predicted law; give a draw")
    operator = _gradient(G)
    if isinstance(operator, Factored) and null != "iid":
        return _by_factors(operator, level, known)
    if null == "factored":
        raise unusable("null", null, f"a {type(operator).__name__} has no factors; give XᵀΔ as a FactoredGradient")
    return _by_entries(operator, level)


def _check_known(G: object, subject: object, prediction: object, known: Spectrum | None) -> None:
    """Refuse what is said to be known of another gradient, or of one that has no use for it."""
    shape = subject.shape if isinstance(subject, Draw) else None
    if isinstance(G, Decomposition) and shape is not None and tuple(G.gradient.shape) != shape[1:]:
        raise InputError(f"draw: its (n, d, m) = {shape} is not that of the decomposition, {tuple(G.gradient.shape)}")
    if prediction is not None and not isinstance(prediction, SpectrumPrediction):
        raise InputError(
            f"prediction: a {type(prediction).__name__} is not allowed; give what predict_spectrum returns"
        )
    if prediction is not None and shape is None:
        raise InputError(f"prediction: is not used for a {type(G).__name__}; give it with a draw only")
    if prediction is not None and prediction.shape != shape:
        raise InputError(f"prediction: is for (n, d, m) = {prediction.shape}; give that of the draw, {shape}")
    if known is not None and shape is None and not isinstance(_gradient(G), Factored):
        raise InputError(f"values: are not used for a {type(G).__name__}; leave them out")


def _by_law(
    G: object,
    draw: Draw,
    null: str,
    level: float,
    prediction: SpectrumPrediction | None,
    known: Spectrum | None,
    seed: int,
) -> SpikeCount:
    """Count against the predicted law, or explain why there is none."""
    if min(draw.shape) < SMALLEST:
        return _withheld(
            "law", level, LAW + "Silverstein's law", f"a side of (n, d, m) = {draw.shape} is below {SMALLEST}"
        )
    reason = ""
    if prediction is None:
        try:
            prediction = predict_spectrum(draw, seed=seed)
        except (InputError, ConvergenceError) as error:
            reason = str(error)
    if prediction is not None:
        rests_on, edge = LAW + prediction.method, prediction.upper_edge
        if prediction.edge_doubt:
            return _withheld("law", level, rests_on, prediction.edge_doubt)
        leading = _leading(lambda: _gradient(G), known)
        return _sequence("law", level, rests_on, leading, prediction.edge_p_value, edge, min(draw.shape))
    if null == "law":
        return _withheld("law", level, LAW + "Silverstein's law", reason)
    gradient = _gradient(G)
    if not isinstance(gradient, Factored):
        return _withheld("none", level, "", f"{reason}; and weight decay adds a term that is no product of the factors")
    found = _by_factors(gradient, level, known)
    return replace(found, assumption=f"{found.assumption} (no predicted law: {reason})")


def _by_factors(gradient: Factored, level: float, known: Spectrum | None) -> SpikeCount:
    """Count against the two bulks in general position."""
    sides = (gradient.samples, *gradient.shape)
    if min(sides) < SMALLEST:
        return _withheld("factored", level, FACTORED, f"a side of (n, d, m) = {sides} is below {SMALLEST}")
    reason = _unusable_entries(gradient)
    if reason:
        return _withheld("factored", level, FACTORED, reason)
    law = product_null(gradient.X, gradient.signal)
    if law.rank < SMALLEST:
        reason = f"the bulk of inputs or signals has rank {law.rank}, below {SMALLEST}"
        return _withheld("factored", level, FACTORED, reason)
    return _sequence(
        "factored", level, FACTORED, _leading(lambda: gradient, known), law.p_value, law.upper_edge, min(sides)
    )


def _by_entries(operator: Operator, level: float) -> SpikeCount:
    """Count against noise of i.i.d. entries."""
    M, N = sorted(operator.shape)
    if M < SMALLEST:
        return _withheld("iid", level, IID, f"a side of {tuple(operator.shape)} is below {SMALLEST}")
    reason = _unusable_entries(operator)
    if reason:
        return _withheld("iid", level, IID, reason)
    unit = operator.magnitude()
    matrix = operator.dense()
    rounding = float(torch.finfo(matrix.dtype).eps)
    # In float64 and at the scale of one, the squares below are in range and as accurate as the entries.
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    values = torch.linalg.svdvals(tall.double() / unit).cpu().numpy()
    p_values: list[float] = []
    for k in range(min(MOST, M // 2) + 1):
        test = largest_of_noise(values[k:], N - k)
        if k == 0 and rank_deficient(values, N, test.scale, rounding):
            return _withheld("iid", level, IID, f"the rank is below {M} to the precision of the entries")
        p_values.append(test.p_value)
        if not test.p_value <= level:
            break
    else:
        return _withheld("iid", level, IID, f"more than {k} singular values above the edge: this is no low rank")
    shape = shape_of_noise(values[k:], N - k)
    if shape < SHAPE:
        reason = f"the bulk is not that of i.i.d. entries: the shape of its lower part has p = {shape:.1e}"
        return _withheld("iid", level, IID, reason)
    distance = distance_from_noise(values[k:], N - k, test.scale)
    if distance > FIT + FIT_PER_VALUE / M:
        reason = f"the bulk is not that of i.i.d. entries: its distribution is off by {distance:.3f}"
        return _withheld("iid", level, IID, reason)
    return SpikeCount(
        k, "iid", level, tuple(p_values), tuple(float(v) * unit for v in values[:k]), test.edge * unit, IID
    )


def _sequence(
    null: str,
    level: float,
    assumption: str,
    leading: Callable[[int], Spectrum],
    p_value: Callable[[float], float],
    edge: float,
    side: int,
) -> SpikeCount:
    """Test the leading values one after another against a law whose bulk does not depend on them."""
    most = min(MOST, side // 2)
    wanted, p_values = min(FIRST, most), list[float]()
    while True:
        spectrum = leading(wanted)
        if not spectrum.converged:
            return _withheld(null, level, assumption, f"singular values: {spectrum.status}")
        values = spectrum.values.double().cpu().numpy()
        for value in values[len(p_values) : most + 1]:
            p_values.append(p_value(float(value)))
            if not p_values[-1] <= level:
                count = len(p_values) - 1
                spikes = tuple(float(value) for value in values[:count])
                return SpikeCount(count, null, level, tuple(p_values), spikes, edge, assumption)
        if len(values) > most:
            reason = f"more than {most} singular values above the edge: the bulk is not that of this null"
            return _withheld(null, level, assumption, reason)
        if len(values) < wanted:
            return _withheld(null, level, assumption, f"all {len(values)} given singular values are spikes; give more")
        wanted = min(2 * wanted, most + 1)


def _leading(gradient: Callable[[], Operator], known: Spectrum | None) -> Callable[[int], Spectrum]:
    """Return a function of k that gives the k largest singular values, or all known ones."""
    return lambda k: gradient().top(k, vectors=False) if known is None else known


def _withheld(null: str, level: float, assumption: str, reason: str) -> SpikeCount:
    return SpikeCount(None, null, level, (), (), None, assumption, f"withheld: {reason}")


def _unusable_entries(operator: Operator) -> str:
    """Return why nothing can be counted, or an empty string."""
    size = operator.magnitude()
    if not math.isfinite(size):
        return "an entry is NaN or infinite"
    return "the matrix is zero" if size == 0.0 else ""


def _gradient(G: object) -> Operator:
    """Return what is to be looked at as an operator, checked."""
    if isinstance(G, Draw):
        return decompose(G).gradient
    if isinstance(G, Decomposition):
        return G.gradient
    if isinstance(G, Operator):
        return G
    try:
        matrix = G.detach().to_dense() if isinstance(G, torch.Tensor) else torch.as_tensor(np.asarray(G))
    except (TypeError, ValueError):
        what = f"a {type(G).__name__} of no real numbers"
        raise InputError(f"G: {what} is not allowed; give a matrix, an operator, a draw or a decomposition") from None
    if matrix.ndim != 2 or matrix.numel() == 0 or matrix.dtype == torch.bool or matrix.is_complex():
        raise unusable("G", f"{matrix.dtype} of shape {tuple(matrix.shape)}", "give a real matrix (d, m)")
    return Dense(matrix.detach() if matrix.is_floating_point() else matrix.double())


def _known(values: Spectrum | ArrayLike | torch.Tensor) -> Spectrum:
    """Return known singular values as a spectrum, checked."""
    if isinstance(values, Spectrum):
        return values
    try:
        array = torch.as_tensor(values).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        raise InputError("values: give finite singular values in descending order") from None
    if array.ndim != 1 or not array.numel() or not bool(torch.isfinite(array).all() and (array.diff() <= 0).all()):
        raise InputError("values: give finite singular values in descending order")
    return Spectrum(array, None, None, None, True, "given")
