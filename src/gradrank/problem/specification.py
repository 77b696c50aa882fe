"""`Specification`: the frozen pydantic base whose errors are one line each, naming field, value and what is allowed."""

import re
from collections.abc import Iterable
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import allowed_names


class Specification(BaseModel):
    """A frozen, serialisable description; an unknown field or a bad value is an `InputError` of one line."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise one_line(error, type(self)) from None

    # As in pydantic's own subclasses: nested specifications are then validated with the whole, and an error keeps the
    # path from the top. Otherwise their __init__ would be called and name the last field alone.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_values(cls, value: Any) -> Any:
        """Refuse true and false, which pydantic would take for 1 and 0: no field is a switch."""
        if isinstance(value, bool):
            raise ValueError("give a number, a name or a table of fields")
        return value

    @classmethod
    def from_mapping(cls, fields: Any) -> Self:
        """Build from a mapping, as read from TOML or JSON.

        Raises
        ------
        InputError
            If a field is unknown, missing or has a value that is not allowed.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise one_line(error, cls) from None


def one_line(error: ValidationError, model: type[BaseModel]) -> InputError:
    """Turn pydantic's report into one line about the first fault: where, what, and what is allowed."""
    details = error.errors(include_url=False)
    if isinstance(cause := details[0].get("ctx", {}).get("error"), InputError):
        return cause if len(details) == 1 else InputError(str(cause))
    fault = next((d for d in details if d["type"] != "extra_forbidden"), details[0])
    field = _dotted(fault["loc"])
    if fault["type"] == "extra_forbidden":
        *outer, name = fault["loc"]
        field = ".".join([*_parts(outer), str(name)])
        return InputError(f"{field}: no such field; {allowed_names(str(name), _fields_at(model, outer))}")
    if fault["type"] == "missing":
        return InputError(f"{field}: is missing; give a value")
    if fault["type"] == "union_tag_invalid":
        return unusable(f"{field}.kind", fault["ctx"]["tag"], _allowed(fault))
    message = str(cause) if (cause := fault.get("ctx", {}).get("error")) else _allowed(fault)
    if cause and re.match(r"[a-z_.]+: ", message):  # from a check of several fields, which names the one at fault
        return InputError(".".join([*_parts(fault["loc"]), message]))
    return unusable(field, fault["input"], message)


def _dotted(location: Iterable[int | str]) -> str:
    """Join a location with dots; the whole has no name of its own."""
    return ".".join(_parts(location)) or "problem"


def _parts(location: Iterable[int | str]) -> list[str]:
    """Return a location without the tags that pydantic adds for the members of a union."""
    return [str(part) for part in location if not _is_tag(part)]


def _is_tag(part: int | str) -> bool:
    return isinstance(part, str) and (part.startswith(("function-", "tagged-")) or "[" in part or "-" in part)


def _fields_at(model: type[BaseModel], location: Iterable[int | str]) -> list[str]:
    """Return the field names of the model found at ``location`` below ``model``."""
    tags = [part for part in location if isinstance(part, str)]
    for part in tags:
        field = model.model_fields.get(part)
        if field is None:
            continue
        members = [t for t in (field.annotation, *_arguments(field.annotation)) if _is_model(t)]
        tagged = [t for t in members if t.model_fields.get("kind") and t.model_fields["kind"].default in tags]
        if tagged or members:
            model = (tagged or members)[0]
    return list(model.model_fields)


def _arguments(annotation: Any) -> list[Any]:
    found: list[Any] = []
    for argument in getattr(annotation, "__args__", ()):
        found += [argument, *_arguments(argument)]
    return found


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _allowed(fault: ErrorDetails) -> str:
    """Say what is allowed instead, for one of pydantic's faults."""
    context = fault.get("ctx", {})
    kind = fault["type"]
    if kind in ("greater_than_equal", "greater_than", "less_than_equal", "less_than"):
        words = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}
        return " ".join(["give a number", *(f"{words[key]} {value}" for key, value in context.items() if key in words)])
    if kind == "literal_error":
        expected = [name.strip(" '") for name in str(context["expected"]).replace(" or ", ", ").split(",")]
        return allowed_names(str(fault["input"]), expected)
    if kind == "union_tag_invalid":
        expected = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
        return allowed_names(str(context["tag"]), expected)
    if kind == "union_tag_not_found":
        return "give a name or a table of fields"
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return "give a table of fields"
    if kind == "too_short":
        return f"give at least {context['min_length']}"
    if kind == "path_type":
        return "give a path"
    if kind.startswith("int"):
        return "give a whole number"
    if kind.startswith("float") or kind == "finite_number":
        return "give a finite number"
    if kind.startswith("bool"):
        return "give true or false"
    message = fault["msg"]
    return message[0].lower() + message[1:]
