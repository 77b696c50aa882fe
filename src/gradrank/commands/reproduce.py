"""`gradrank reproduce`: the papers' figures, with their claims checked."""

from __future__ import annotations

import time
from pathlib import Path

from gradrank.commands.sweep import progress_bar
from gradrank.experiments.cluster import Where, shared
from gradrank.foundation.errors import IncompleteError, InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.measurement.terminal import console
from gradrank.report.claims import claims_table
from gradrank.report.tables import Table
from gradrank.reproduce.catalogue import CATALOGUE
from gradrank.reproduce.low_rank.fig8 import fig8
from gradrank.reproduce.reproduction import Reproduced, Reproduction, reproduce


def list_reproductions() -> None:
    """Print a line for every figure."""
    to = console()
    rows = [[one.name, one.shows, one.cost] for one in CATALOGUE.values()]
    to.print(Table("", ["name", "what it shows", "quick | full"], rows).rich(fold=True))


def reproduce_command(
    figure: str | None,
    output: Path,
    where: Where,
    *,
    quick: bool,
    mnist: Path | None = None,
    embeddings: str | None = None,
) -> None:
    """Reproduce one figure, or all, each in a folder of its own; ``mnist`` and ``embeddings`` as `fig8` takes them.

    Raises
    ------
    InputError
        If there is no such figure, or figure 8's data are not there or given for another figure.
    IncompleteError
        If a claim does not hold or a cell failed; the others are done first.
    """
    if figure is None:
        raise InputError(f"figure: is missing; give one of {', '.join(CATALOGUE)}, or all")
    if figure != "all" and figure not in CATALOGUE:
        raise unusable("figure", figure, allowed_names(figure, [*CATALOGUE, "all"]))
    chosen = list(CATALOGUE.values()) if figure == "all" else [CATALOGUE[figure]]
    if mnist is not None or embeddings is not None:
        if figure not in ("all", "fig8"):
            raise InputError("mnist, embeddings: are data for fig8; give them with fig8 or all")
        own = fig8(mnist, embeddings)
        chosen = [own if one.name == own.name else one for one in chosen]
    if len(chosen) == 1:
        done = [_one(chosen[0], output / chosen[0].name, where, quick)]
    else:
        threads = max(part.threads for one in chosen for part in one.experiments(quick).values())
        with shared(where, threads) as pool:
            done = [_one(one, output / one.name, pool, quick) for one in chosen]
    failing = [one.name for one in done if not one.holds]
    if len(done) > 1:
        held = sum(claim.holds for one in done for claim in one.claims)
        console().print(f"\n{held} of {sum(len(one.claims) for one in done)} claims hold in {len(done)} figures")
    if failing:
        raise IncompleteError(f"not everything holds in {', '.join(failing)}; see claims.json and index.html there")


def _one(one: Reproduction, folder: Path, where: Where, quick: bool) -> Reproduced:
    start = time.perf_counter()
    with progress_bar(one.name) as show:
        found = reproduce(one, folder, quick=quick, where=where, on_progress=lambda _, status: show(status))
    held = sum(claim.holds for claim in found.claims)
    to = console()
    to.print(
        f"{one.name}: {held} of {len(found.claims)} claims hold, {time.perf_counter() - start:.0f} s: {folder / 'index.html'}",
        soft_wrap=True,
    )
    failing = [claim for claim in found.claims if not claim.holds]
    if failing:
        to.print(claims_table(failing, "not borne out").rich(fold=True))
    return found
