import os
from pathlib import Path

import numpy as np
import pytest
import xarray

import gradrank as gr
from gradrank.foundation.errors import InputError, StorageError
from gradrank.measurement import storage


@pytest.fixture(scope="module")
def result() -> gr.Measurement:
    return gr.measure(gr.Problem(inputs=gr.SpikedGaussian(n=40, d=50), network=gr.TwoLayer(m=60)), 1)


def test_round_trip(result: gr.Measurement, tmp_path: Path) -> None:
    page = result.save(tmp_path / "new" / "folder")
    again = gr.load(tmp_path / "new" / "folder")
    assert page.name == "index.html"
    assert again.problem == result.problem
    assert again.to_dict() == result.to_dict()
    np.testing.assert_array_equal(again.left_vectors, result.left_vectors)


def test_folder_holds_what_the_readme_says_and_nothing_else(result: gr.Measurement, tmp_path: Path) -> None:
    result.save(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    shown = {name for name in names if not name.startswith(".")}
    assert shown == {"index.html", "measurement.json", "arrays.zarr", "spectrum.png", "alignments.png"}
    assert set((tmp_path / "out" / ".gradrank-contents").read_text().split()) == shown
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_page_is_self_contained(result: gr.Measurement, tmp_path: Path) -> None:
    html = result.save(tmp_path / "out").read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == 2
    assert "http://" not in html
    assert "https://" not in html
    assert 'src="data:' in html


def test_arrays_open_with_xarray(result: gr.Measurement, tmp_path: Path) -> None:
    result.save(tmp_path / "out")
    with xarray.open_zarr(tmp_path / "out" / "arrays.zarr", consolidated=False) as data:
        assert float(data["norm"].sel(part="gradient")) == result.norms["gradient"]
        assert data["left_vector"].dims == ("input", "vector")


def test_occupied_folder_is_refused_and_left_alone(result: gr.Measurement, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        result.save(tmp_path)
    with pytest.raises(InputError, match=r"holds 'index.html', which is no part of an earlier result"):
        result.save(tmp_path, overwrite=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"index.html": "precious"}


def test_overwrite_replaces_an_earlier_result_and_nothing_else(result: gr.Measurement, tmp_path: Path) -> None:
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=30, d=40), network=gr.TwoLayer(m=35))
    gr.measure_many(problem, 2).save(tmp_path / "out")
    with pytest.raises(InputError, match="not empty"):
        result.save(tmp_path / "out")
    result.save(tmp_path / "out", overwrite=True)
    assert gr.load(tmp_path / "out").to_dict() == result.to_dict()
    assert not {"seeds", "norms.png"} & {path.name for path in (tmp_path / "out").iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'notes.txt'"):
        result.save(tmp_path / "out", overwrite=True)


def test_links_and_odd_places(result: gr.Measurement, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    result.save(tmp_path / "link")
    assert gr.load(tmp_path / "real").to_dict() == result.to_dict()
    with pytest.raises(StorageError, match="cannot be written"):
        result.save(tmp_path / ("x" * 300))


def test_interrupted_save_leaves_nothing(
    result: gr.Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "pictures", interrupt)
    with pytest.raises(KeyboardInterrupt):
        result.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_a_storage_error(result: gr.Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "_write_arrays", full)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        result.save(tmp_path / "out")
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_parent(result: gr.Measurement, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be written"):
        result.save(tmp_path / "out")


def test_output_under_a_file(result: gr.Measurement, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        result.save(tmp_path / "file")
    with pytest.raises(InputError, match="lies under the file"):
        result.save(tmp_path / "file" / "below")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other/9"}', "{}"])
def test_broken_body_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "measurement.json").write_text(text)
    with pytest.raises(InputError) as caught:
        gr.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_pieces(result: gr.Measurement, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        gr.load(tmp_path)
    result.save(tmp_path / "out")
    (tmp_path / "out" / "arrays.zarr").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not complete"):
        gr.load(tmp_path / "out")


def test_ensemble_round_trip(tmp_path: Path) -> None:
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=30, d=40), network=gr.TwoLayer(m=35))
    many = gr.measure_many(problem, 11)
    many.save(tmp_path / "many")
    again = gr.load(tmp_path / "many")
    assert isinstance(again, gr.Ensemble)
    assert again.seeds == list(range(11))
    assert again.to_dict() == many.to_dict()


def test_unwritable_problem_is_saved_with_the_reason(tmp_path: Path) -> None:
    def mine(x):
        return x.sin()

    problem = gr.Problem(inputs=gr.SpikedGaussian(n=30, d=40), network=gr.TwoLayer(m=35, activation=mine))
    gr.measure(problem).save(tmp_path / "out")
    again = gr.load(tmp_path / "out")
    assert again.problem is None
    assert again.description["network"]["activation"] == "function mine"
    assert "network.activation" in again.status["problem"]


def test_several_results_on_one_page(result: gr.Measurement, tmp_path: Path) -> None:
    page = gr.write_page({"First <b>": result, "Second": result}, tmp_path / "page")
    html = page.read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == 4
    assert "First &lt;b&gt;" in html
    assert gr.load(tmp_path / "page" / "2").to_dict() == result.to_dict()
