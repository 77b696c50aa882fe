"""Functions named as ``module:name``, so that a specification can hold a user's function and still be written down."""

import importlib
from collections.abc import Callable
from typing import Any

from gradrank.foundation.errors import InputError


def is_reference(name: str) -> bool:
    """Return whether ``name`` has the form ``module:name``."""
    module, colon, attribute = name.partition(":")
    return bool(module and colon and attribute)


def resolve(field: str, reference: str) -> Callable[..., Any]:
    """Import and return the function that ``reference`` names.

    Raises
    ------
    InputError
        If the module cannot be imported, has no such name, or the name is not callable.
    """
    module_name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # a user's module may fail in any way while it is imported
        raise InputError(
            f"{field}: '{reference}' cannot be imported ({type(error).__name__}: {error}); "
            "give module:name of a function that Python can import"
        ) from error
    if not callable(found):
        raise InputError(f"{field}: '{reference}' is a {type(found).__name__}; give module:name of a function")
    return found  # type: ignore[no-any-return]
