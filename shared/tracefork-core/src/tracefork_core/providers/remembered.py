"""Decode what is repeated once: a model is sent its whole history again with each question.

A question is split into raw JSON first. Messages and tools that were decoded before are the same
objects again. So nothing that was decoded may be changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from tracefork_core.providers.call import Message
from tracefork_core.providers.lenient import Json, parse

_MOST = 4_096
_LARGEST = 16 * 1024
"""Bytes of the longest text that is kept decoded: all of them take some 100 MB at most."""
_ARRAYS = 8
"""How many arrays of each name are kept: one for each conversation that takes turns with others."""
_SPLIT = frozenset({"messages", "input", "contents", "tools"})
_T = TypeVar("_T")

_begun: dict[str, list[tuple[bytes, list[Json]]]] = {}
"""The arrays that were decoded last, by name: the bytes up to the bracket, and the values."""
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def parse_question(raw: bytes) -> Json:
    """Decode a JSON document as `parse` does; what was in an earlier one is decoded only once."""
    if len(raw) < _LARGEST // 16 or not raw.startswith(b"{"):
        return parse(raw)
    try:
        question = {name: _field(name, bytes(value)) for name, value in _fields(raw).items()}
    except (ValueError, RecursionError):
        return parse(raw)
    return question


def remembered(read: Callable[[dict[str, Json]], _T]) -> Callable[[dict[str, Json]], _T]:
    """Return a function that reads a message as `read` does, and one of `parse_question` once."""

    def reading(message: dict[str, Json]) -> _T:
        if not isinstance(message, _Kept):
            return read(message)
        result: _T | None = message.results.get(read)
        if result is None:
            result = message.results[read] = read(message)
        return result

    return reading


class _Kept(dict[str, Json]):
    """A JSON object that is kept, with what functions made of it."""

    __slots__ = ("results",)

    def __init__(self, value: dict[str, Json]) -> None:
        super().__init__(value)
        self.results: dict[Callable[..., Any], Any] = {}


def added(before: tuple[Message, ...], after: tuple[Message, ...]) -> tuple[Message, ...] | None:
    """Return the messages that a question adds to the one before; None if it is another one.

    Messages that were decoded before are the same objects, so that this takes no time.
    """
    return after[len(before) :] if after[: len(before)] == before else None


def _field(name: str, raw: bytes) -> Json:
    if name in _SPLIT and raw.startswith(b"["):
        return _array(name, raw)
    return _element(raw)


def _array(name: str, raw: bytes) -> list[Json]:
    """Decode an array; if it starts with all of an array that was decoded last, only the rest."""
    begun = _begun.setdefault(name, [])
    for n, (start, known) in enumerate(begun):
        if raw.startswith(start) and (rest := raw[len(start) :].lstrip()).startswith(b","):
            found = known + [_element(bytes(one)) for one in _elements(b"[" + rest[1:])]
            del begun[n]
            break
    else:
        found = [_element(bytes(one)) for one in _elements(raw)]
    if found and len(raw) <= _LARGEST * _ARRAYS:
        begun.insert(0, (raw[:-1].rstrip(), found))
        del begun[_ARRAYS:]
    return list(found)


def _element(raw: bytes) -> Json:
    return _kept(raw) if len(raw) <= _LARGEST else _decoded(raw)


def _decoded(raw: bytes) -> Json:
    """Decode a part of a question.

    Raises:
        ValueError: it nests too deep; then the whole is no question.
    """
    value = parse(raw)
    if value is None and raw != b"null":
        raise ValueError
    return value


@lru_cache(_MOST)
def _kept(raw: bytes) -> Json:
    value = _decoded(raw)
    return _Kept(value) if isinstance(value, dict) else value
