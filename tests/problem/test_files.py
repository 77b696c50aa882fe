import hashlib
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradrank.foundation.errors import InputError
from gradrank.problem.files import read_table

X = np.array([[1.0, 2.5, -3.0], [4.0, 0.0, 6.0], [7.0, 8.0, 1e-3], [0.5, 0.25, 9.0]])
CLASSES = np.array([2, 0, 1, 0])
NAMES = np.array(["cat", "dog", "cat", "owl"])
CSV = "a,b,c,kind\n1,2.5,-3,cat\n4,0,6,dog\n7,8,1e-3,cat\n0.5,0.25,9,owl\n"


def refusal(path: Path, labels: str | None = None) -> str:
    """Return the one line that reading ``path`` is refused with, checked to name the field and the file."""
    with pytest.raises(InputError) as caught:
        read_table(path, field="inputs.path", labels=labels)
    message = str(caught.value)
    assert message.startswith(("inputs.path: ", "inputs.labels: ") if labels else "inputs.path: ")
    assert "\n" not in message
    return message


def saved(folder: Path, array: np.ndarray, name: str = "x.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def text(folder: Path, content: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def parquet(folder: Path, columns: dict[str, list[object]]) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "f2", "i4", "u1", "?", "g"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_real_type_becomes_float64(tmp_path: Path, dtype: str, order: Literal["C", "F"]) -> None:
    stored = np.abs(X).astype(dtype).copy(order=order)
    path = saved(tmp_path, stored)
    table = read_table(path)
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    assert not isinstance(table.X, np.memmap)
    np.testing.assert_array_equal(table.X, stored.astype(np.float64))
    assert table.y is None
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_npz_by_names_by_the_only_matrix_and_by_the_name_of_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=X, target=CLASSES, other=X)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, CLASSES)
    np.savez_compressed(path, pixels=X, animal=NAMES)
    table = read_table(path, labels="animal")
    np.testing.assert_array_equal(table.X, X)
    assert table.y is not None
    assert table.y.tolist() == ["cat", "dog", "cat", "owl"]
    assert read_table(path).y is None
    assert "no array 'animals'" in refusal(path, "animals")
    assert "did you mean 'animal'?" in refusal(path, "animals")
    np.savez(path, first=X, second=X)
    assert "holds first (4, 3), second (4, 3); give one array named X" in refusal(path)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_csv_with_a_column_of_text_labels(tmp_path: Path, separator: str, start: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(start + CSV.replace(",", separator), encoding="utf-8")
    for labels in ("kind", "3"):
        table = read_table(path, labels=labels)
        np.testing.assert_array_equal(table.X, X)
        assert table.y is not None
        assert table.y.tolist() == ["cat", "dog", "cat", "owl"]


def test_csv_without_a_header_and_with_labels_of_numbers(tmp_path: Path) -> None:
    path = text(tmp_path, "2, 1, 2.5\n0, 4, 0\n1, 7, 8\n")
    np.testing.assert_array_equal(read_table(path).X, [[2, 1, 2.5], [0, 4, 0], [1, 7, 8]])
    table = read_table(path, labels="0")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [4, 0], [7, 8]])
    assert table.y is not None
    assert table.y.dtype == np.int64
    assert table.y.tolist() == [2, 0, 1]
    table = read_table(path, labels="2")
    assert table.y is not None
    assert table.y.dtype == np.float64
    assert table.y.tolist() == [2.5, 0, 8]


def test_csv_header_of_numbers_is_known_by_the_name_of_the_labels(tmp_path: Path) -> None:
    path = text(tmp_path, "0,1,kind\n5,6,cat\n7,8,dog\n")
    table = read_table(path, labels="kind")
    np.testing.assert_array_equal(table.X, [[5, 6], [7, 8]])


@pytest.mark.parametrize(
    ("content", "labels", "expected"),
    [
        ("1,2\n3,4,5\n", None, "has 3 cells in line 2, the first line has 2"),
        ("a,b\n\n1,2\n3\n", None, "has 1 cells in line 4, the first line has 2"),
        (CSV, None, r"holds 'cat', not a number, in line 2, column 4 \('kind'\)"),
        (CSV.replace("8", "x"), "kind", r"holds 'x', not a number, in line 4, column 2 \('b'\)"),
        ("kind,a,b\ncat,1,2\ncat,1,?\n", "kind", r"holds '\?', not a number, in line 3, column 3 \('b'\)"),
        ("1,2\n3,\n", None, "has an empty cell in line 2, column 2;"),
        ("1;2\n3;4,5\n", None, "holds '4,5', not a number, in line 2, column 2; .*decimal point"),
        (CSV.replace("owl", " "), "kind", "has an empty label in line 5"),
        (CSV, "kin", r"has 0 columns 'kin' .*did you mean 'kind'\?\), or the number of a column, 0 to 3"),
        ("1,2\n3,4\n", "2", "has 0 columns '2' .*; give the number of a column, 0 to 1"),
        ("1,2\n3,nan\n", None, "holds 1 values that are NaN or infinite, the first in row 1, column 1"),
        ("a,b,c\n1,2,x\n3,4,nan\n", "c", None),
        ("a,b,c\n1,2,0\n3,4,nan\n", "c", "holds 1 labels that are NaN or infinite, the first in row 1"),
        ("a,b\n1,2\n", None, r"shape \(1, 2\); give at least two rows and two columns"),
        ("1\n2\n", None, r"shape \(2, 1\); give at least two rows and two columns"),
        ("\n \n", None, "holds only blank lines"),
    ],
)
def test_faults_of_a_csv_are_told_with_their_place(
    tmp_path: Path, content: str, labels: str | None, expected: str | None
) -> None:
    path = text(tmp_path, content)
    if expected is None:
        assert read_table(path, labels=labels).X.shape == (2, 2)
    else:
        assert re.search(expected, refusal(path, labels))


def test_csv_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    assert "cannot be read as a table of text (UnicodeDecodeError" in refusal(tmp_path / "x.csv")


def test_parquet(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {"a": [1, 2, 3], "kind": ["cat", "dog", "owl"], "b": [0.5, 1.5, -2.0]}
    path = parquet(tmp_path, columns)
    table = read_table(path, labels="kind", choose_rows=lambda n: np.array([0, n - 1]))
    np.testing.assert_array_equal(table.X, [[1, 0.5], [3, -2]])
    assert table.y is not None
    assert table.y.tolist() == ["cat", "owl"]
    assert "has a column 'kind' of type string, not of numbers" in refusal(path)
    assert "has 0 columns 'kinds'" in refusal(path, "kinds")
    path = parquet(tmp_path, {"a": [1, None, 3], "b": [1, 2, 3]})
    assert "misses 1 values in column 'a', the first in row 1" in refusal(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "needs pyarrow; run: pip install 'gradrank[parquet]'" in refusal(tmp_path / "x.parquet")


def test_torch_files(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.tensor(X, dtype=torch.bfloat16, requires_grad=True), path)
    np.testing.assert_array_equal(read_table(path).X, torch.tensor(X).bfloat16().double().numpy())
    torch.save({"X": torch.tensor(X), "y": torch.tensor(CLASSES)}, path)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, CLASSES)
    torch.save(torch.tensor(X).to_sparse(), path)
    assert "sparse" in refusal(path)
    torch.save([1, 2], path)
    assert "holds a list; give a tensor" in refusal(path)
    torch.save(torch.tensor(1.0).expand(10**9, 10**9), path)
    assert re.search(r"needs \d+\.\d TiB of memory", refusal(path))


class Trap:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickled_code_is_never_run(tmp_path: Path) -> None:
    trap = Trap(tmp_path / "sprung")
    np.save(tmp_path / "x.npy", np.array([[trap, trap], [trap, trap]]), allow_pickle=True)
    assert "holds Python objects; give an array of numbers" in refusal(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", X=X, y=np.array([trap] * 4), allow_pickle=True)
    assert "holds Python objects in 'y'" in refusal(tmp_path / "x.npz")
    torch.save(trap, tmp_path / "x.pt")
    assert "cannot be read as a PyTorch file of tensors (UnpicklingError" in refusal(tmp_path / "x.pt")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros(5), "shape (5,); give two dimensions, one row per sample"),
        (np.float64(1), "shape (); give two dimensions"),
        (np.zeros((5, 2, 2)), "shape (5, 2, 2); give two dimensions"),
        (np.zeros((1, 5)), "shape (1, 5); give at least two rows"),
        (np.zeros((0, 5)), "shape (0, 5); give at least two rows"),
        (X.astype(complex), "values of type complex128; give real numbers"),
        (X.astype(str), "values of type <U32; give real numbers"),
        (X.astype("M8[s]"), "values of type datetime64[s]; give real numbers"),
    ],
)
def test_arrays_that_are_no_real_matrix_are_refused(tmp_path: Path, array: np.ndarray, expected: str) -> None:
    assert expected in refusal(saved(tmp_path, array))


def test_values_that_are_not_finite_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    bad = np.ones((50, 4), dtype=np.float32)
    bad[7, 2], bad[7, 3], bad[40, 0] = np.nan, -np.inf, np.inf
    path = saved(tmp_path, bad)
    assert "holds 3 values that are NaN or infinite, the first in row 7, column 2;" in refusal(path)
    assert read_table(path, choose_rows=lambda _: np.arange(7)).X.shape == (7, 4)
    with pytest.raises(InputError, match=r"holds 1 values .*, the first in row 40, column 0"):
        read_table(path, choose_rows=lambda _: np.array([3, 40]))
    longdouble = np.full((2, 2), np.longdouble("1e400"))
    assert "holds 4 values" in refusal(saved(tmp_path, longdouble))


def test_the_blocks_of_a_large_matrix_are_all_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.problem.files.reading.BLOCK", 8)
    bad = np.arange(40.0).reshape(10, 4)
    np.testing.assert_array_equal(read_table(saved(tmp_path, bad)).X, bad)
    bad[5, 1] = bad[9, 3] = np.nan
    assert "holds 2 values that are NaN or infinite, the first in row 5, column 1" in refusal(saved(tmp_path, bad))


def test_labels_from_a_file_beside_it(tmp_path: Path) -> None:
    path = saved(tmp_path, X)
    beside = saved(tmp_path, CLASSES.reshape(-1, 1), "y.npy")
    table = read_table(path, labels=str(beside), choose_rows=lambda _: np.array([0, 3]))
    np.testing.assert_array_equal(table.X, X[[0, 3]])
    np.testing.assert_array_equal(table.y, [2, 0])
    for content in ("cat\ndog\ncat\nowl\n", "kind\ncat\ndog\ncat\nowl\n"):
        table = read_table(path, labels=str(text(tmp_path, content, "y.csv")))
        assert table.y is not None
        assert table.y.tolist() == ["cat", "dog", "cat", "owl"]
    table = read_table(path, labels=str(text(tmp_path, "size\n1.5\n2\n3\n4\n", "y.txt")))
    assert table.y is not None
    assert table.y.tolist() == [1.5, 2, 3, 4]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.zeros(3), "holds 3 labels for 4 rows"),
        (np.array([0, 1, np.nan, np.nan]), "holds 2 labels that are NaN or infinite, the first in row 2"),
        (np.zeros((4, 10)), r"holds labels of shape \(4, 10\); give one label for each of the 4 rows"),
        (np.zeros(4, dtype=complex), "holds labels of type complex128"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path: Path, labels: np.ndarray, expected: str) -> None:
    path, beside = saved(tmp_path, X), saved(tmp_path, labels, "y.npy")
    assert re.search(f"^inputs.labels: .*y.npy' {expected}", refusal(path, str(beside)))


def test_labels_that_a_npy_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    assert "holds no labels 'kind'; give as labels an existing file" in refusal(saved(tmp_path, X), "kind")


def test_paths_that_are_no_readable_file_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, X, "embeddings.npy")
    assert "does not exist; give an existing file (did you mean 'embeddings.npy'?)" in refusal(
        tmp_path / "embedings.npy"
    )
    assert "(there is no folder" in refusal(tmp_path / "none" / "x.npy")
    assert "is a folder; give a file" in refusal(tmp_path)
    (tmp_path / "empty.npy").touch()
    assert "is empty; give a file with at least two rows" in refusal(tmp_path / "empty.npy")
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    assert "has the unknown ending '.xlsx'; give a .npy, .npz," in refusal(tmp_path / "x.xlsx")
    os.mkfifo(tmp_path / "pipe.npy")
    assert "is a device, a pipe or a socket" in refusal(tmp_path / "pipe.npy")
    assert "cannot be opened" in refusal(tmp_path / ("x" * 300 + ".npy"))
    assert "cannot be opened (embedded null byte)" in refusal(tmp_path / "x\0.npy")
    assert "does not exist" in refusal(tmp_path / "two\nlines \x1b[31m.npy")


def test_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, X)
    path.chmod(0)
    if os.access(path, os.R_OK):  # an administrator may read everything
        monkeypatch.setattr(os, "access", lambda *_: False)
    assert "no permission to read it" in refusal(path)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, X)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert "is truncated: its header promises 96 bytes, 95 are there" in refusal(path)
    path.write_bytes(whole[:60])
    assert "cannot be read as a .npy array (ValueError: EOF" in refusal(path)
    np.savez(tmp_path / "x.npz", X=X)
    packed = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(packed[:-30])
    assert "cannot be read as a .npz archive (BadZipFile" in refusal(tmp_path / "x.npz")


def test_what_cannot_fit_is_refused_at_once(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**8, 1250), "fortran_order": False, "descr": "<f8"})
    for name in ("x.npy", "x.csv", "x.pt"):
        with (tmp_path / name).open("wb") as stream:  # a sparse file of 1 TB that takes no room
            stream.write(header.getvalue() if name == "x.npy" else b"1,2\n" * 300_000)
            stream.truncate(len(header.getvalue()) + 10**12)
        assert re.search(r"needs .*iB of memory, .* are available; give a smaller file", refusal(tmp_path / name))


def test_only_the_chosen_rows_of_a_large_npy_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradrank.foundation.memory.available_memory", lambda: 1000)
    large = np.arange(3000.0).reshape(1000, 3)
    path = saved(tmp_path, large)
    assert "needs 23.4 KiB of memory, 1000 B are available" in refusal(path)
    seen: list[int] = []

    def choose(n: int) -> np.ndarray:
        seen.append(n)
        return np.array([5, 700])

    np.testing.assert_array_equal(read_table(path, choose_rows=choose).X, large[[5, 700]])
    assert seen == [1000]


def stored(save: Callable[[io.BytesIO], object]) -> bytes:
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


WHOLE = {
    ".npy": stored(lambda stream: np.save(stream, X)),
    ".npz": stored(lambda stream: np.savez(stream, X=X, y=NAMES)),
    ".csv": CSV.encode(),
    ".pt": stored(lambda stream: torch.save({"X": torch.tensor(X), "y": torch.tensor(CLASSES)}, stream)),
}


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw the ending of a file and bytes: those of a whole file with some replaced, removed or added, or any."""
    ending = draw(st.sampled_from([*WHOLE, ".parquet"]))
    if ending not in WHOLE or draw(st.integers(0, 9)) == 0:
        return ending, draw(st.binary(min_size=1, max_size=200))
    content = bytearray(WHOLE[ending])
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)) | st.integers(0, 130))
        stop = start + draw(st.integers(0, 8))
        content[start:stop] = draw(st.binary(max_size=8) | st.sampled_from([b"99999999", b"((((", b"nan", b"'", b"-1"]))
    return ending, bytes(content) or b"\0"


@given(broken(), st.sampled_from([None, "y", "kind", "0"]))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_end_in_a_finite_matrix_or_one_line(
    tmp_path: Path, file: tuple[str, bytes], labels: str | None
) -> None:
    path = tmp_path / f"x{file[0]}"
    path.write_bytes(file[1])
    table, message = None, "inputs.path: "
    try:
        table = read_table(path, labels=labels)
    except InputError as error:
        message = str(error)
    assert message.startswith(("inputs.path: ", "inputs.labels: ") if labels else "inputs.path: ")
    assert "\n" not in message
    if table is not None:
        assert np.isfinite(table.X).all()
        assert min(table.X.shape) >= 2
        assert table.y is None or table.y.shape == (len(table.X),)
