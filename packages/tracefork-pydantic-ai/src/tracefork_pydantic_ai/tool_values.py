"""Convert what tools return: classes that can be rebuilt to data and back, others to JSON.

A tool may return anything. pydantic-ai keeps it in the messages as it is, and sends it to the model
as JSON. A tape names no class of the program, so those are looked up where the tool's function
names them: in its annotation and in its code.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from inspect import unwrap
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

from pydantic import BaseModel, TypeAdapter
from pydantic_ai import messages
from pydantic_ai.messages import ToolReturn
from pydantic_core import to_jsonable_python

from tracefork_core.adapters import FrameworkValues

_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}
_CONTAINERS = (list, tuple, set, frozenset)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call that did more than return a result.

    `changes` are those of `tool_changes`, `error` is data of the exception that it raised.
    """

    result: object = None
    changes: list[Any] = dataclasses.field(default_factory=list)
    error: dict[str, Any] | None = None


class Values(FrameworkValues):
    """Converts the results of one tool.

    Args:
        function: what does the work: it names classes of the program.
    """

    tag = "pydantic-ai"

    def __init__(self, function: Callable[..., object] | None = None) -> None:
        found = (*_annotated(function), *_named(function))
        self._known = {kind.__name__: kind for kind in found}

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if kind is Outcome or kind is ToolReturn:
            given: Any = value
            return {it.name: getattr(given, it.name) for it in dataclasses.fields(given) if it.init}
        if self._class_named(kind.__name__) is kind:
            return {"value": TypeAdapter(kind).dump_python(value, mode="json")}
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == Outcome.__name__:
            return Outcome(**fields)
        if name == ToolReturn.__name__:
            return ToolReturn(**fields)
        kind = self._class_named(name)
        if kind is None:
            raise LookupError(name)
        return TypeAdapter(kind).validate_json(json.dumps(fields["value"]))

    def storable(self, value: object) -> object:
        """Return a value that a replay can rebuild: itself, or what the model gets for it."""
        if self.hold(value):
            return value
        if type(value) is ToolReturn:
            fields = self.fields(value) or {}
            return ToolReturn(**{name: self.storable(part) for name, part in fields.items()})
        if type(value) in _CONTAINERS:
            return [self.storable(item) for item in value]  # type: ignore[attr-defined] # iterable
        if type(value) is dict:
            return {key: self.storable(item) for key, item in value.items()}
        return plain(value)

    def hold(self, value: Any) -> bool:
        """Return whether a replay can rebuild a value."""
        if isinstance(value, _CONTAINERS):
            return type(value) in _CONTAINERS and all(map(self.hold, value))
        if type(value) is dict:
            return all(self.hold(part) for pair in value.items() for part in pair)
        if type(value) is ToolReturn:
            return all(map(self.hold, (self.fields(value) or {}).values()))
        return type(value) in _PLAIN or self._class_named(type(value).__name__) is type(value)

    def _class_named(self, name: str) -> type | None:
        kind = self._known.get(name) or getattr(messages, name, None)
        return kind if isinstance(kind, type) and _holds_data(kind) else None


def plain(value: object) -> Any:
    """Return a value as JSON, as the model would get it; objects without that as their class."""
    return to_jsonable_python(value, bytes_mode="base64", fallback=_name)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _annotated(function: Any) -> Iterator[type]:
    """Yield the classes in the annotation of what a function returns."""
    try:
        hints = get_type_hints(unwrap(function)) if function else {}
    except Exception:  # noqa: BLE001 - a name that is not defined: the tool runs all the same
        return
    yield from _in_annotations([hints.get("return")])


def _in_annotations(annotations: Iterable[object]) -> Iterator[type]:
    for part in annotations:
        yield from _in_annotations(get_args(part))
        if isinstance(part, type) and _holds_data(part):
            yield part


def _named(function: Any) -> Iterator[type]:
    """Yield the classes that the code of a function names."""
    function = unwrap(getattr(function, "__func__", function)) if function else None
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    known = getattr(function, "__globals__", {})
    for name in names:
        if isinstance(kind := known.get(name), type) and _holds_data(kind):
            yield kind
    for cell in getattr(function, "__closure__", None) or ():
        try:
            kind = cell.cell_contents
        except ValueError:  # It is filled later.
            continue
        if isinstance(kind, type) and _holds_data(kind):
            yield kind


def _holds_data(kind: type) -> bool:
    return issubclass(kind, (BaseModel, Enum)) or dataclasses.is_dataclass(kind)
