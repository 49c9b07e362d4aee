"""Read HAR 1.2 files: of browsers, mitmproxy and proxies.

`content` has the body after its content coding was removed, so a coded body is never there as it
was received. Browsers leave out bodies that they did not keep, such as those of streams. Websocket
messages are in `_webSocketMessages`. A HAR has no chunks, but ours has their sizes in `_chunks`.
"""

from __future__ import annotations

import base64
import binascii
from itertools import accumulate, pairwise
from typing import Any

from tracefork_core.exchange.contract import Headers
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.http_recording import MISSING, Answer, Body, Call, run_of
from tracefork_core.interop.importing.span_values import nanoseconds
from tracefork_core.interop.importing.websocket import Sent, with_messages
from tracefork_core.providers.lenient import Json, items, mapping, mappings, text
from tracefork_core.seams.websockets.messages import Message

NAME = "HAR file"
_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000
_BEFORE_ANSWER = ("blocked", "dns", "connect", "send", "wait")
_NETWORK = ("http://", "https://", "ws://", "wss://")
_VERSIONS = {"H2": "HTTP/2", "HTTP/2.0": "HTTP/2", "H3": "HTTP/3", "HTTP/3.0": "HTTP/3"}
_TEXT, _BINARY = 1, 2


def is_har(document: Any) -> bool:
    """Return whether a document is a HAR file."""
    return isinstance(document, dict) and isinstance(
        mapping(document.get("log")).get("entries"), list
    )


def read_har(document: Any) -> ForeignRun:
    """Return the run in a HAR file, its entries by the time they began."""
    entries = mappings(mapping(document["log"])["entries"])
    asked = [entry for entry in entries if _url(entry).startswith(_NETWORK)]
    asked.sort(key=_started)
    calls = [call for entry in asked for call in _calls(entry)]
    elsewhere = len(entries) - len(asked)
    missing = [f"Entries of no network are left out: {elsewhere}"] if elsewhere else []
    run = run_of(NAME, calls, missing)
    if not all(exchange.request.headers for exchange in run.exchanges):
        run.not_compared = ["headers"]
    return run


def _calls(entry: dict[str, Json]) -> list[Call]:
    request, response = mapping(entry.get("request")), mapping(entry.get("response"))
    call = Call(
        method=text(request.get("method")) or "GET",
        url=_url(entry),
        headers=_headers(request),
        body=_request_body(request),
        answer=_answer(response),
        started=_started(entry),
        first_byte=_milliseconds(sum(_times(entry))),
        took=_milliseconds(_number(entry.get("time"))),
    )
    if call.answer is not None:
        call.answer.chunks = _chunks(call.answer.body.data, mapping(entry.get("_chunks")))
    messages = mappings(entry.get("_webSocketMessages"))
    if not messages or call.answer is None:
        return [call]
    call.answer.body = Body(kept="whole")
    return with_messages(call, map(_sent, messages))


def _sent(message: dict[str, Json]) -> Sent:
    data = (text(message.get("data")) or "").encode("utf-8", "surrogatepass")
    binary = message.get("opcode") == _BINARY
    if binary:
        data = _from_base64(data)
    time = int(_number(message.get("time")) * _SECOND)
    return Sent(Message(data, "binary" if binary else "text"), message.get("type") == "send", time)


def _request_body(request: dict[str, Json]) -> Body:
    size, posted = request.get("bodySize"), mapping(request.get("postData"))
    written = posted.get("text")
    if not isinstance(written, str) or not (written or not size):
        return Body() if size == 0 and not posted else MISSING
    data = written.encode("utf-8", "surrogatepass")
    if posted.get("encoding") == "base64":
        data = _from_base64(data)
    return Body(data, "whole" if size == len(data) else "bytes")


def _answer(response: dict[str, Json]) -> Answer | None:
    status = response.get("status")
    if not isinstance(status, int) or not 100 <= status <= 999:
        return None  # It was blocked, or cut off before the head.
    version = (text(response.get("httpVersion")) or "HTTP/1.1").upper()
    return Answer(
        status=status,
        reason=text(response.get("statusText")) or "",
        headers=_headers(response),
        body=_response_body(mapping(response.get("content"))),
        http_version=_VERSIONS.get(version, version if version.startswith("HTTP/") else "HTTP/1.1"),
    )


def _response_body(content: dict[str, Json]) -> Body:
    written, size = content.get("text"), content.get("size")
    if not isinstance(written, str):
        return Body() if size == 0 else MISSING
    data = written.encode("utf-8", "surrogatepass")
    if content.get("encoding") == "base64":
        data = _from_base64(data)
    is_same = size in (-1, None, len(data))
    return Body(data, "bytes" if is_same else "changed")


def _chunks(body: bytes, written: dict[str, Json]) -> list[bytes]:
    """Return the pieces of a body whose sizes add up to it; none, if they do not."""
    sizes = [size for size in items(written.get("sizes")) if type(size) is int and size >= 0]
    if sum(sizes) != len(body):
        return []
    edges = list(accumulate(sizes, initial=0))
    return [body[start:stop] for start, stop in pairwise(edges)]


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data)
    except binascii.Error:
        return b""


def _url(entry: dict[str, Json]) -> str:
    return (text(mapping(entry.get("request")).get("url")) or "").partition("#")[0]


def _headers(message: dict[str, Json]) -> Headers:
    return tuple(
        (name, str(header.get("value") or "").replace("\r", "").replace("\n", " "))
        for header in mappings(message.get("headers"))
        if (name := text(header.get("name")) or ":") and not name.startswith(":")
    )


def _started(entry: dict[str, Json]) -> int:
    return max(nanoseconds(text(entry.get("startedDateTime"))) or 0, 0)


def _times(entry: dict[str, Json]) -> list[float]:
    timings = mapping(entry.get("timings"))
    return [max(_number(timings.get(name)), 0) for name in _BEFORE_ANSWER]


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 2**53 else 0.0


def _milliseconds(value: float) -> int:
    return int(min(value, 2**40) * _MILLISECOND)
