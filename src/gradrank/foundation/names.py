"""Looking things up by name, with the nearest name suggested when there is none."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from gradrank.foundation.errors import unusable

T = TypeVar("T")


def allowed_names(name: str, names: Iterable[str]) -> str:
    """Return the sentence that lists ``names`` and suggests the one nearest to ``name``."""
    known = sorted(names)
    folded = {known_name.lower(): known_name for known_name in known}
    nearest = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.5)
    suggestion = f" (did you mean '{folded[nearest[0]]}'?)" if nearest else ""
    return f"give one of {', '.join(known)}{suggestion}"


def look_up(field: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or raise an `InputError` that names the field and suggests the nearest name."""
    try:
        return table[name]
    except KeyError:
        raise unusable(field, name, allowed_names(name, table)) from None
