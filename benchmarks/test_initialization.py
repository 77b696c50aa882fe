"""Networks in law against networks with weights, and against the SDE; the memory of many samples."""

from collections.abc import Callable
from time import perf_counter

from gradrank.initialization import ShapedReLU, sample_network, sample_real_network, sample_sde

SECTION = "Networks at initialisation, width = depth = 200, two inputs"
START, SAMPLES, REAL = [[1.0, 0.3], [0.3, 1.0]], 10_000, 100


def test_networks_in_law(clock: Callable, ledger) -> None:
    """Time 10,000 samples in law, 100 with weights, and the SDE."""
    shaping = ShapedReLU(0, -1)
    clock("in law", lambda: sample_network(START, 200, 200, shaping, SAMPLES), rounds=1)
    begin = perf_counter()
    sample_real_network(START, 200, 200, shaping, REAL)
    real = (perf_counter() - begin) * SAMPLES / REAL
    begin = perf_counter()
    sample_sde(START, 1.0, shaping, SAMPLES)
    sde = perf_counter() - begin
    law = ledger.seconds["in law"]
    ledger.row(SECTION, "10,000 samples in law", f"{law:.1f} s")
    ledger.row(SECTION, "the same with weights, extrapolated from 100", f"{real / law:.0f} ×", "at least 50 ×")
    ledger.row(SECTION, "10,000 samples of the SDE, step 1/100", f"{sde:.2f} s")
