"""List where two recordings of one agent differ, exchange by exchange.

`fragments` cuts two texts to the words that differ; `causes` explains those.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from tracefork_core.explaining.differences import MISSING, body_places, head_places
from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange, Tape

_PIECE = re.compile(r"\s+|[^\s]+")
# SequenceMatcher takes quadratic time; larger texts count as one fragment.
_MOST_PIECES = 3_000

Part = Literal["request", "answer", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two recordings differ.

    `n` is the number of the exchange in the first recording, or in the second for an `extra` one.
    `pointer` is as in a divergence, or "status" or "answer" for a response.
    """

    n: int
    part: Part
    pointer: str
    before: str
    after: str


def changes(first: Tape, second: Tape) -> Iterator[Change]:
    """Yield what differs in each request, or in the responses where two requests are equal."""
    for before, after in sorted(_pairs(first, second), key=_number):
        if before is None or after is None:
            single = before or after
            assert single is not None
            part: Part = "extra" if before is None else "missing"
            yield Change(single.n, part, "", f"{single.method} {single.url}", "")
            continue
        yield from list(_request_changes(before, after)) or _answer_changes(before, after)


def fragments(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of differing pieces, in whole words; one pair if only the word order differs."""
    pieces, others = _PIECE.findall(before), _PIECE.findall(after)
    start = _shared(pieces, others)
    end = _shared(pieces[start:][::-1], others[start:][::-1])
    pieces, others = pieces[start : len(pieces) - end], others[start : len(others) - end]
    if not pieces and not others:
        return
    is_long = max(len(pieces), len(others)) > _MOST_PIECES
    if is_long or word_counts(" ".join(pieces)) == word_counts(" ".join(others)):
        yield "".join(pieces).strip(), "".join(others).strip()
        return
    matcher = SequenceMatcher(None, pieces, others, autojunk=False)
    for change, a, b, c, d in matcher.get_opcodes():
        pair = "".join(pieces[a:b]).strip(), "".join(others[c:d]).strip()
        if change != "equal" and any(pair):
            yield pair


def word_counts(text: str) -> Counter[str]:
    """Count each word of a text."""
    return Counter(re.findall(r"\w+", text))


def _shared(pieces: list[str], others: list[str]) -> int:
    """Return how many pieces both lists begin with."""
    pairs = enumerate(zip(pieces, others, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(pieces), len(others)))


def _pairs(first: Tape, second: Tape) -> Iterator[tuple[Exchange | None, Exchange | None]]:
    """Yield the exchanges that have the same position in the same lane."""
    lanes: dict[str, tuple[list[Exchange], list[Exchange]]] = defaultdict(lambda: ([], []))
    for side, tape in enumerate((first, second)):
        for exchange in tape.exchanges:
            lanes[exchange.lane][side].append(exchange)
    for before, after in lanes.values():
        yield from zip_longest(before, after)


def _number(pair: tuple[Exchange | None, Exchange | None]) -> tuple[int, int]:
    before, after = pair
    return (before.n, 0) if before else (after.n if after else 0, 1)


def _request_changes(before: Exchange, after: Exchange) -> Iterator[Change]:
    for pointer, value, value_after in head_places(before.request, after.request):
        yield Change(before.n, "request", pointer, value or "", value_after or "")
    if before.request.body != after.request.body:
        bodies = before.request_body, after.request_body
        for pointer, *values in body_places(*bodies, reordered_whole=True):
            yield Change(before.n, "request", pointer, *map(_spelled, values))


def _answer_changes(before: Exchange, after: Exchange) -> Iterator[Change]:
    if before.status != after.status:
        pair = str(before.status or "no answer"), str(after.status or "no answer")
        yield Change(before.n, "answer", "status", *pair)
        return
    content, content_after = _content(before), _content(after)
    if content != content_after:
        yield Change(before.n, "answer", "answer", content, content_after)


def _content(exchange: Exchange) -> str:
    """Return the text and tool calls of a response, without the id and time each response has."""
    call = model_call(exchange)
    if call is None:
        return exchange.response_body.decode("utf-8", "replace")
    tools = [f"{tool.name} {json.dumps(tool.arguments)}" for tool in call.tool_calls]
    return "\n".join([call.text, *tools])


def _spelled(value: object) -> str:
    if value is MISSING:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
