"""Convert what tools return and raise: what can be rebuilt to data and back, the rest to JSON.

A tool may return anything. pydantic-ai keeps it in the messages as it is, and sends it to the model
as JSON. A tape names no class of the program, so those are looked up where the tool's function
names them: in its annotation and in its code.

Exceptions that a message alone does not rebuild come with their data. `ModelRetry` and `ToolFailed`
have a message and nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from inspect import unwrap
from typing import Any

from pydantic import ValidationError
from pydantic_ai import exceptions, messages
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import ToolReturn
from pydantic_core import InitErrorDetails, PydanticCustomError, to_jsonable_python

from tracefork_core.adapters import ProgramValues, holds_data, result_classes

RAISED = tuple(
    getattr(exceptions, name)
    for name in (
        *("ModelRetry", "ToolFailed", "UnexpectedModelBehavior", "UsageLimitExceeded"),
        "UserError",
    )
    if hasattr(exceptions, name)
)
"""Exceptions of pydantic-ai that a message rebuilds; not each version has them all."""


class ToolValues(ProgramValues):
    """Converts the results of one tool.

    Args:
        function: what does the work: it names classes of the program.
    """

    tag = "pydantic-ai"

    def __init__(self, function: Callable[..., object] | None = None) -> None:
        super().__init__((*result_classes(function), *_named(function)))

    def class_named(self, name: str) -> type | None:
        kind = super().class_named(name) or getattr(messages, name, None)
        return kind if isinstance(kind, type) and holds_data(kind) else None

    def fields(self, value: object) -> dict[str, Any] | None:
        if isinstance(value, Exception):
            return _data_of(value)
        if type(value) is ToolReturn:
            given: Any = value
            return {it.name: getattr(given, it.name) for it in dataclasses.fields(given) if it.init}
        return super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        match name:
            case "ToolReturn":
                return ToolReturn(**fields)
            case "ApprovalRequired":
                return ApprovalRequired(**fields)
            case "CallDeferred":
                return CallDeferred(**fields)
            case "ValidationError":
                errors = [
                    InitErrorDetails(
                        type=PydanticCustomError(it["type"], it["msg"]),
                        loc=tuple(it["loc"]),
                        input=it["input"],
                    )
                    for it in fields["errors"]
                ]
                return ValidationError.from_exception_data(fields["title"], errors)
        return super().built(name, fields)

    def storable(self, value: object) -> object:
        """Return a value that a replay can rebuild: itself, or what the model gets for it."""
        if self.hold(value):
            return value
        if type(value) is ToolReturn:
            fields = self.fields(value) or {}
            return ToolReturn(**{name: self.storable(part) for name, part in fields.items()})
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.storable(item) for item in value]
        if type(value) is dict:
            return {key: self.storable(item) for key, item in value.items()}
        return plain(value)


def _data_of(error: Exception) -> dict[str, Any] | None:
    """Return the data of an exception; None if its message says all of it."""
    match error:
        case ApprovalRequired():
            return {"metadata": plain(error.metadata)}
        case CallDeferred():
            kind = getattr(error, "kind", None)  # Older versions have none.
            options = {} if kind is None else {"kind": kind}
            return {"metadata": plain(error.metadata), **options}
        case ValidationError():
            found = [
                {name: plain(it[name]) for name in ("type", "loc", "msg", "input")}
                for it in error.errors(include_url=False)
            ]
            return {"title": error.title, "errors": found}
    return None


def plain(value: object) -> Any:
    """Return a value as JSON, as the model would get it; objects without that as their class."""
    return to_jsonable_python(value, bytes_mode="base64", fallback=_name)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _named(function: Any) -> Iterator[type]:
    """Yield the classes that the code of a function names."""
    function = unwrap(getattr(function, "__func__", function)) if function else None
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    known = getattr(function, "__globals__", {})
    for name in names:
        if isinstance(kind := known.get(name), type) and holds_data(kind):
            yield kind
    for cell in getattr(function, "__closure__", None) or ():
        try:
            kind = cell.cell_contents
        except ValueError:  # It is filled later.
            continue
        if isinstance(kind, type) and holds_data(kind):
            yield kind
