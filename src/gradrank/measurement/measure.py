"""`measure`: draw a problem, decompose its gradient, and collect the numbers with their status."""

import math
import platform
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.gradient.decomposition import Decomposition, decompose
from gradrank.gradient.regime import Regime, regime
from gradrank.gradient.residue_alignment import draw_beta
from gradrank.linalg.spectrum import Spectrum
from gradrank.measurement.ensemble import Ensemble
from gradrank.measurement.predictions import NOT_ASKED_FOR, Predictions, not_asked_for, predictions
from gradrank.measurement.record import Measurement
from gradrank.problem.draw import Draw
from gradrank.problem.problem import Problem
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.version import __version__

FULL_SPECTRUM_LIMIT = 2000  # min(n, d, m) up to which all singular values are computed by default
PREDICTION_LIMIT = 2000  # n up to which the spectrum is predicted by default
SPECTRA = ("auto", "full", "top")
PREDICTION = ("auto", "on", "off")
RECONSTRUCTION_LIMIT = {torch.float64: 1e-12, torch.float32: 1e-5}


def measure(
    problem: Problem,
    seed: int = 0,
    *,
    k: int = 10,
    split: str = "auto",
    centring: str = "auto",
    spectrum: str = "auto",
    prediction: str = "auto",
    device: str = "cpu",
) -> Measurement:
    """Measure the spikes of one draw: norms, shares, singular values, alignments, β and the theory's regime.

    Parameters
    ----------
    problem, seed
        What is drawn.
    k
        Leading singular triplets.
    split, centring
        See `decompose`.
    spectrum
        "full" computes all singular values, "top" the k leading ones; "auto" is full up to min(n, d, m) = 2000.
    prediction
        "on" predicts the spectrum, counts the spikes and estimates the exponents (`Predictions`), "off" does not; "auto" does
        for full spectra up to n = 2000.
    device
        "cpu" or "cuda".

    Raises
    ------
    InputError
        If a field, a file or an option cannot be used.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem: a {type(problem).__name__} is not allowed; give a Problem")
    if spectrum not in SPECTRA:
        raise unusable("spectrum", spectrum, allowed_names(str(spectrum), SPECTRA))
    if prediction not in PREDICTION:
        raise unusable("prediction", prediction, allowed_names(str(prediction), PREDICTION))
    _count("k", k, 1)
    begin = time.perf_counter()
    draw = problem.draw(seed, device=device)
    parts = decompose(draw, split=split, centring=centring)
    full = spectrum == "full" or (spectrum == "auto" and min(draw.shape) <= FULL_SPECTRUM_LIMIT)
    silent = ""
    if prediction == "off":
        silent = NOT_ASKED_FOR
    elif prediction == "auto" and not (full and draw.shape[0] <= PREDICTION_LIMIT):
        silent = f"left out for a leading spectrum and above n = {PREDICTION_LIMIT}; ask for it with prediction = on"
    return _collect(problem, draw, parts, k, full, silent, begin)


def _collect(
    problem: Problem, draw: Draw, parts: Decomposition, k: int, full: bool, silent: str, begin: float
) -> Measurement:
    """Return the numbers of a decomposed draw as one record; without predictions if there is a reason to be ``silent``."""
    leading = parts.leading(k)
    norms = parts.norms()
    if not all(map(math.isfinite, norms.values())):
        raise InputError(
            "problem: the gradient is not finite; give smaller inputs, a smaller scaling or another activation"
        )
    values = parts.gradient.singular_values() if full else leading.values
    cosines = parts.alignments(k=k)
    beta, beta_status = draw_beta(parts.split, draw.residue)
    theory = not_asked_for(silent) if silent else predictions(draw, values)
    expected = _expected(problem, theory)
    shares = parts.shares() or {}
    described, unwritable = problem.with_digest().describe()
    status = _status(parts, norms, leading, beta_status, expected) | theory.status
    if unwritable:
        status["problem"] = "; ".join(unwritable)
    return Measurement(
        problem=problem.with_digest(),
        description=described,
        seed=draw.seed,
        shape=draw.shape,
        norms=norms,
        shares=shares,
        singular_values=_array(values),
        full_spectrum=full,
        left_vectors=_array(leading.left),
        right_vectors=_array(leading.right),
        residuals=_array(leading.residuals),
        converged=leading.converged,
        left_alignments={name: _array(value) for name, value in cosines.left.items()},
        right_alignments={name: _array(value) for name, value in cosines.right.items()},
        part_alignments={
            name: {"left": left, "right": right} for name, (left, right) in parts.part_alignments().items()
        },
        chance={"left": cosines.chance_left, "right": cosines.chance_right},
        beta=math.nan if beta is None else beta,
        regime=expected,
        spectrum_prediction=theory.spectrum,
        prediction_curve=theory.curve,
        spikes=theory.spikes,
        exponents=theory.exponents,
        reconstruction_error=parts.reconstruction_error,
        split={"kind": parts.split.kind, "strength": parts.split.strength},
        centring={"kind": parts.mean_derivative.kind, "error": parts.mean_derivative.error},
        seconds=time.perf_counter() - begin,
        environment=_environment(draw),
        status=status,
    )


def _expected(problem: Problem, theory: Predictions) -> Regime:
    """Return the regime; for data whose exponents are not part of the problem, by the estimated ones."""
    known = isinstance(problem.inputs, SpikedGaussian)
    if known or theory.nu is None or theory.alpha is None:
        return regime(problem)
    return regime(problem, nu=theory.nu, alpha=theory.alpha)


def measure_many(
    problem: Problem,
    seeds: int,
    *,
    first_seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
    **options: object,
) -> Ensemble:
    """Measure ``seeds`` draws and keep means with standard errors; ``options`` are those of `measure`."""
    _count("seeds", seeds, 2)

    def one_by_one() -> Iterator[Measurement]:
        for index in range(seeds):
            yield measure(problem, first_seed + index, **options)  # type: ignore[arg-type]
            if on_progress is not None:
                on_progress(index + 1)

    return Ensemble.of(one_by_one())


def _count(field: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise unusable(field, value, f"give a whole number of at least {least}")


def _status(
    parts: Decomposition, norms: dict[str, float], leading: Spectrum, beta_status: str, expected: Regime
) -> dict[str, str]:
    """Return what is withheld or doubtful, and why."""
    status = {}
    dtype = parts.gradient.dtype
    rounding = 100 * torch.finfo(dtype).eps * max(norms.values())
    if norms["gradient"] == 0.0:
        status["gradient"] = "zero"
        status["shares"] = "the gradient is zero"
        status["alignments"] = "the gradient is zero: its singular vectors are arbitrary"
        status["part_alignments"] = "the gradient is zero: its singular vectors are arbitrary"
    elif not parts.shares():
        status["shares"] = "the squares of the gradient are beyond float64"
    if norms["gradient"] > 0.0 and 0.0 in norms.values():
        status["part_alignments"] = "a part is zero and has no direction"
    if norms["remainder"] <= rounding:
        status["ratios"] = "the remainder is zero to rounding"
    if beta_status != "ok":
        status["beta"] = beta_status
    if expected.status != "ok":
        status["regime"] = expected.status
    if not leading.converged:
        status["singular_values"] = leading.status
    if not parts.reconstruction_error <= RECONSTRUCTION_LIMIT[dtype]:
        status["reconstruction_error"] = (
            f"above {RECONSTRUCTION_LIMIT[dtype]:g}: the parts cancel, their norms are less accurate"
        )
    if not parts.split.has_spike:
        status["split"] = "the inputs have no spike: the interpolant and the data spike are zero"
    return status


def _array(tensor: torch.Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.detach().cpu().numpy()


def _environment(draw: Draw) -> dict[str, str]:
    return {
        "gradrank": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": str(draw.y.device),
        "dtype": str(draw.y.dtype).removeprefix("torch."),
        "threads": str(torch.get_num_threads()),
    }
