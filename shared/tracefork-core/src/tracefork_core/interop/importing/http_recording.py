"""Calls over HTTP as recordings of other tools keep them, and how much of each is there.

A recording may keep a body as bytes, as the values of its JSON, or not at all; and a filter may
have changed it after it was sent. What shows a change is the length: it is in the headers. So a
body counts as it was sent if its length agrees with them, and as unknown if they have none.

    grade       request body      response body
    proven      as sent           as received
    unproven    anything else     complete, but decoded, changed or written again from its values
    content     -                 cut off
    structure   -                 missing
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tracefork_core.exchange.contract import Head, Headers, Request
from tracefork_core.exchange.kind import kind_of
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, lowest
from tracefork_core.tape.imported import Grade

SEAM = "import"
_NO_BODY = ("GET", "HEAD", "OPTIONS", "DELETE", "TRACE")
_NO_CONTENT = (204, 205, 304)

Kept = Literal["bytes", "whole", "values", "changed", "missing"]


class Body(NamedTuple):
    """A body in a recording: its bytes, and what the recording has of it.

    bytes    the bytes; whether they were changed, its length in the headers shows
    whole    the bytes, as they were sent
    values   the values of its JSON: `data` is written from them
    changed  other bytes than were sent
    missing  nothing
    """

    data: bytes = b""
    kept: Kept = "bytes"


MISSING = Body(kept="missing")


@dataclass(slots=True)
class Answer:
    """A response in a recording; `chunks` are its body instead, where its pieces are known."""

    status: int
    reason: str
    headers: Headers
    body: Body
    http_version: str = "HTTP/1.1"
    chunks: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Call:
    """A request in a recording, and its response; None if there was none. Times: nanoseconds."""

    method: str
    url: str
    headers: Headers
    body: Body
    answer: Answer | None
    started: int = 0
    first_byte: int | None = None
    took: int | None = None
    step: str | None = None


@dataclass(slots=True)
class _Findings:
    """What is found about all the calls of a recording."""

    missing: Counter[str] = field(default_factory=Counter)
    values: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)


def run_of(format_name: str, calls: Iterable[Call], missing: Iterable[str] = ()) -> ForeignRun:
    """Return the run that a recording holds.

    Args:
        format_name: the name of its format.
        calls: its calls, in the order asked.
        missing: what else the recording does not hold, as sentences.
    """
    found = _Findings()
    run = ForeignRun(format_name)
    for call in calls:
        request = _request(call)
        if kind_of(request) == "telemetry":
            found.missing["{} of telemetry, which no tape holds"] += 1
            continue
        number = len(run.exchanges)
        run.exchanges.append(_exchange(call, request, number, found))
    run.missing = [*missing, *(_sentence(words, n) for words, n in found.missing.items())]
    run.json_bodies, run.unknown_bodies = found.values, found.unknown
    return run


def _sentence(words: str, count: int) -> str:
    return words.format(f"{count} request{'' if count == 1 else 's'}")


def _request(call: Call) -> Request:
    return Request(call.method.upper(), call.url, call.headers, call.body.data, SEAM)


def _exchange(call: Call, request: Request, number: int, found: _Findings) -> ForeignExchange:
    grades = [_grade_of_request(call, number, found)]
    exchange = ForeignExchange(
        request,
        started=call.started,
        first_byte=call.first_byte,
        took=call.took,
        step=call.step,
    )
    if call.answer is None:
        found.missing["The response to {} is missing"] += 1
        grades.append("structure")
    else:
        grade, headers = _grade_of_answer(call.method.upper(), call.answer, found)
        grades.append(grade)
        answer = call.answer
        exchange.head = Head(answer.status, answer.reason, headers, answer.http_version)
        exchange.chunks = tuple(answer.chunks) or ((answer.body.data,) if answer.body.data else ())
    exchange.grade = lowest(grades)
    return exchange


def _grade_of_request(call: Call, number: int, found: _Findings) -> Grade:
    body, length = call.body, _length(call.headers)
    if body.kept == "whole":
        return "proven"
    if body.kept == "missing" or (not body.data and length):
        if not length and call.method.upper() in _NO_BODY:
            return "proven"
        found.missing["The body of {} is missing"] += 1
        found.unknown.append(number)
    elif body.kept == "values":
        found.missing["The body of {} is there as JSON values, not as bytes"] += 1
        found.values.append(number)
    elif length is None and (body.data or call.method.upper() not in _NO_BODY):
        found.missing["The body of {} has no recorded length, so it may have been changed"] += 1
        found.values.append(number)
    elif length is not None and length != len(body.data):
        found.missing["The body of {} was changed: its recorded length is another"] += 1
        (found.values if _is_reformatted(body.data, length) else found.unknown).append(number)
    else:
        return "proven"
    return "unproven"


def _grade_of_answer(method: str, answer: Answer, found: _Findings) -> tuple[Grade, Headers]:
    """Return the grade, and headers that agree with the body that is there."""
    body, headers = answer.body, answer.headers
    if (
        body.kept == "whole"
        or method == "HEAD"
        or answer.status in _NO_CONTENT
        or 100 <= answer.status < 200
    ):
        return "proven", headers
    coding, length = _value(headers, "content-encoding"), _length(headers)
    if body.kept == "missing" or (not body.data and length):
        found.missing["The response body of {} is missing"] += 1
        return "structure", _described(headers, body.data)
    if body.kept == "values":
        found.missing["The response body of {} is there as JSON values, not as bytes"] += 1
        return "unproven", _described(headers, body.data)
    if coding is not None and coding.lower() != "identity":
        if not body.data:
            return "proven", headers
        if not _is_coded(body.data, coding):
            found.missing["The response body of {} was decoded before it was kept"] += 1
            return "unproven", _described(headers, body.data)
        if not _is_whole(body.data, coding):
            found.missing["The response body of {} is cut off"] += 1
            return "content", headers
    if body.kept == "changed" or (length is not None and length != len(body.data)):
        found.missing["The response body of {} was changed: its recorded length is another"] += 1
        return "unproven", _described(headers, body.data)
    return "proven", headers


def _described(headers: Headers, body: bytes) -> Headers:
    """Return headers without a coding, and with the length of the body if they have one."""
    return tuple(
        (name, str(len(body)) if name.lower() == "content-length" else value)
        for name, value in headers
        if name.lower() != "content-encoding"
    )


_MAGIC = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_BLOCK, _MOST = 2**16, 2**26


def _is_coded(body: bytes, coding: str) -> bool:
    """Return whether a body is in its content coding, as far as its bytes tell."""
    if magic := _MAGIC.get(_outermost(coding)):
        return body.startswith(magic)
    try:
        body.decode()
    except UnicodeDecodeError:
        return True  # br and deflate have no mark, but are hardly ever UTF-8.
    return False


def _is_whole(body: bytes, coding: str) -> bool:
    """Return whether a body in gzip has its end; no other coding tells."""
    if not _outermost(coding).endswith("gzip"):
        return True
    unpacker, size = zlib.decompressobj(31), 0
    try:
        while body and not unpacker.eof and size < _MOST:
            size += len(unpacker.decompress(body, _BLOCK))
            body = unpacker.unconsumed_tail
    except zlib.error:
        return False
    return unpacker.eof or size >= _MOST


def _outermost(coding: str) -> str:
    return coding.rpartition(",")[2].strip().lower()


def _is_reformatted(body: bytes, length: int) -> bool:
    """Return whether the values of a JSON body, in one of the usual spellings, have a length."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return any(
        len(json.dumps(document, separators=separators, ensure_ascii=escaped).encode()) == length
        for separators in ((",", ":"), (", ", ": "))
        for escaped in (False, True)
    )


def _value(headers: Headers, wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)


def _length(headers: Headers) -> int | None:
    value = _value(headers, "content-length")
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None
