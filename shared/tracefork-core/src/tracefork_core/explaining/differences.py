"""List where two requests differ, as JSON pointers with both values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracefork_core.matching.comparable import Form
from tracefork_core.matching.matchers import is_ignored
from tracefork_core.tape import Exchange
from tracefork_core.tape.event import RequestRecord
from tracefork_core.tape.json_pointer import escaped

MISSING = object()
"""Stands for a value that only the other request has."""

_SHOWN = 60
# Python's recursion limit is near 1,000 frames; provider requests nest a dozen levels.
_DEEPEST = 100

Place = tuple[str, object, object]
"""A JSON pointer and the values of both requests there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two requests differ, with both values as short printable text."""

    pointer: str
    recorded: str
    actual: str


def differences(form: Form, exchange: Exchange, matchers: Sequence[str] = ()) -> list[Difference]:
    """List where a request differs from a recorded one: method, URL and headers, then the body."""
    differing: list[Difference] = []
    for pointer, recorded, actual in head_places(exchange.request, form.record):
        texts = "—" if recorded is None else recorded, "—" if actual is None else actual
        differing.append(Difference(pointer, *(_windows(*texts) if pointer == "url" else texts)))
    if exchange.request.body != form.record.body:
        differing += body_differences(exchange.request_body, form.body)
    return [d for d in differing if not is_ignored(d.pointer, matchers)]


def body_differences(before: bytes, now: bytes) -> list[Difference]:
    """List where two bodies differ, as short texts; empty if they are equal."""
    differing: list[Difference] = []
    if before == now:
        return differing
    for pointer, recorded, actual in body_places(before, now):
        if isinstance(recorded, str) and isinstance(actual, str):
            differing.append(Difference(pointer, *_windows(recorded, actual)))
        else:
            differing.append(Difference(pointer, _short(recorded), _short(actual)))
    return differing


def head_places(
    before: RequestRecord, now: RequestRecord
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield where two requests differ before their bodies; None stands for a missing header."""
    if before.method != now.method:
        yield "method", before.method, now.method
    if before.url != now.url:
        yield "url", before.url, now.url
    headers, headers_now = dict(before.headers), dict(now.headers)
    for name in sorted(headers.keys() | headers_now.keys()):
        if headers.get(name) != headers_now.get(name):
            yield f"headers/{name}", headers.get(name), headers_now.get(name)


def body_places(before: bytes, now: bytes, *, reordered_whole: bool = False) -> list[Place]:
    """List where two bodies differ; `MISSING` stands for a value that one of them lacks.

    With `reordered_whole`, a list whose items only changed places is one place. Bodies that are not
    JSON, or the same JSON in another spelling, differ at the pointer "body" as text.
    """
    try:
        places = list(_leaves(json.loads(before), json.loads(now), "", reordered_whole, 0))
    except (ValueError, RecursionError):
        places = []
    return places or [("body", before.decode("utf-8", "replace"), now.decode("utf-8", "replace"))]


def value_places(before: object, now: object) -> list[Place]:
    """List where two JSON values differ; `MISSING` stands for a value that one of them lacks."""
    return list(_leaves(before, now, "", reordered_whole=False, depth=0))


def _leaves(
    before: object, now: object, pointer: str, reordered_whole: bool, depth: int
) -> Iterator[Place]:
    if isinstance(before, dict) and isinstance(now, dict) and depth < _DEEPEST:
        for key in [*now, *(key for key in before if key not in now)]:
            pair = before.get(key, MISSING), now.get(key, MISSING)
            yield from _leaves(*pair, f"{pointer}/{escaped(key)}", reordered_whole, depth + 1)
    elif isinstance(before, list) and isinstance(now, list) and depth < _DEEPEST:
        if reordered_whole and before != now and _counted(before) == _counted(now):
            yield pointer, before, now
            return
        for i in range(max(len(before), len(now))):
            pair = _at(before, i), _at(now, i)
            yield from _leaves(*pair, f"{pointer}/{i}", reordered_whole, depth + 1)
    elif type(before) is not type(now) or before != now:
        # Types count: 1, 1.0 and true are equal in Python, but not to a provider.
        yield pointer, before, now


def _counted(items: list[object]) -> Counter[str]:
    return Counter(json.dumps(item, sort_keys=True) for item in items)


def _at(items: list[object], i: int) -> object:
    return items[i] if i < len(items) else MISSING


def _short(value: object) -> str:
    if value is MISSING:
        return "—"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _windows(before: str, now: str) -> tuple[str, str]:
    """Cut both texts to the neighbourhood of their first difference."""
    start = max(0, _shared(before, now) - _SHOWN // 2)
    return _cut(before, start), _cut(now, start)


def _shared(before: str, now: str) -> int:
    """Return the length of the common prefix, by bisection: bodies can be megabytes."""
    same, upto = 0, min(len(before), len(now))
    while same < upto:
        half = (same + upto + 1) // 2
        if before[same:half] == now[same:half]:
            same = half
        else:
            upto = half - 1
    return same


def _cut(text: str, start: int) -> str:
    piece = text[start : start + _SHOWN]
    return ("…" if start else "") + piece + ("…" if start + _SHOWN < len(text) else "")
