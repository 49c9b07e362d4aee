"""Convert what tools give to plain data and back: results, progress and interrupts.

A result is on the tape without the id of its call: a fork gives it another id.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from strands.interrupt import Interrupt

from tracefork_core import ToolError
from tracefork_core.adapters import FrameworkValues

_PLAIN = frozenset(
    (type(None), bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID)
) | {type(Path())}


@dataclasses.dataclass(slots=True)
class Outcome:
    """What a call led to besides a result alone.

    Attributes:
        result: the result; None if the tool asks a person instead.
        interrupts: what it asks.
        changes: what the tool changed in the agent and in the state of the run.
        failure: the class and the text of the error with which it failed after its changes.
    """

    result: Any
    interrupts: list[Any]
    changes: list[Any]
    failure: list[str] | None = None

    @classmethod
    def failed(cls, error: Exception, changes: list[Any]) -> Outcome:
        """Return the outcome of a tool that changed something and failed."""
        text = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)
        return cls(None, [], changes, [_name(type(error)), text])

    def error(self, listed: Iterable[type[Exception]]) -> Exception | None:
        """Return the error of the tool: of its class if that is a builtin one or listed."""
        if self.failure is None:
            return None
        name, text = self.failure
        kinds = {_name(kind): kind for kind in listed}
        kind = kinds.get(name) or getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):  # Not any name of a tape.
            with suppress(Exception):  # Or it cannot be built from a message alone.
                return kind(text)
        return ToolError(name, text)


@dataclasses.dataclass(slots=True)
class Progress:
    """What a tool yields before its result."""

    data: Any


def _name(kind: type) -> str:
    is_builtin = kind.__module__ == "builtins"
    return kind.__name__ if is_builtin else f"{kind.__module__}.{kind.__qualname__}"


_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (Interrupt, Outcome, Progress)}


class Values(FrameworkValues):
    """Converts the classes of this module."""

    tag = "strands"

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if _CLASSES.get(kind.__name__) is not kind:
            return None
        return {it.name: getattr(value, it.name) for it in dataclasses.fields(kind)}

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return _CLASSES[name](**fields)

    def said(self, text: str) -> object:
        return {"status": "success", "content": [{"text": text}]}

    def failed(self, text: str) -> dict[str, Any]:
        """Return what Strands makes of a tool that fails."""
        return {"status": "error", "content": [{"text": text}]}


VALUES = Values()


def is_plain(value: Any) -> bool:
    """Return whether a tape holds a value as it is."""
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    return type(value) in _PLAIN


def plain(value: Any) -> Any:
    """Return what a tape can hold of a value: a mapping without its other items, or a text."""
    if is_plain(value):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if _has_plain(item)}
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    return str(value)


def _has_plain(value: Any) -> bool:
    return is_plain(value) or isinstance(value, (Mapping, list, tuple))
