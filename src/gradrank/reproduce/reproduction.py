"""`Reproduction`: a figure as experiments, a plot and claims; and how one is run and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray
from matplotlib.figure import Figure

from gradrank.experiments.cluster import Where
from gradrank.experiments.experiment import Experiment
from gradrank.experiments.provenance import provenance
from gradrank.experiments.run import Progress, run
from gradrank.experiments.store import Store
from gradrank.report.claims import Claim, claims_table
from gradrank.report.figures import pdf, png
from gradrank.report.page import Page, Picture, Section
from gradrank.reproduce.sources import PAPERS

Data = Mapping[str, xarray.Dataset]  # experiment -> its results


def fixed_of(results: xarray.Dataset) -> dict[str, Any]:
    """Return the arguments that all cells of an experiment shared."""
    return dict(json.loads(results.attrs["specification"])["fixed"])


@dataclass(frozen=True)
class Plot:
    """A figure with its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Reproduction:
    """One figure: what is computed for it, how it is drawn, and what it claims."""

    name: str
    title: str
    shows: str  # one line for the list
    cost: str  # of the quick and of the full version, on two cores
    setting: str  # a paragraph: sizes, data, choices of ours
    experiments: Callable[[bool], Mapping[str, Experiment]]  # quick -> name -> experiment
    draw: Callable[[Data], Mapping[str, Plot]]
    claims: Callable[[Data], Sequence[Claim]]


@dataclass(frozen=True)
class Reproduced:
    """A figure that was reproduced, in its folder."""

    name: str
    folder: Path
    claims: tuple[Claim, ...]
    missing: int  # cells that failed

    @property
    def holds(self) -> bool:
        """Whether every cell was computed and every claim holds."""
        return self.missing == 0 and all(claim.holds for claim in self.claims)


def reproduce(
    one: Reproduction,
    folder: str | Path,
    *,
    quick: bool = False,
    where: Where | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Reproduced:
    """Compute what the figure needs, draw it and check its claims; stopped and called again, it goes on.

    The folder holds a store for each experiment, the figures as PNG and PDF, ``claims.json``, and ``index.html``.

    Raises
    ------
    InputError
        If the folder holds the results of another version of the figure (the quick one, say).
    StorageError, ClusterError, Interrupted
        As `run`.
    IncompleteError
        If every cell of an experiment failed.
    """
    target = Path(folder)
    experiments = one.experiments(quick)
    missing, data = 0, {}
    for name, experiment in experiments.items():
        path = target / f"{name}.zarr"
        seen = None if on_progress is None else (lambda progress, name=name: on_progress(name, progress))
        outcome = run(experiment, path, where, seen)
        if len(outcome.failed) == outcome.total:
            outcome.check()
        missing += len(outcome.failed)
        data[name] = Store.existing(path).load()
    plots, claims = one.draw(data), tuple(one.claims(data))
    for name, plot in plots.items():
        (target / f"{name}.png").write_bytes(png(plot.figure))
        (target / f"{name}.pdf").write_bytes(pdf(plot.figure))
    body = {
        "schema": "gradrank.claims/1",
        "figure": one.name,
        "quick": quick,
        "holds": all(claim.holds for claim in claims) and missing == 0,
        "cells_missing": missing,
        "claims": [claim.to_dict() for claim in claims],
        "provenance": provenance(),
    }
    (target / "claims.json").write_text(
        json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )
    (target / "index.html").write_text(_page(one, quick, experiments, plots, claims, missing), encoding="utf-8")
    return Reproduced(one.name, target, claims, missing)


def _page(
    one: Reproduction,
    quick: bool,
    experiments: Mapping[str, Experiment],
    plots: Mapping[str, Plot],
    claims: Sequence[Claim],
    missing: int,
) -> str:
    held = sum(claim.holds for claim in claims)
    version = "quick version: smaller, for a first look" if quick else "full version: the paper's size"
    notes = [one.setting] + ([f"{missing} cells failed and are missing here."] if missing else [])
    sections = [
        Section("Figure", notes, pictures=[Picture(png(plot.figure), plot.caption) for plot in plots.values()]),
        Section(f"Claims: {held} of {len(claims)} hold", tables=[claims_table(claims, "What the figure says, checked")]),
        Section("Parameters", code=_written({name: e.specification() for name, e in experiments.items()})),
        Section("How to cite", [citation(claims)]),
    ]  # fmt: skip
    return Page(one.title, f"gradrank reproduce {one.name}{' --quick' if quick else ''} — {version}", sections).html()


def citation(claims: Sequence[Claim]) -> str:
    """Return what to cite: gradrank, and the papers that the claims name."""
    papers = [paper for paper in PAPERS if any(paper in claim.source for claim in claims)]
    return "Cite gradrank (CITATION.cff of the repository)" + "".join(f"; {paper}" for paper in papers) + "."


def _written(body: Mapping[str, object]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)
