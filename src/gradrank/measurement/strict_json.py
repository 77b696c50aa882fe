"""Strict JSON: a number that is not finite is written as null, and its place and reason are kept under ``status``."""

import json
import math
from typing import Any


def strict(value: Any, status: dict[str, str], path: str = "") -> Any:
    """Return ``value`` with every NaN and infinity replaced by None; ``status[path]`` gets a reason where it has none."""
    if isinstance(value, dict):
        return {str(key): strict(part, status, f"{path}.{key}".lstrip(".")) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(part, status, f"{path}.{index}") for index, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        if not any(path == known or path.startswith(f"{known}.") for known in status):
            status[path] = "not a finite number"
        return None
    return value


def dumps(value: dict[str, Any]) -> str:
    """Return strict JSON text; raises ValueError on a NaN that was not withheld."""
    return json.dumps(value, allow_nan=False, indent=2, ensure_ascii=False)
