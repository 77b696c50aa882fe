"""Refuse what cannot fit in memory before it is allocated, instead of being killed by the system afterwards."""

import psutil

from gradrank.foundation.errors import InputError


def human_bytes(count: float) -> str:
    """Return a byte count in binary units: ``human_bytes(3 * 2**30) == '3.0 GiB'``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def available_memory() -> int:
    """Return the bytes of main memory that can be used now without swapping."""
    return int(psutil.virtual_memory().available)


def require_memory(field: str, needed: float, advice: str) -> None:
    """Raise an `InputError` naming ``field`` if ``needed`` bytes are more than the memory available."""
    available = available_memory()
    if needed > available:
        raise InputError(
            f"{field}: needs {human_bytes(needed)} of memory, {human_bytes(available)} are available; {advice}"
        )
