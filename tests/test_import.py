import subprocess
import sys

import pytest

import gradrank as gr


def loaded_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(' '.join(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_loads_no_heavy_packages() -> None:
    assert not {"matplotlib", "dask", "panel", "torch", "xarray"} & loaded_after("import gradrank")


def test_measuring_loads_no_plotting() -> None:
    assert not {"matplotlib.figure", "dask", "panel", "xarray"} & loaded_after(
        "import gradrank; gradrank.decompose; gradrank.Problem; gradrank.measure"
    )


@pytest.mark.parametrize("name", list(gr.__all__))
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(gr, name)
    assert name == "__version__" or value.__doc__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gr.nothing
