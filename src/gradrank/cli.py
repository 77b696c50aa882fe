"""The command line: parses, calls, prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import Abort, TyperException

from gradrank.foundation.errors import ExitCode, GradrankError, InputError
from gradrank.version import __version__

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown",
    help="Find, name and predict the low-rank structure of neural-network gradients.",
)  # fmt: skip


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(arguments, prog_name="gradrank", standalone_mode=False)
        sys.stdout.flush()
        if code == ExitCode.INTERRUPTED:  # typer turns the interrupt into an exit code of its own
            raise KeyboardInterrupt
        return code if isinstance(code, int) else ExitCode.OK
    except (KeyboardInterrupt, Abort):
        return _fail("interrupted; nothing was written", ExitCode.INTERRUPTED)
    except TyperException as error:
        return _fail(error.format_message(), ExitCode.BAD_INPUT)
    except GradrankError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:  # the reader of our output has left, as `| head` does
        _discard_output()
        return ExitCode.INCOMPLETE
    except OSError as error:
        _discard_output()
        return _fail(f"the output cannot be written ({error.strerror or error})", ExitCode.STORAGE)
    except MemoryError:
        return _fail("this does not fit in memory; give a smaller n, d or m", ExitCode.BAD_INPUT)
    except Exception as error:
        if os.environ.get("GRADRANK_TRACEBACK"):
            raise
        kind = type(error).__name__
        return _fail(f"unexpected {kind} ({error}); GRADRANK_TRACEBACK=1 shows where", ExitCode.INCOMPLETE)


def _fail(message: str, code: ExitCode) -> int:
    if message and sys.stderr is not None:
        print(f"gradrank: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return code


def _discard_output() -> None:
    """Let what is still buffered go nowhere, instead of failing once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gradrank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _option(panel: str, help_text: str, *names: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, show_default=False)


PROBLEM, DATA, NETWORK, HOW, OUTPUT = "Synthetic inputs", "Real inputs", "Targets and network", "Measurement", "Output"


@app.command()
def measure(
    spec: Annotated[Path | None, _option(OUTPUT, "Problem file in TOML; the options below change its fields.")] = None,
    n: Annotated[int | None, _option(PROBLEM, "Samples (750); for real data: rows chosen at random (all).", "--n")] = None,
    d: Annotated[int | None, _option(PROBLEM, "Input dimension (1000).", "--d")] = None,
    nu: Annotated[float | None, _option(PROBLEM, "Spike exponent ν (0.3): strength n^ν.")] = None,
    alpha: Annotated[float | None, _option(PROBLEM, "Decay exponent α of the bulk (0).")] = None,
    direction: Annotated[str | None, _option(PROBLEM, "Spike direction: random, eigenvector or none.")] = None,
    eigenvector: Annotated[int | None, _option(PROBLEM, "Number of that eigenvector (1, the largest).")] = None,
    basis: Annotated[str | None, _option(PROBLEM, "Eigenvectors of the bulk: canonical or haar.")] = None,
    data: Annotated[str | None, _option(DATA, "Data set (see `gradrank list`) or a .npy, .npz, .csv, .parquet, .pt file.")] = None,
    folder: Annotated[Path | None, _option(DATA, "Folder of a data set that is not installed as a package.")] = None,
    labels: Annotated[str | None, _option(DATA, "Label column or array of the file, or another file with labels.")] = None,
    standardise: Annotated[str | None, _option(DATA, "raw, center, zscore, unit-range, symmetric-range, unit-rows (raw).")] = None,
    constant_columns: Annotated[str | None, _option(DATA, "Under zscore: error, zero or drop.")] = None,
    targets: Annotated[str | None, _option(NETWORK, "Target by name (triple-index; labels of the data: one-vs-rest).")] = None,
    positive: Annotated[str | None, _option(NETWORK, "The class that is +1 under one-vs-rest.")] = None,
    label_noise: Annotated[float | None, _option(NETWORK, "Standard deviation of the label noise.")] = None,
    m: Annotated[int | None, _option(NETWORK, "Hidden width (1250).", "--m")] = None,
    activation: Annotated[str | None, _option(NETWORK, "Activation by name, or module:function (sigmoid).")] = None,
    scaling: Annotated[str | None, _option(NETWORK, "Output scale γ: ntk, mf or a number (ntk).")] = None,
    inner: Annotated[str | None, _option(NETWORK, "W: sphere, gaussian, aligned, orthogonal, data or conv (sphere).")] = None,
    kernel_size: Annotated[int | None, _option(NETWORK, "Filter length, with conv.")] = None,
    weights: Annotated[str | None, _option(NETWORK, "File with the (m, d) inner weights.")] = None,
    loss: Annotated[str | None, _option(NETWORK, "Loss by name, or module:function (mse).")] = None,
    weight_decay: Annotated[float | None, _option(NETWORK, "Weight decay λ (0).")] = None,
    input_noise: Annotated[float | None, _option(NETWORK, "Variance τ² of noise on the inputs (0).")] = None,
    jacobian: Annotated[float | None, _option(NETWORK, "Jacobian penalty λ (0).")] = None,
    seed: Annotated[int, _option(HOW, "Seed of the draw, or the first of several (0).")] = 0,
    seeds: Annotated[int, _option(HOW, "Number of draws; more than one gives means with standard errors (1).")] = 1,
    k: Annotated[int, _option(HOW, "Leading singular values (10).", "--k")] = 10,
    spectrum: Annotated[str, _option(HOW, "full, top, or auto: full up to min(n, d, m) = 2000.")] = "auto",
    prediction: Annotated[str, _option(HOW, "Predict spectrum, spikes and exponents: on, off, or auto: up to n = 2000.")] = "auto",
    split: Annotated[str, _option(HOW, "Spike split: oracle, empirical, or auto (the oracle where it is known).")] = "auto",
    centring: Annotated[str, _option(HOW, "Centring of σ′: population, empirical, or auto (as the split).")] = "auto",
    dtype: Annotated[str | None, _option(HOW, "float64 or float32 (float64).")] = None,
    device: Annotated[str, _option(HOW, "cpu or cuda (cpu).")] = "cpu",
    json: Annotated[bool, _option(OUTPUT, "Print strict JSON and nothing else.", "--json")] = False,
    output: Annotated[Path | None, _option(OUTPUT, "Folder for figures, arrays, JSON and a page.", "-o", "--output")] = None,
    overwrite: Annotated[bool, _option(OUTPUT, "Replace an earlier result in that folder.", "--overwrite")] = False,
) -> None:  # fmt: skip
    """Measure the spikes of a gradient: parts, shares, singular values, alignments, and what theory expects.

    Without options: ν = 0.3, α = 0, n, d, m = 750, 1000, 1250, sigmoid, NTK scaling, MSE loss, triple-index target.
    """
    from gradrank.commands.measure import Choices, measure_command

    if weights and inner not in (None, "given"):
        raise InputError(f"network.inner: '{inner}' is not allowed together with --weights; give one of them")
    fields: dict[str, dict[str, Any]] = {
        "inputs": {
            "n": n, "d": d, "nu": nu, "alpha": alpha, "direction": direction, "eigenvector": eigenvector, "basis": basis,
            "folder": folder, "labels": labels, "standardise": standardise, "constant_columns": constant_columns,
        },
        "targets": {"positive": positive, "noise": label_noise},
        "network": {
            "m": m, "activation": activation, "scaling": _number_or_name(scaling), "kernel_size": kernel_size,
            "inner": "given" if weights else inner, "weights": weights,
        },
        "regularisers": {"weight_decay": weight_decay, "input_noise": input_noise, "jacobian": jacobian},
    }  # fmt: skip
    if seeds < 1:
        raise InputError(f"seeds: {seeds} is not allowed; give a number of at least 1")
    measure_command(
        Choices(spec, data, targets, fields, {"loss": loss, "dtype": dtype}),
        {
            "k": k,
            "spectrum": spectrum,
            "prediction": prediction,
            "split": split,
            "centring": centring,
            "device": device,
        },
        seed=seed,
        seeds=seeds,
        as_json=json,
        output=output,
        overwrite=overwrite,
    )


def _number_or_name(text: str | None) -> float | str | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return text


@app.command()
def sweep(
    specification: Annotated[Path, typer.Argument(help="Sweep in TOML; see examples/sweep-*.toml.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Store for the results, a Zarr group.", show_default=False)],
    workers: Annotated[int | None, _option(HOW, "Worker processes (as many as there are cores); of SLURM: jobs (1).")] = None,
    scheduler: Annotated[str | None, _option(HOW, "Address of a running Dask scheduler, tcp://…")] = None,
    cluster: Annotated[str | None, _option(HOW, "slurm: start the workers as jobs.")] = None,
    cluster_options: Annotated[Path | None, _option(HOW, "TOML file with the options of dask_jobqueue.SLURMCluster.")] = None,
) -> None:  # fmt: skip
    """Measure a grid of problems on workers; stopped at any moment, the same command computes what is missing."""
    from gradrank.commands.sweep import sweep_command
    from gradrank.experiments.cluster import Where

    if cluster not in (None, "slurm"):
        raise InputError(f"cluster: '{cluster}' is not allowed; give slurm")
    if (cluster is None) != (cluster_options is None):
        raise InputError("cluster: give --cluster slurm together with --cluster-options FILE.toml, and only then")
    sweep_command(specification, output, Where(workers, scheduler, cluster_options))


@app.command()
def report(
    store: Annotated[Path, typer.Argument(help="Store that `gradrank sweep` wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the figures and a page.", show_default=False)],
    variable: Annotated[list[str] | None, typer.Option(help="Output to draw; may be repeated (all).", show_default=False)] = None,
    x: Annotated[str | None, typer.Option("--x", help="Axis along x (the longest one of numbers).", show_default=False)] = None,
    curves: Annotated[str | None, typer.Option(help="Axis that makes curves (the shortest other).", show_default=False)] = None,
    where: Annotated[list[str] | None, typer.Option(help="AXIS=VALUE, a slice; may be repeated.", show_default=False)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier report in that folder.")] = False,
) -> None:  # fmt: skip
    """Draw the results of a sweep: means over seeds with standard errors, one figure for each output."""
    from gradrank.commands.sweep import report_command

    report_command(store, output, variables=variable or (), x=x, curves=curves, where=where or (), overwrite=overwrite)


@app.command()
def reproduce(
    figure: Annotated[str | None, typer.Argument(help="Name of a figure (--list), or all.", show_default=False)] = None,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is, what it shows and what it costs.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version, under 40 seconds each on two cores.")] = False,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder with a folder for each figure.")] = Path("reproduced"),
    mnist: Annotated[Path | None, _option(DATA, "Folder of MNIST's idx files, for fig8 (a sample from a package).")] = None,
    embeddings: Annotated[str | None, _option(DATA, "Folder of cifar10-resnet18.npz for fig8, or photo-embeddings.")] = None,
    workers: Annotated[int | None, _option(HOW, "Worker processes (as many as there are cores).")] = None,
    scheduler: Annotated[str | None, _option(HOW, "Address of a running Dask scheduler, tcp://…")] = None,
) -> None:  # fmt: skip
    """Re-run the papers' figures and check their claims; stopped at any moment, the same command goes on."""
    from gradrank.commands.reproduce import list_reproductions, reproduce_command
    from gradrank.experiments.cluster import Where

    if list_:
        list_reproductions()
    else:
        reproduce_command(figure, output, Where(workers, scheduler), quick=quick, mnist=mnist, embeddings=embeddings)


@app.command("list")
def list_names() -> None:
    """List data sets, activations, losses, targets and inner weights by name."""
    from gradrank.commands.names import list_command

    list_command()


@app.command()
def template() -> None:
    """Print a problem file with every field at its default, to be edited: gradrank template > my.toml."""
    from gradrank.commands.names import template_text

    typer.echo(template_text(), nl=False)
