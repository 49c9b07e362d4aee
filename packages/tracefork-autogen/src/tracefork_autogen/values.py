"""Convert what tools return: classes that can be rebuilt to data and back, others to text.

AutoGen makes a text of each result for the model, by `return_value_as_string` of the tool. So a
result that no replay could rebuild is replaced by that text, in the recording, too.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, cast, get_args
from uuid import UUID

from autogen_core.tools import ToolResult
from pydantic import BaseModel, TypeAdapter

from tracefork_core.adapters import FrameworkValues

_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}
_ANYTHING: TypeAdapter[object] = TypeAdapter(object)
_CONTAINERS = (list, tuple, set, frozenset)


class Rendered(str):
    """The text that a model gets for a result; no further text is made of it."""

    __slots__ = ()


class Values(FrameworkValues):
    """Converts the results of one tool.

    Args:
        kinds: classes that hold data, besides those of AutoGen's own results.
    """

    tag = "autogen"

    def __init__(self, kinds: Iterable[Any] = ()) -> None:
        self._known = {kind.__name__: kind for kind in (ToolResult, *kinds)}

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if kind is Rendered:
            return {"text": str(value)}
        if self._class_called(kind.__name__) is kind:
            return {"value": TypeAdapter(kind).dump_python(value, mode="json")}
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if name == Rendered.__name__:
            return Rendered(fields["text"])
        return TypeAdapter(self._class_called(name)).validate_json(json.dumps(fields["value"]))

    def said(self, text: str) -> object:
        return Rendered(text)

    def hold(self, value: Any) -> bool:
        """Return whether a replay can rebuild a value."""
        if isinstance(value, _CONTAINERS):
            return all(map(self.hold, value))
        if type(value) is dict:
            return all(self.hold(part) for pair in value.items() for part in pair)
        return type(value) in _PLAIN or type(value) is Rendered or self._comes_back(value)

    def _class_called(self, name: str) -> Any:
        return self._known.get(name) or _messages().get(name)

    def _comes_back(self, value: object) -> bool:
        try:
            data = self.encode(value)
            return data is not value and self.encode(self.decode(data)) == data
        except Exception:  # noqa: BLE001 - a class of the user's may raise anything
            return False


def _messages() -> dict[str, type]:
    """Return the classes of messages and events, which tools that yield pass to their agents."""
    loaded = sys.modules.get("autogen_agentchat.messages")
    if loaded is None:
        return {}
    found: dict[str, type] = {}
    waiting: list[type] = [loaded.BaseChatMessage, loaded.BaseAgentEvent]
    while waiting:
        kind = waiting.pop()
        found[kind.__name__] = kind
        waiting.extend(kind.__subclasses__())
    return found


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON, to be compared: a program may give a tool more than a model can."""
    plain = _ANYTHING.dump_python(dict(arguments), mode="json", fallback=repr)
    return cast(dict[str, Any], plain)


def classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that an annotation names and that hold data."""
    for part in get_args(annotation):
        yield from classes_in(part)
    if isinstance(annotation, type) and (
        issubclass(annotation, (BaseModel, Enum)) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
