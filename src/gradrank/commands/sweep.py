"""`gradrank sweep` and `gradrank report`: a grid of problems on workers, and figures of what it gave."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gradrank.experiments.cluster import Where
from gradrank.experiments.experiment import Experiment
from gradrank.experiments.run import Outcome, run
from gradrank.experiments.run import Progress as Status
from gradrank.experiments.store import Store
from gradrank.experiments.sweep import Sweep
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import look_up
from gradrank.measurement.terminal import console
from gradrank.report.figures import png
from gradrank.report.folder import check_writable, write_whole
from gradrank.report.page import Page, Picture, Section
from gradrank.report.slices import select, slices

OWN = ("state", "seconds", "host", "error")  # arrays of the store itself


def sweep_command(specification: Path, output: Path, where: Where) -> None:
    """Run what is not in the store yet, and say what is there."""
    experiment = Sweep.from_toml(specification).experiment()
    outcome = watched(experiment, output, where)
    to = console()
    done = outcome.total - len(outcome.failed)
    to.print(
        f"{done} of {outcome.total} cells are in {output} ({outcome.computed} computed now, {outcome.seconds:.1f} s)",
        soft_wrap=True,
    )
    to.print(
        f"figures: gradrank report {output} -o FOLDER; in Python: xarray.open_zarr({str(output)!r})", soft_wrap=True
    )
    outcome.check()


def watched(experiment: Experiment, output: Path, where: Where) -> Outcome:
    """Run an experiment under a progress bar, which is on stderr and for terminals only."""
    with progress_bar(experiment.name) as show:
        return run(experiment, output, where, show)


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[Status], None]]:
    """Show the cells done, their rate and the remaining time, on stderr and for terminals only."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    quiet = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task(name, total=None, rate="")

        def show(status: Status) -> None:
            failed = f", {status.failed} failed" if status.failed else ""
            speed = progress.tasks[task].speed
            rate = f"{speed:.2g} cells/s{failed}" if speed else failed.lstrip(", ")
            progress.update(task, total=status.total, completed=status.done + status.failed, rate=rate)

        yield show


def report_command(
    store: Path,
    output: Path,
    *,
    variables: Sequence[str],
    x: str | None,
    curves: str | None,
    where: Sequence[str],
    overwrite: bool,
) -> None:
    """Draw every output of a store, or those named, as a folder of figures and a page."""
    check_writable(output, overwrite=overwrite)
    opened = Store.existing(store)
    if output.resolve().is_relative_to(store.resolve()):
        raise unusable("output", str(output), "it is in the store; give another folder")
    specification, data = opened.specification, opened.load()
    pairs = [_pair(text, [str(axis) for axis in data.dims]) for text in where]
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        raise InputError(f"where: {', '.join(where)} is not allowed; give each axis once")
    names = [str(name) for name in data.data_vars if name not in OWN]
    for name in variables:
        look_up("variable", name, dict.fromkeys(names))
    arrays = {name: select(data[name], chosen) for name in (variables or names)}
    drawn = [slices(array, x, curves) for array in arrays.values() if array.size > array.sizes.get("seed", 1)]
    figures = {name: png(figure) for part in drawn for name, figure in part.items()}
    if not figures:
        raise InputError(f"report: '{store}' holds single numbers only; there is nothing to draw")
    missing = int((data["state"] != 1).sum())
    notes = [f"Mean over {data.sizes['seed']} seeds, bars: standard errors."]
    if chosen:
        notes.append("Where " + ", ".join(f"{axis} = {value}" for axis, value in chosen.items()) + ".")
    if missing:
        notes.append(f"{missing} of {data['state'].size} cells are missing or failed.")
    pictures = [Picture(image, name) for name, image in figures.items()]
    page = Page(
        str(data.attrs["name"]),
        f"from {store.name}",
        [Section("Figures", notes, pictures=pictures), _made(specification)],
    )

    def write(folder: Path) -> None:
        for name, image in figures.items():
            (folder / f"{name}.png").write_bytes(image)
        (folder / "index.html").write_text(page.html(), encoding="utf-8")

    written = write_whole(output, overwrite, write)
    console().print(f"page with {len(figures)} figures: {written.resolve()}", soft_wrap=True)


def _made(specification: dict[str, object]) -> Section:
    return Section("How it was made", code=json.dumps(specification, indent=2, ensure_ascii=False))


def _pair(text: str, axes: Sequence[str]) -> tuple[str, str]:
    axis, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"where: '{text}' is not allowed; give AXIS=VALUE")
    look_up("where", axis, dict.fromkeys(axes))
    return axis, value
