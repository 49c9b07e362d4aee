"""Convert what tools give to plain data and back: results, progress and interrupts.

A result is on the tape without the id of its call: a fork gives it another id.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from strands.interrupt import Interrupt

from tracefork_core.adapters import FrameworkValues


@dataclasses.dataclass(slots=True)
class Asks:
    """What a tool asks a person, in place of a result."""

    interrupts: list[Any]


@dataclasses.dataclass(slots=True)
class Progress:
    """What a tool yields before its result."""

    data: Any


_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (Asks, Interrupt, Progress)}


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


def plain(value: Any) -> Any:
    """Return what a tape can hold of a value: a mapping without its other items, or a text."""
    if VALUES.hold(value):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if _has_plain(item)}
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    return str(value)


def _has_plain(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple)) or VALUES.hold(value)
