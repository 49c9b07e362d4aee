"""Where two recordings of one agent differ, exchange by exchange and place by place."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.json_pointer import escaped

_MISSING = object()
_DEEPEST = 100

_Place = tuple[str, str, str]
"""Where two values differ, and both of them."""

Part = Literal["request", "answer", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs.

    `n` is the number of the exchange in the first recording, in the second for one too many;
    `pointer` is as in a divergence, or "status" or "answer" for what came back.
    """

    n: int
    part: Part
    pointer: str
    before: str
    after: str


def changes(first: Tape, second: Tape) -> Iterator[Change]:
    """Yield what differs in the requests, then in the answers to equal requests."""
    for one, other in sorted(_pairs(first, second), key=_number):
        if one is None or other is None:
            there = one or other
            assert there is not None
            part: Part = "extra" if one is None else "missing"
            yield Change(there.n, part, "", f"{there.method} {there.url}", "")
            continue
        found = list(_of_request(one, other))
        yield from found or _of_answer(one, other)


def _pairs(first: Tape, second: Tape) -> Iterator[tuple[Exchange | None, Exchange | None]]:
    """Yield exchanges that are at the same place of their lane."""
    lanes: dict[str, tuple[list[Exchange], list[Exchange]]] = defaultdict(lambda: ([], []))
    for side, tape in enumerate((first, second)):
        for exchange in tape.exchanges:
            lanes[exchange.lane][side].append(exchange)
    for ones, others in lanes.values():
        yield from zip_longest(ones, others)


def _number(pair: tuple[Exchange | None, Exchange | None]) -> tuple[int, int]:
    one, other = pair
    return (one.n, 0) if one else (other.n if other else 0, 1)


def _of_request(one: Exchange, other: Exchange) -> Iterator[Change]:
    before, after = one.request, other.request
    if before.method != after.method:
        yield Change(one.n, "request", "method", before.method, after.method)
    if before.url != after.url:
        yield Change(one.n, "request", "url", before.url, after.url)
    headers, now = dict(before.headers), dict(after.headers)
    for name in sorted(headers.keys() | now.keys()):
        if headers.get(name) != now.get(name):
            pair = headers.get(name, ""), now.get(name, "")
            yield Change(one.n, "request", f"headers/{name}", *pair)
    if before.body != after.body:
        yield from _of_bodies(one, other)


def _of_bodies(one: Exchange, other: Exchange) -> Iterator[Change]:
    before, after = one.request_body, other.request_body
    try:
        found = list(_leaves(json.loads(before), json.loads(after), ""))
    except (ValueError, RecursionError):
        found = []
    for place in found or [("body", _text(before), _text(after))]:
        yield Change(one.n, "request", *place)


def _of_answer(one: Exchange, other: Exchange) -> Iterator[Change]:
    if one.status != other.status:
        pair = str(one.status or "no answer"), str(other.status or "no answer")
        yield Change(one.n, "answer", "status", *pair)
        return
    before, after = _said(one), _said(other)
    if before != after:
        yield Change(one.n, "answer", "answer", before, after)


def _said(exchange: Exchange) -> str:
    """Return what an answer says: the ids and times that each answer has for itself say nothing."""
    call = model_call(exchange)
    if call is None:
        return _text(exchange.response_body)
    asked = [f"{one.name} {json.dumps(one.arguments)}" for one in call.tool_calls]
    return "\n".join([call.text, *asked])


def _leaves(before: object, after: object, pointer: str, depth: int = 0) -> Iterator[_Place]:
    if isinstance(before, dict) and isinstance(after, dict) and depth < _DEEPEST:
        for key in [*before, *(key for key in after if key not in before)]:
            pair = before.get(key, _MISSING), after.get(key, _MISSING)
            yield from _leaves(*pair, f"{pointer}/{escaped(str(key))}", depth + 1)
    elif isinstance(before, list) and isinstance(after, list) and depth < _DEEPEST:
        if before != after and _counted(before) == _counted(after):
            yield pointer, _spelled(before), _spelled(after)
            return
        for i, pair in enumerate(zip_longest(before, after, fillvalue=_MISSING)):
            yield from _leaves(*pair, f"{pointer}/{i}", depth + 1)
    elif before != after or type(before) is not type(after):
        yield pointer, _spelled(before), _spelled(after)


def _counted(items: list[object]) -> Counter[str]:
    return Counter(json.dumps(item, sort_keys=True) for item in items)


def _spelled(value: object) -> str:
    if value is _MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
