"""Where a request differs from a recorded one, place by place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracefork_core.matching.comparable import Form
from tracefork_core.matching.matchers import is_ignored
from tracefork_core.tape import Exchange
from tracefork_core.tape.json_pointer import escaped

_MISSING = object()
_SHOWN = 60
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two requests differ, as short printable text."""

    pointer: str
    recorded: str
    actual: str


def differences(form: Form, exchange: Exchange, matchers: Sequence[str] = ()) -> list[Difference]:
    """List where a request differs from a recorded one, most telling first."""
    recorded, actual = exchange.request, form.record
    found: list[Difference] = []
    if recorded.method != actual.method:
        found.append(Difference("method", recorded.method, actual.method))
    if recorded.url != actual.url:
        found.append(Difference("url", *_windows(recorded.url, actual.url)))
    before, now = dict(recorded.headers), dict(actual.headers)
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            pair = (before.get(name, "—"), now.get(name, "—"))
            found.append(Difference(f"headers/{name}", *pair))
    if recorded.body != actual.body:
        found.extend(_body_differences(exchange.request_body, form.body))
    return [d for d in found if not is_ignored(d.pointer, matchers)]


def _body_differences(recorded: bytes, actual: bytes) -> list[Difference]:
    try:
        if found := list(_leaves(json.loads(recorded), json.loads(actual), "")):
            return found
    except (ValueError, RecursionError):
        pass
    # Not JSON, or JSON spelled differently: the bytes are what is compared.
    shown = _windows(recorded.decode("utf-8", "replace"), actual.decode("utf-8", "replace"))
    return [Difference("body", *shown)]


def _leaves(before: object, now: object, pointer: str, depth: int = 0) -> Iterator[Difference]:
    if depth == _DEEPEST:
        if before != now:
            yield Difference(pointer, _short(before), _short(now))
    elif isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *(key for key in before if key not in now)]:
            pair = before.get(key, _MISSING), now.get(key, _MISSING)
            yield from _leaves(*pair, f"{pointer}/{escaped(key)}", depth + 1)
    elif isinstance(before, list) and isinstance(now, list):
        for i in range(max(len(before), len(now))):
            yield from _leaves(_at(before, i), _at(now, i), f"{pointer}/{i}", depth + 1)
    elif isinstance(before, str) and isinstance(now, str):
        if before != now:
            yield Difference(pointer, *_windows(before, now))
    elif type(before) is not type(now) or before != now:
        # Of two types, because Python takes 1, 1.0 and true for equal, and a provider does not.
        yield Difference(pointer, _short(before), _short(now))


def _at(items: list[object], i: int) -> object:
    return items[i] if i < len(items) else _MISSING


def _short(value: object) -> str:
    if value is _MISSING:
        return "—"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _windows(before: str, now: str) -> tuple[str, str]:
    """Cut both texts to the neighbourhood of their first difference."""
    start = max(0, _shared(before, now) - _SHOWN // 2)
    return _cut(before, start), _cut(now, start)


def _shared(before: str, now: str) -> int:
    """Return the length of the common start of two texts, by halves: bodies can be large."""
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
