"""Sweeps: the experiment that a TOML file describes, and one cell of it against a measurement."""

from pathlib import Path

import numpy as np
import pytest

import gradrank as gr
from gradrank.experiments.recorders import RECORDERS, dimensions, record
from gradrank.experiments.sweep import Sweep, cell
from gradrank.foundation.errors import InputError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("sweep-*.toml"))
SPECIFICATION = """
seeds = 2
record = ["norms", "alignments", "singular_values"]
k = 3
[grid]
"inputs.nu" = [0.0, 0.45]
"network.activation" = ["tanh", "relu"]
[grid.size]
"inputs.n" = [40, 60]
"inputs.d" = [50, 80]
[problem.network]
m = 70
"""


def test_axes_and_cells() -> None:
    one = Sweep.from_toml(SPECIFICATION).experiment()
    assert one.grid == {"nu": [0.0, 0.45], "activation": ["tanh", "relu"], "size": [40, 60]}
    assert one.size == 16
    assert one.outputs["alignment"] == ("direction", "index")
    assert one.coordinates["direction"] == ["q", "bulk_residue", "bulk_labels", "target_1", "target_2", "target_3"]


def test_a_cell_is_the_measurement_of_its_problem() -> None:
    one = Sweep.from_toml(SPECIFICATION).experiment()
    found = cell(**one.fixed, nu=0.45, activation="relu", size=60, seed=1)
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80, nu=0.45), network=gr.TwoLayer(m=70, activation="relu"))
    direct = gr.measure(problem, seed=1, k=3, prediction="off")
    parts = one.coordinates["part"]
    assert found["norm"][parts.index("residue_spike")] == pytest.approx(direct.norms["residue_spike"], rel=1e-12)
    assert np.isnan(found["norm"][parts.index("weight_decay")])
    assert found["singular_value"] == pytest.approx(direct.singular_values[:3], rel=1e-6)
    assert found["alignment"][0] == pytest.approx(direct.left_alignments["q"], abs=1e-4)
    for name, dims in one.outputs.items():
        assert found[name].shape == tuple(len(one.coordinates[dim]) for dim in dims)


def test_every_recorder_keeps_its_promise() -> None:
    problem = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80), network=gr.TwoLayer(m=70))
    shape = dimensions([problem], 2)
    found = record(problem, 0, list(RECORDERS), shape)
    for recorder in RECORDERS.values():
        for name, dims in recorder.outputs.items():
            assert found[name].shape == tuple(len(shape[dim]) for dim in dims)
            assert np.isfinite(found[name]).any() or name.startswith("fitted_")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_sweeps(path: Path) -> None:
    assert Sweep.from_toml(path).experiment().size > 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('record = ["norm"]', "record: 'norm' is not allowed; give one of .*did you mean 'norms'"),
        ('record = ["norms", "norms"]', "record: a name is given twice"),
        ("record = []", "record: .* give at least 1"),
        ("seeds = 0", "seeds: 0 is not allowed"),
        ("seeds = [1, 1]", "experiment.seeds: 1 is not allowed"),
        ('[grid]\n"inputs.nu" = 0.1', "grid.inputs.nu: 0.1 is not allowed; give a list"),
        ('[grid]\n"inputs.nu" = [0.1, -1.0]', "inputs.nu: -1.0 is not allowed"),
        ('[grid]\n"inputs.mu" = [0.1]', "inputs.mu: no such field"),
        ('[grid]\n"network" = ["a"]', "network: 'a' is not allowed; give a table of fields"),
        ('[grid]\n"targets.noise" = [0.1]\n[problem]\ntargets = "linear"', "'targets' is given as a word"),
        (
            '[grid.size]\n"inputs.n" = [40, 60]\n"inputs.d" = [50]',
            "grid.size: .* give fields that change together lists of one length",
        ),
        ('[grid.""]\n"inputs.nu" = [0.1]', "experiment: '' is not allowed; give names of letters"),
        ('[grid."../up"]\n"inputs.nu" = [0.1]', "experiment: '../up' is not allowed"),
        ('[grid."a/b"]\n"inputs.nu" = [0.1]', "experiment: 'a/b' is not allowed"),
        ('[grid."zarr.json"]\n"inputs.nu" = [0.1]', "experiment: 'zarr.json' is not allowed"),
        ('[grid.sweep]\n"inputs.nu" = [0.1]', "experiment.grid: 'sweep' is not allowed; it is a fixed argument"),
        ("seeds = [99999999999999999999]", "experiment.seeds: 99999999999999999999 is not allowed"),
        ('k = 25\n[grid]\n"network.m" = [20, 30]', "k: 25 is not allowed; give at most 20, the smallest of n, d and m"),
        ('[grid]\n"inputs.nu" = [0.1, 0.1]', r"grid.inputs.nu: \[0.1, 0.1\] is not allowed; give every value once"),
        ('[grid]\n"inputs.nu" = [0.0, -0.0]', "give every value once"),
        (
            '[grid]\n"inputs.nu" = [0.1]\n[grid.size]\n"inputs.nu" = [0.3]',
            "grid: 'inputs.nu' is not allowed; 'inputs.nu' is varied already, give each field once",
        ),
        ('[grid.a]\n"inputs.nu" = [0.1]\n[grid.b]\n"inputs.nu" = [0.3]', "'inputs.nu' is varied already"),
        (
            '[grid]\n"targets.noise" = [0.1]\n"targets" = ["linear"]',
            "'targets.noise' is not allowed; 'targets' is varied",
        ),
        ('seeds = ["3"]', "seeds: .* give a number of seeds, or a list of whole numbers"),
        ("seeds = [true, false]", "give a number of seeds, or a list of whole numbers"),
        ("seeds = 2.0", "give a number of seeds, or a list of whole numbers"),
        ("threads = 0", "threads: 0 is not allowed"),
        ("colour = 1", "colour: no such field"),
    ],
)
def test_bad_sweeps_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sweep.from_toml(text).experiment()


def test_linked_fields_of_any_name_and_with_repetitions() -> None:
    text = """
        seeds = 1
        record = ["norms"]
        [grid.shape]
        "inputs.n" = [40, 40]
        "inputs.d" = [50, 60]
        [grid.problem]
        "network.activation" = ["relu", "relu"]
        "network.scaling" = ["mf", "mf"]
        [problem.network]
        m = 30
    """
    one = Sweep.from_toml(text).experiment()
    assert one.grid == {"shape": [50, 60], "problem": [0, 1]}
    found = cell(**one.fixed, shape=60, problem=1, seed=0)
    problem = gr.Problem(
        inputs=gr.SpikedGaussian(n=40, d=60), network=gr.TwoLayer(m=30, activation="relu", scaling="mf")
    )
    direct = gr.measure(problem, seed=0, prediction="off").norms["gradient"]
    assert found["norm"][one.coordinates["part"].index("gradient")] == pytest.approx(direct, rel=1e-9)


def test_lists_and_tables_are_counted() -> None:
    text = """
        seeds = 1
        record = ["norms"]
        [grid]
        "targets.links" = [["linear", "tanh"], ["sin", "relu"]]
        network = [{m = 10}, {m = 20}]
        [problem]
        inputs = {n = 20, d = 15}
    """
    one = Sweep.from_toml(text).experiment()
    assert one.grid == {"links": [0, 1], "network": [0, 1]}
    found = cell(**one.fixed, links=1, network=1, seed=0)
    problem = gr.Problem(
        inputs=gr.SpikedGaussian(n=20, d=15), targets=gr.MultiIndex(links=("sin", "relu")), network=gr.TwoLayer(m=20)
    )
    direct = gr.measure(problem, seed=0, prediction="off").norms["gradient"]
    assert found["norm"][one.coordinates["part"].index("gradient")] == pytest.approx(direct, rel=1e-9)


def test_a_changed_file_makes_another_sweep(tmp_path: Path) -> None:
    path = tmp_path / "X.npy"
    sweep = Sweep.from_mapping(
        {
            "problem": {"inputs": {"kind": "data-file", "path": str(path)}},
            "grid": {"network.activation": ["relu", "tanh"]},
        }
    )
    digests = []
    for scale in (1.0, 1.0, 2.0):
        np.save(path, scale * np.random.default_rng(0).standard_normal((30, 20)))
        digests.append(sweep.experiment().digest)
    assert digests[0] == digests[1] != digests[2]
    path.unlink()
    with pytest.raises(InputError, match=r"X\.npy' cannot be read"):
        sweep.experiment()
