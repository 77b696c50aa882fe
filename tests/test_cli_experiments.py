"""`gradrank sweep`, `report` and `reproduce` from the command line."""

from pathlib import Path

import pytest
import xarray

from gradrank.cli import run

SWEEP = """
name = "small"
seeds = 2
record = ["norms"]
[grid]
"inputs.nu" = [0.0, 0.45]
"network.scaling" = ["ntk", "mf"]
[problem.inputs]
n = 40
d = 50
[problem.network]
m = 60
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SWEEP)
    return path


def test_sweep_report_and_what_they_refuse(sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, report = tmp_path / "small.zarr", tmp_path / "report"
    assert run(["sweep", str(sweep), "-o", str(store), "--workers", "2"]) == 0
    out, err = capsys.readouterr()
    assert "8 of 8 cells are in" in out
    assert err == ""
    assert xarray.open_zarr(store)["norm"].sizes == {"nu": 2, "scaling": 2, "seed": 2, "part": 8}

    assert run(["report", str(store), "-o", str(report), "--where", "part=residue_spike"]) == 0
    assert {path.name for path in report.iterdir()} == {"norm.png", "index.html", ".gradrank-contents"}
    assert "Where part = residue_spike." in (report / "index.html").read_text()
    capsys.readouterr()

    cases = {
        "is not empty": ["report", str(store), "-o", str(report)],
        "where.part: 'x' is not allowed": ["report", str(store), "-o", str(tmp_path / "r"), "--where", "part=x"],
        "where: nu=0, nu=0.45 is not allowed; give each axis once": [
            *("report", str(store), "-o", str(tmp_path / "r"), "--where", "nu=0", "--where", "nu=0.45")
        ],
        "it is in the store; give another folder": ["report", str(store), "-o", str(store / "r")],
        "give AXIS=VALUE": ["report", str(store), "-o", str(tmp_path / "r"), "--where", "part"],
        "variable: 'shares' is not allowed": ["report", str(store), "-o", str(tmp_path / "r"), "--variable", "shares"],
        "is not a store of gradrank": ["report", str(report), "-o", str(tmp_path / "r")],
        "holds the results of another specification": ["sweep", str(_with_three_seeds(sweep)), "-o", str(store)],
    }
    for message, arguments in cases.items():
        assert run(arguments) == 2, message
        out, err = capsys.readouterr()
        assert message in err
        assert err.count("\n") == 1
        assert out == ""
    assert not (tmp_path / "r").exists()


def _with_three_seeds(sweep: Path) -> Path:
    other = sweep.with_name("other.toml")
    other.write_text(SWEEP.replace("seeds = 2", "seeds = 3"))
    return other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "workers: 0 is not allowed"),
        (["--cluster", "pbs"], "cluster: 'pbs' is not allowed; give slurm"),
        (["--cluster", "slurm"], "give --cluster slurm together with --cluster-options"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "scheduler: is not allowed together"),
    ],
)
def test_where_a_sweep_cannot_run(
    sweep: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", str(sweep), "-o", str(tmp_path / "s.zarr"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "s.zarr").exists()


def test_reproduce_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list"]) == 0
    assert "scaling-laws" in capsys.readouterr().out
    assert run(["reproduce", "fig9"]) == 2
    assert "figure: 'fig9' is not allowed; give one of all, beta-table" in capsys.readouterr().err
    assert run(["reproduce", "fig1", "--mnist", "."]) == 2
    assert "mnist, embeddings: are data for fig8" in capsys.readouterr().err
    assert run(["reproduce", "fig8", "--mnist", "nowhere"]) == 2
    assert "mnist: data set 'mnist': 'nowhere' is not a folder" in capsys.readouterr().err
    assert run(["reproduce"]) == 2
    assert "figure: is missing" in capsys.readouterr().err
