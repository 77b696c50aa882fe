"""The full report and its pieces against the naive route, the bare product XWᵀ and public truncated SVDs."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest
import torch
from naive import dense_gradient, report
from scipy.linalg import qr as scipy_qr
from scipy.linalg import svdvals as scipy_svdvals
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

import gradrank as gr

SIZES = {
    "(750, 1000, 1250) float64": (750, 1000, 1250, "float64", 6.0, 5.0, 1e-5, 25),
    "(3000, 4000, 5000) float32": (3000, 4000, 5000, "float32", 30.0, 2.2, 5e-5, 9),
}


class Case:
    """One size with its draw; what several benchmarks share is computed once."""

    def __init__(self, name: str) -> None:
        n, d, m, dtype, self.over_naive, self.over_product, self.accuracy, self.rounds = SIZES[name]
        self.name, self.large = name, n > 1000
        problem = gr.Problem(inputs=gr.SpikedGaussian(n=n, d=d), network=gr.TwoLayer(m=m), dtype=dtype)
        self.draw = problem.draw(0)
        self.reference: torch.Tensor | None = None
        self.gradient = gr.decompose(self.fresh()).gradient

    def fresh(self) -> gr.Draw:
        """Return the draw with nothing formed: no X, no XWᵀ, no residue."""
        return replace(self.draw, inputs=replace(self.draw.inputs))


@pytest.fixture(scope="session", params=list(SIZES))
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def full_report(draw: gr.Draw) -> tuple[gr.Spectrum, dict[str, float]]:
    parts = gr.decompose(draw)
    spectrum = parts.leading(10)
    norms = parts.norms()
    parts.alignments()
    return spectrum, norms


def test_full_report(case: Case, clock: Callable, ledger) -> None:
    """Time the report and the bare product in turn, so that a busy spell of the machine falls on both."""
    products: list[float] = []

    def fresh_draw() -> tuple[tuple[gr.Draw], dict]:
        X, W = case.draw.X, case.draw.network.W
        begin = perf_counter()
        X @ W.T
        products.append(perf_counter() - begin)
        return (case.fresh(),), {}

    spectrum, norms = clock(f"report {case.name}", full_report, setup=fresh_draw, rounds=case.rounds)
    assert spectrum.converged
    case.spectrum, case.norms = spectrum, norms
    seconds = ledger.seconds[f"report {case.name}"]
    product = ledger.seconds[f"product {case.name}"] = median(products)
    ledger.row(case.name, "product XWᵀ", f"{1e3 * product:.0f} ms")
    ledger.row(
        case.name,
        "full report (X, XWᵀ, all norms, top 10 with vectors, alignments) over XWᵀ",
        f"{seconds / product:.2f} × ({1e3 * seconds:.0f} ms)",
        f"at most {case.over_product} ×",
    )


def test_naive_report(case: Case, clock: Callable, ledger) -> None:
    mu = gr.decompose(case.fresh()).mean_derivative.value
    values, norms = clock(f"naive {case.name}", lambda: report(case.fresh(), mu), rounds=1 if case.large else 3)
    case.reference = values
    ratio = ledger.seconds[f"naive {case.name}"] / ledger.seconds[f"report {case.name}"]
    ledger.row(case.name, "naive route over full report", f"{ratio:.1f} ×", f"at least {case.over_naive:.0f} ×")
    error = float(((case.spectrum.values - values[:10]) / values[:10]).abs().max())
    ledger.row(case.name, "largest relative error of the top 10", f"{error:.1e}", f"at most {case.accuracy:.0e}")
    worst = max(abs(case.norms[name] / norm - 1) for name, norm in norms.items())
    ledger.row(case.name, "largest relative difference of the parts' norms", f"{worst:.1e}")


def test_shares(case: Case, clock: Callable, ledger) -> None:
    clock(
        f"shares {case.name}", lambda parts: parts.shares(), setup=lambda: ((gr.decompose(case.fresh()),), {}), rounds=3
    )
    ratio = ledger.seconds[f"shares {case.name}"] / ledger.seconds[f"product {case.name}"]
    ledger.row(case.name, "shares of ‖G‖_F² (exact; not in the full report) over XWᵀ", f"{ratio:.2f} ×")


PEERS = {
    "gradrank top(10), G kept as factors": lambda case, G: case.gradient.top(10).values.numpy(),
    "scikit-learn randomized_svd, dense G": lambda case, G: randomized_svd(G.numpy(), 10, random_state=0)[1],
    "SciPy svds (ARPACK), dense G": lambda case, G: svds(G.numpy(), k=10, random_state=0)[1][::-1],
    "torch.svd_lowrank (q = 20, niter = 2), dense G": lambda case, G: torch.svd_lowrank(G, q=20, niter=2)[1][
        :10
    ].numpy(),
    "torch.svd_lowrank (q = 20, niter = 8), dense G": lambda case, G: torch.svd_lowrank(G, q=20, niter=8)[1][
        :10
    ].numpy(),
}


@pytest.mark.parametrize("peer", PEERS)
def test_top_ten(case: Case, clock: Callable, ledger, peer: str) -> None:
    G = dense_gradient(case.fresh()).contiguous()
    values = clock(f"{peer} {case.name}", lambda: PEERS[peer](case, G), rounds=3)
    exact = case.reference[:10].numpy()
    error = abs((values.copy() - exact) / exact).max()
    seconds = ledger.seconds[f"{peer} {case.name}"]
    ours = ledger.seconds[f"{next(iter(PEERS))} {case.name}"]
    ledger.row(case.name, peer, f"{seconds / ours:.2f} × ({1e3 * seconds:.0f} ms), error {error:.1e}")


def test_full_spectrum(case: Case, clock: Callable, ledger) -> None:
    values = clock(f"spectrum {case.name}", lambda: case.gradient.singular_values(), rounds=1 if case.large else 5)
    case.all_values = values


def test_dense_spectrum(case: Case, clock: Callable, ledger) -> None:
    G = case.gradient
    exact = clock(f"svdvals {case.name}", lambda: torch.linalg.svdvals(G.X.T @ G.signal), rounds=1 if case.large else 5)
    ratio = ledger.seconds[f"svdvals {case.name}"] / ledger.seconds[f"spectrum {case.name}"]
    error = float((case.all_values - exact).abs().max() / exact[0])
    ledger.row(
        case.name, "forming G and torch.linalg.svdvals(G) over singular_values()", f"{ratio:.2f} ×", "at least 1.5 ×"
    )
    wanted = "" if case.large else "at most 1e-10"
    ledger.row(case.name, "largest difference of all singular values, over σ₁", f"{error:.1e}", wanted)


DENSE = {
    "QR, R only, of a 1000 × 750 matrix": (
        lambda A: torch.linalg.qr(A, mode="r"),
        lambda A: scipy_qr(A.numpy(), mode="r", check_finite=False),
        (1000, 750),
    ),
    "singular values of a 750 × 750 matrix": (
        torch.linalg.svdvals,
        lambda A: scipy_svdvals(A.numpy(), check_finite=False),
        (750, 750),
    ),
    "SVD of a 150 × 150 matrix": (
        torch.linalg.svd,
        lambda A: __import__("scipy.linalg").linalg.svd(A.numpy(), check_finite=False),
        (150, 150),
    ),
}


@pytest.mark.parametrize("library", ["torch", "SciPy"])
@pytest.mark.parametrize("problem", DENSE)
def test_dense_libraries(clock: Callable, ledger, problem: str, library: str) -> None:
    by_torch, by_scipy, shape = DENSE[problem]
    A = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    call = by_torch if library == "torch" else by_scipy
    clock(f"{problem} {library}", lambda: call(A), rounds=7)
    if library == "SciPy":
        ratio = ledger.seconds[f"{problem} SciPy"] / ledger.seconds[f"{problem} torch"]
        ledger.row("Dense factorisations, float64", f"{problem}: SciPy over torch.linalg", f"{ratio:.2f} ×")


def test_memory(clock: Callable, ledger) -> None:
    script = Path(__file__).with_name("memory.py")
    run = clock(
        "memory", lambda: subprocess.run([sys.executable, script], capture_output=True, text=True, check=True), rounds=1
    )
    ledger.row(
        "Memory, (3000, 4000, 5000) float32",
        "growth after the draw, over the bytes of X, W and one n × m array",
        f"{float(run.stdout):.2f} ×",
        "at most 1.3 ×",
    )
