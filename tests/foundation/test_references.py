import math
from collections import OrderedDict
from pathlib import Path

import pytest

from gradrank.foundation.errors import InputError
from gradrank.foundation.references import is_reference, resolve


@pytest.mark.parametrize(
    ("name", "expected"),
    [("math:erf", True), ("a.b:c.d", True), ("relu", False), (":f", False), ("m:", False), ("", False)],
)
def test_form_of_a_reference(name: str, expected: bool) -> None:
    assert is_reference(name) is expected


def test_functions_and_attributes_of_attributes_are_found() -> None:
    assert resolve("loss", "math:erf") is math.erf
    assert resolve("loss", "collections:OrderedDict.fromkeys") == OrderedDict.fromkeys


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("no_such_module_here:f", "ModuleNotFoundError"),
        ("math:no_such_name", "AttributeError"),
        ("math:pi", "is a float; give module:name of a function"),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_field(reference: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        resolve("loss", reference)
    assert str(caught.value).startswith(f"loss: '{reference}'")


def test_module_that_fails_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_on_import.py").write_text("raise RuntimeError('first\\nsecond')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"RuntimeError: first second") as caught:
        resolve("loss", "fails_on_import:f")
    assert "\n" not in str(caught.value)
