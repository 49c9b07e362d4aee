"""Limit how deep MessagePack extensions are nested: a crafted value could exhaust the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import ormsgpack

from tracefork_core import UsageError

OPTION = ormsgpack.OPT_NON_STR_KEYS
_TRUSTED = 4
"""How many nested extensions are decoded before the depth of the whole value is checked. A decoder
restarts its depth count in each extension, and the stack of a thread is finite."""
_DEEPEST = 200


class Reading:
    """The decoding of one value: the current extension depth, and the errors its hooks raised."""

    def __init__(self, body: bytes) -> None:
        self.failures: list[Exception] = []
        self._body = body
        self._depth = 0
        self._is_too_deep: bool | None = None

    def unpacked(self, data: bytes, hook: Callable[[int, bytes], Any]) -> Any:
        """Return the content of an extension.

        Raises:
            UsageError: the value is nested too deep.
        """
        self._depth += 1
        try:
            if self._depth > _TRUSTED:
                if self._is_too_deep is None:
                    self._is_too_deep = _is_too_deep(self._body)
                if self._is_too_deep:
                    raise UsageError(
                        "tracefork: a checkpoint holds a value nested more than "
                        f"{_DEEPEST} levels deep; tracefork refuses to read it."
                    )
            return ormsgpack.unpackb(data, ext_hook=hook, option=OPTION)
        finally:
            self._depth -= 1


def _is_too_deep(body: bytes) -> bool:
    """Return whether a value is nested too deep. Walks it level by level, without recursion."""
    try:
        level: list[object] = [msgspec.msgpack.decode(body)]
        for _ in range(_DEEPEST):
            level = [inner for value in level for inner in _inside(value)]
            if not level:
                return False
    except RecursionError:
        pass
    return True


def _inside(value: object) -> Iterable[object]:
    match value:
        case list() | tuple():
            return value
        case dict():
            return [*value.keys(), *value.values()]
        case msgspec.msgpack.Ext(data=data):
            return (msgspec.msgpack.decode(data),)
    return ()
