"""Collects the timings of one run and prints them as ratios; `make bench` writes them to RESULTS.md."""

import os
import platform
from pathlib import Path

import pytest
import torch

RESULTS = Path(__file__).with_name("RESULTS.md")
ROWS: dict[str, list[tuple[str, str, str]]] = {}


class Ledger:
    """Medians by name, and the rows of the table to print."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def row(self, section: str, what: str, measured: str, wanted: str = "") -> None:
        ROWS.setdefault(section, []).append((what, measured, wanted))


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def clock(benchmark, ledger):
    """Return a function that times a call and keeps its median under a name."""

    def time(name, function, *, rounds=5, setup=None):
        warmup = 1 if rounds > 1 else 0
        result = benchmark.pedantic(function, setup=setup, rounds=rounds, iterations=1, warmup_rounds=warmup)
        ledger.seconds[name] = benchmark.stats.stats.median
        return result

    return time


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the table, and write it with the machine's description."""
    if not ROWS:
        return
    lines = ["# Benchmarks", "", _machine(), ""]
    for section, rows in ROWS.items():
        lines += [f"## {section}", "", "| what | measured | wanted |", "|---|---|---|"]
        lines += [f"| {what} | {measured} | {wanted} |" for what, measured, wanted in rows] + [""]
    text = "\n".join(lines)
    terminalreporter.write("\n" + text)
    RESULTS.write_text(text, encoding="utf-8")


def _machine() -> str:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"Made by `make bench` on {os.cpu_count()} cores ({model}), {torch.get_num_threads()} threads, Python "
        f"{platform.python_version()}, torch {torch.__version__}. Medians of one run on a shared machine: only the ratios "
        "mean something."
    )
