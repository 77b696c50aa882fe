import numpy as np
import psutil
import pytest

from gradrank.foundation import memory
from gradrank.foundation.errors import InputError


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**40, "1.0 TiB"),
        (2**51, "2048.0 TiB"),
    ],
)
def test_bytes_in_binary_units(count: int, text: str) -> None:
    assert memory.human_bytes(count) == text


def test_available_memory_is_no_more_than_the_machine_has() -> None:
    assert 0 < memory.available_memory() <= psutil.virtual_memory().total


def test_what_fits_passes_and_what_does_not_names_field_sizes_and_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    memory.require_memory("inputs", 2.0**20, "give a smaller n")
    with pytest.raises(InputError, match=r"^inputs: needs 1\.5 MiB .*1\.0 MiB are available; give a smaller n$"):
        memory.require_memory("inputs", 1.5 * 2**20, "give a smaller n")


def test_an_impossible_size_is_refused_on_any_machine() -> None:
    with pytest.raises(InputError, match=r"^network\.m: needs"):
        memory.require_memory("network.m", float(np.finfo(float).max), "give a smaller m")
