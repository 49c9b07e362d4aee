"""Encode what tools return as data, and decode it: CrewAI's classes and pydantic models by field.

    {"crewai": "ToolFailure", "fields": {"message": "no such channel", ...}}
    {"crewai": "dict", "pairs": [["crewai", "a dictionary that would look like a class"]]}

No class is imported because a tape names it. A name on a tape is looked up in one table, which
holds the classes below and those that the tool's own code declares, by its annotation or
`result_schema`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
from crewai.tools.tool_failure import ToolFailure
from pydantic import BaseModel

from tracefork_core.adapters import FrameworkValues

_OF_CREWAI: tuple[type[BaseModel], ...] = (MemoryMatch, MemoryRecord, ScopeInfo, ToolFailure)

_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}
_CONTAINERS = (list, tuple, set, frozenset)


class Values(FrameworkValues):
    """Encodes the results of one tool. `declared` are the classes that its code names."""

    tag = "crewai"

    def __init__(self, declared: Iterable[type] = ()) -> None:
        declared = list(declared)
        models = (kind for kind in declared if issubclass(kind, BaseModel))
        self._models: dict[str, type[BaseModel]] = {
            kind.__name__: kind for kind in (*models, *_OF_CREWAI)
        }
        self._others = frozenset(declared) - {*self._models.values()}

    def hold(self, value: object) -> bool:
        """Return whether a replay could restore a value with its own type."""
        kind = type(value)
        if kind in _PLAIN or _is_number(value):
            return True
        if kind is dict and isinstance(value, dict):
            return all(self.hold(part) for pair in value.items() for part in pair)
        if kind in _CONTAINERS and isinstance(value, _CONTAINERS):
            return all(map(self.hold, value))
        if self._models.get(kind.__name__) is kind and isinstance(value, BaseModel):
            return kind in _OF_CREWAI or (self.hold(_fields(value)) and _comes_back(value))
        return kind in self._others

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if self._models.get(kind.__name__) is not kind or not isinstance(value, BaseModel):
            return None
        return {"fields": _fields(value)}  # Nested: a model's own field may be called like the tag.

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return self._models[name].model_validate(fields["fields"])

    def encode(self, value: object) -> object:
        return value.item() if _is_number(value) else super().encode(value)  # type: ignore[attr-defined]


def declared_by(function: Callable[..., Any], schema: object = None) -> Iterator[type]:
    """Yield the classes that a tool's code declares for its results."""
    if isinstance(schema, type):
        yield schema
    try:
        returned = get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 - an annotation that cannot be resolved declares nothing
        return
    yield from _classes_in(returned)


def _classes_in(annotation: object) -> Iterator[type]:
    parts = get_args(annotation)
    if not parts and isinstance(annotation, type):
        named = issubclass(annotation, (BaseModel, Enum)) or hasattr(annotation, "_fields")
        if named or dataclasses.is_dataclass(annotation):
            yield annotation
    for part in parts:
        yield from _classes_in(part)


def _fields(value: BaseModel) -> dict[str, object]:
    fields: dict[str, object] = _plain(value.model_dump(by_alias=True, round_trip=True))
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value  # The model that it is a field of restores the enum.
    if type(value) is dict:
        return {_plain(name): _plain(item) for name, item in value.items()}
    kind = type(value)
    return kind(map(_plain, value)) if kind is list or kind is tuple else value


def _comes_back(value: BaseModel) -> bool:
    try:
        return bool(type(value).model_validate(_fields(value)) == value)
    except Exception:  # noqa: BLE001 - a model may reject its own dump
        return False


def _is_number(value: object) -> bool:
    """Return whether a value is a numpy scalar, as the scores of a search are."""
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
