import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from gradrank.cli import run
from gradrank.problem.problem import Problem

SMALL = ["--n", "30", "--d", "40", "--m", "35"]


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_measure_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, "measure", *SMALL)
    assert (code, err) == (0, "")
    for text in (
        "residue spike S₁",
        "interpolant S₁₂",
        "data spike S₂",
        "remainder E",
        "σ10",
        "share of ‖G‖²",
        "chance",
    ):
        assert text in out


def test_json_is_all_that_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = outcome(capsys, "measure", *SMALL, "--json", "-o", str(tmp_path / "out"), "--seed", "4")
    body = json.loads(out)
    assert (code, err) == (0, "")
    assert body["seed"] == 4
    assert body["problem"]["inputs"]["n"] == 30
    assert json.loads((tmp_path / "out" / "measurement.json").read_text()) == body


def test_several_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "measure", *SMALL, "--seeds", "3", "--json")
    assert code == 0
    assert json.loads(out)["seeds"] == [0, 1, 2]
    code, out, _ = outcome(capsys, "measure", *SMALL, "--seeds", "3")
    assert "±" in out


def test_template_is_the_default_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = outcome(capsys, "template")
    assert code == 0
    assert Problem.from_toml(out) == Problem()
    (tmp_path / "my.toml").write_text(out)
    code, out, _ = outcome(capsys, "measure", "--spec", str(tmp_path / "my.toml"), *SMALL, "--nu", "0.7", "--json")
    inputs = json.loads(out)["problem"]["inputs"]
    assert (inputs["n"], inputs["nu"], inputs["alpha"]) == (30, 0.7, 0.0)


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = outcome(capsys, "list")
    for name in ("mnist-5k", "digits", "softplus", "squared-hinge", "triple-index", "orthogonal", "zscore"):
        assert name in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "--version") == (0, "gradrank 0.1.0\n", "")


def test_own_file_with_labels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        "a,b,c,kind",
        *(f"{x:.4f},{y:.4f},{z:.4f},{'no' if x > 0 else 'yes'}" for x, y, z in rng.standard_normal((40, 3))),
    ]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    arguments = ["--data", str(tmp_path / "mine.csv"), "--labels", "kind", "--positive", "yes", "--m", "20", "--json"]
    code, out, err = outcome(capsys, "measure", *arguments)
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert body["shape"] == {"n": 40, "d": 3, "m": 20}
    assert len(body["problem"]["inputs"]["sha256"]) == 64
    assert body["problem"]["targets"]["positive"] == "yes"


BAD = {
    "nu": (["--nu", "-0.1"], "inputs.nu", "at least 0"),
    "nan nu": (["--nu", "nan"], "inputs.nu", "finite"),
    "alpha": (["--alpha", "-1"], "inputs.alpha", "at least 0"),
    "n": (["--n", "1"], "inputs.n", "at least 2"),
    "d": (["--d", "0"], "inputs.d", "at least 2"),
    "m": (["--m", "0"], "network.m", "at least 1"),
    "activation": (["--activation", "sigmoyd"], "network.activation", "did you mean 'sigmoid'"),
    "loss": (["--loss", "msee"], "loss", "did you mean 'mse'"),
    "inner": (["--inner", "spher"], "network.inner", "did you mean 'sphere'"),
    "scaling": (["--scaling", "-1"], "network.scaling", "a number above 0"),
    "scaling name": (["--scaling", "nkt"], "network.scaling", "ntk"),
    "targets": (["--targets", "tripleindex"], "targets", "did you mean 'triple-index'"),
    "data": (["--data", "mnist5k"], "data", "did you mean 'mnist-5k'"),
    "missing file": (["--data", "nothing.npy"], "inputs.path", "existing file"),
    "field of other inputs": (["--data", "digits", "--nu", "0.3"], "inputs.nu", "no such field"),
    "dtype": (["--dtype", "float16"], "dtype", "float32"),
    "device": (["--device", "tpu"], "device", "cpu"),
    "seed": (["--seed", "-3"], "seed", "at least 0"),
    "seeds": (["--seeds", "0"], "seeds", "at least 1"),
    "k": (["--k", "0"], "k", "at least 1"),
    "split": (["--split", "best"], "split", "oracle"),
    "oracle on real data": (["--data", "digits", "--split", "oracle"], "split", "empirical"),
    "penalty": (["--jacobian", "-1"], "regularisers.jacobian", "at least 0"),
    "labels for synthetic data": (["--targets", "one-vs-rest"], "targets", "labels"),
    "class": (["--data", "digits", "--positive", "eleven"], "targets.positive", "0, 1, 2"),
    "kernel": (["--inner", "conv"], "network", "kernel_size"),
    "not a number": (["--n", "many"], "--n", "integer"),
    "option": (["--nuu", "1"], "No such option", "--nu"),
    "split name": (["--split", "orcale"], "split", "did you mean 'oracle'"),
    "spectrum": (["--spectrum", "ful"], "spectrum", "did you mean 'full'"),
    "scaling near": (["--scaling", "nkt"], "network.scaling", "did you mean 'ntk'"),
    "empty reference": (["--activation", "torch:"], "network.activation", "give"),
    "weights and inner": (["--weights", "w.npy", "--inner", "sphere"], "network.inner", "one of them"),
    "overflow": (["--label-noise", "1e308"], "problem", "not finite in float64"),
    "too big": (["--n", "10000000", "--d", "1000000"], "inputs", "memory"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "field", "allowed"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], field: str, allowed: str
) -> None:
    code, out, err = outcome(capsys, "measure", *arguments, "-o", str(tmp_path / "out"), "--json")
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("gradrank: ")
    assert field in err
    assert allowed in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "field"),
    [("[inputs]\nnuu = 1", "inputs.nuu"), ("inputs = 3", "inputs"), ("n = 3", "n"), ("[inputs\n", "TOML"), ("\x00", "TOML"),
     ("[inputs]\nn = 2.5", "inputs.n"), ("[inputs]\nkind = \"spiked\"", "inputs"), ("[network]\nm = true", "network.m")],
)  # fmt: skip
def test_bad_specification(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, field: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    code, _, err = outcome(capsys, "measure", "--spec", str(path))
    assert code == 2
    assert err.count("\n") == 1
    assert field in err


def test_nested_or_huge_toml_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for text in ("x = " + "9" * 5000, "a = " + "[" * 3000, "   "):
        (tmp_path / "bad.toml").write_text(text)
        code, _, err = outcome(capsys, "measure", "--spec", str(tmp_path / "bad.toml"))
        assert (code, err.count("\n")) == (2, 1)
    with (tmp_path / "sparse.toml").open("wb") as file:
        file.truncate(1 << 40)
    code, _, err = outcome(capsys, "measure", "--spec", str(tmp_path / "sparse.toml"))
    assert code == 2
    assert "larger than a problem file" in err


@pytest.mark.parametrize("arguments", ["list", "measure --n 20 --d 15 --m 12", "measure --n 20 --d 15 --m 12 --json"])
def test_output_that_refuses_is_one_line_and_exit_3(arguments: str) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "gradrank", *arguments.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "gradrank: the output cannot be written (No space left on device)\n"


def test_closed_output_is_no_error() -> None:
    script = f"{sys.executable} -m gradrank template >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_is_refused_before_measuring(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, out, err = outcome(capsys, "measure", *SMALL, "-o", str(tmp_path / "file" / "x"))
    assert (code, out) == (2, "")
    assert "lies under the file" in err
    code, out, err = outcome(capsys, "measure", *SMALL, "-o", str(tmp_path / ("x" * 300)))
    assert (code, out) == (3, "")
    assert err.count("\n") == 1


def test_options_beside_a_specification_without_targets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text("[network]\nm = 12\n")
    arguments = ["--spec", str(tmp_path / "net.toml"), "--data", "digits", "--n", "40", "--positive", "3", "--json"]
    code, out, err = outcome(capsys, "measure", *arguments)
    assert (code, err) == (0, "")
    assert json.loads(out)["problem"]["targets"]["positive"] == "3"


def test_missing_specification(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = outcome(capsys, "measure", "--spec", "nothing.toml")
    assert code == 2
    assert "nothing.toml: cannot be read" in err


def test_occupied_output_is_refused_before_measuring(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    code, _, err = outcome(capsys, "measure", *SMALL, "-o", str(tmp_path))
    assert code == 2
    assert "not empty" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("moment", [1.5, 4.5])
def test_interrupt_ends_with_130_and_leaves_nothing(tmp_path: Path, moment: float) -> None:
    command = [sys.executable, "-m", "gradrank", "measure", "--seeds", "1000", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background job ignores the interrupt, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    used = psutil.Process(process.pid).cpu_times
    while used().user < moment:  # in seconds of work, not of the clock; Python itself must have started
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "gradrank: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_inside_the_text_of_an_exec_ends_with_130(tmp_path: Path) -> None:
    """A stand-in for typer is interrupted while it runs compiled text, as the packages do for each of their dataclasses."""
    (tmp_path / "typer.py").write_text("exec('import os, signal; os.kill(os.getpid(), signal.SIGINT)')\n")
    done = subprocess.run(
        [sys.executable, "-m", "gradrank", "list"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "gradrank: interrupted; nothing was written\n"


@pytest.mark.parametrize("command", ["list", "measure --json --n 60 --d 70 --m 80"])
def test_a_reader_that_leaves_sees_no_traceback(command: str) -> None:
    script = f"{sys.executable} -m gradrank {command} | head -c 10"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stderr, len(done.stdout)) == ("", 10)
