"""Convert what tools return: classes that can be rebuilt to data and back, others to JSON.

A tool may return anything. Unless it has a parser of its own, the framework makes JSON of it for
the model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from inspect import unwrap
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

from agent_framework import Content, FunctionTool
from pydantic import BaseModel, TypeAdapter

from tracefork_agent_framework.outcomes import Outcome
from tracefork_core.adapters import FrameworkValues

_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}
_ANYTHING: TypeAdapter[object] = TypeAdapter(object)
_CONTAINERS = (list, tuple, set, frozenset)


class Values(FrameworkValues):
    """Converts the results of one tool.

    Args:
        function: what the tool calls: its annotation names classes of the program.
    """

    tag = "agent-framework"

    def __init__(self, function: Callable[..., object] | None = None) -> None:
        self._known = {kind.__name__: kind for kind in _classes(_annotation(function))}

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if isinstance(value, Outcome):
            return {it.name: getattr(value, it.name) for it in dataclasses.fields(Outcome)}
        if isinstance(value, Content):
            return {"value": value.to_dict()}
        if self._known.get(kind.__name__) is kind:
            return {"value": TypeAdapter(kind).dump_python(value, mode="json")}
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == Outcome.__name__:
            return Outcome(**fields)
        if name == Content.__name__:
            return Content.from_dict(fields["value"])
        return TypeAdapter(self._known[name]).validate_json(json.dumps(fields["value"]))

    def storable(self, value: object) -> object:
        """Return a value that a replay can rebuild: itself, or what the model gets for it."""
        if self._hold(value):
            return value
        return json.loads(json.dumps(FunctionTool._make_dumpable(value), default=str))  # noqa: SLF001

    def _hold(self, value: Any) -> bool:
        if isinstance(value, _CONTAINERS):
            return all(map(self._hold, value))
        if type(value) is dict:
            return all(self._hold(part) for pair in value.items() for part in pair)
        return type(value) in _PLAIN or self.fields(value) is not None


def as_json(value: object) -> Any:
    """Return arguments or state as JSON, to be compared."""
    return _ANYTHING.dump_python(value, mode="json", fallback=repr)


def _annotation(function: Callable[..., object] | None) -> object:
    try:
        return get_type_hints(unwrap(function)).get("return") if function else None
    except Exception:  # noqa: BLE001 - a name that is not defined: the tool runs all the same
        return None


def _classes(annotation: object) -> Iterator[type]:
    """Yield the classes of the program that an annotation names, which hold data."""
    for part in get_args(annotation):
        yield from _classes(part)
    if isinstance(annotation, type) and (
        issubclass(annotation, (BaseModel, Enum)) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
