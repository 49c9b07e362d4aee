"""Convert what tools return: classes that can be rebuilt to data and back, others to JSON.

A tool may return anything. ADK passes it to callbacks as it is, and to the model as JSON.
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

from google.genai import types
from pydantic import BaseModel, TypeAdapter

from tracefork_core.adapters import FrameworkValues
from tracefork_google_adk.actions import Outcome

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

    tag = "google-adk"

    def __init__(self, function: Callable[..., object] | None = None) -> None:
        self._known = {kind.__name__: kind for kind in _classes(_annotation(function))}

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if kind is Outcome:
            return {it.name: getattr(value, it.name) for it in dataclasses.fields(Outcome)}
        if getattr(types, kind.__name__, None) is kind and isinstance(value, BaseModel):
            return {"value": value.model_dump(mode="json", exclude_none=True)}
        if self._known.get(kind.__name__) is kind:
            return {"value": TypeAdapter(kind).dump_python(value, mode="json")}
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == Outcome.__name__:
            return Outcome(**fields)
        kind = self._known.get(name) or getattr(types, name)
        return TypeAdapter(kind).validate_json(json.dumps(fields["value"]))

    def storable(self, value: object) -> object:
        """Return a value that a replay can rebuild: itself, or what the model gets for it."""
        if self._hold(value):
            return value
        return _ANYTHING.dump_python(value, mode="json", fallback=repr)

    def _hold(self, value: Any) -> bool:
        if isinstance(value, _CONTAINERS):
            return all(map(self._hold, value))
        if type(value) is dict:
            return all(self._hold(part) for pair in value.items() for part in pair)
        return type(value) in _PLAIN or self.fields(value) is not None


def _annotation(function: Callable[..., object] | None) -> object:
    try:
        return get_type_hints(unwrap(function)).get("return") if function else None
    except Exception:  # noqa: BLE001 - a name that is not defined: ADK runs the tool all the same
        return None


def _classes(annotation: object) -> Iterator[type]:
    """Yield the classes of the program that an annotation names, which hold data."""
    for part in get_args(annotation):
        yield from _classes(part)
    if isinstance(annotation, type) and (
        issubclass(annotation, (BaseModel, Enum)) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
