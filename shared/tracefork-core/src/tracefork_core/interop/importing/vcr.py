"""Read VCR cassettes: of vcrpy and pytest-recording, pydantic-ai, cassetter, and Ruby's VCR.

vcrpy         body: text, or !!binary; response: body: {string: …}, status: {code, message}
pydantic-ai   parsed_body instead of body, where it is JSON
cassetter     body: {type: json | text | binary (hex) | none, content}; recorded_at
in TOML       body_type and body_content
vcrpy, httpx  content, status_code (before 2023); base64_string in JSON cassettes
Ruby          http_interactions; body: {encoding, string | base64_string}
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from tracefork_core.exchange.contract import Headers
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.http_recording import MISSING, Answer, Body, Call, run_of
from tracefork_core.interop.importing.span_values import nanoseconds

NAME = "VCR cassette"
_LISTS = ("interactions", "http_interactions")


def is_cassette(document: object) -> bool:
    """Return whether a document is a cassette."""
    return isinstance(document, dict) and any(
        isinstance(document.get(name), list) for name in _LISTS
    )


def read_cassette(document: Any) -> ForeignRun:
    """Return the run on a cassette. What is not as expected in an interaction counts as missing."""
    interactions = next(document[name] for name in _LISTS if isinstance(document.get(name), list))
    calls = [_call(each) for each in interactions if isinstance(each, dict)]
    if calls and all(call.started for call in calls):
        calls.sort(key=lambda call: call.started)  # cassetter sorts them by path.
    missing = []
    if frames := document.get("ws_interactions"):
        missing.append(f"The messages of {len(frames)} websockets are not imported")
    run = run_of(NAME, calls, missing)
    run.not_compared = ["headers"]  # A filter removes them without a trace.
    return run


def _call(interaction: dict[str, Any]) -> Call:
    request = _mapping(interaction.get("request"))
    response = _mapping(interaction.get("response"))
    return Call(
        method=str(request.get("method") or "GET"),
        url=str(request.get("uri") or request.get("url") or ""),
        headers=_headers(request.get("headers")),
        body=_body(request, absent=Body()),
        answer=_answer(response) if response else None,
        started=_nanoseconds(interaction.get("recorded_at")),
    )


def _answer(response: dict[str, Any]) -> Answer | None:
    status = response.get("status")
    named = _mapping(status)
    code = named.get("code", status if not named else None) or response.get("status_code")
    if not isinstance(code, int) or not 100 <= code <= 999:
        return None
    version = response.get("http_version") or response.get("protocol")
    return Answer(
        status=code,
        reason=str(named.get("message") or ""),
        headers=_headers(response.get("headers")),
        body=_body(response, absent=MISSING),
        http_version=str(version) if str(version).startswith("HTTP/") else "HTTP/1.1",
    )


def _body(message: dict[str, Any], *, absent: Body) -> Body:
    if "parsed_body" in message:
        return _of_values(message["parsed_body"])
    if "body_type" in message:
        return _typed(message["body_type"], message.get("body_content"))
    held = next((message[name] for name in ("body", "content") if name in message), None)
    if not isinstance(held, dict):
        return absent if held is None else Body(_bytes(held))
    if "type" in held:
        return _typed(held["type"], held.get("content"))
    if isinstance(coded := held.get("base64_string"), str | bytes):
        return _of_base64(coded)
    return absent if held.get("string") is None else Body(_bytes(held["string"]))


def _typed(kind: object, content: object) -> Body:
    """Return a body as cassetter keeps it."""
    if kind == "none":
        return Body()
    if kind == "binary":
        try:
            return Body(bytes.fromhex(str(content)))
        except ValueError:
            return MISSING
    if kind == "json":
        # In TOML the values are written as a text.
        return (
            Body(content.encode(), "values")
            if isinstance(content, str) and (_is_json(content))
            else _of_values(content)
        )
    return Body(_bytes(content or ""))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_values(values: object) -> Body:
    written = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)
    return Body(_bytes(written), "values")


def _of_base64(coded: str | bytes) -> Body:
    try:
        return Body(base64.b64decode(coded))
    except (binascii.Error, ValueError):
        return MISSING


def _bytes(held: object) -> bytes:
    return held if isinstance(held, bytes) else str(held).encode("utf-8", "surrogatepass")


def _headers(held: object) -> Headers:
    pairs: Iterable[tuple[object, object]] = (
        held.items() if isinstance(held, dict) else _pairs(held)
    )
    return tuple(
        (_text(name), _text(value))
        for name, values in pairs
        for value in (values if isinstance(values, list) else [values])
    )


def _pairs(held: object) -> Iterator[tuple[object, object]]:
    for pair in held if isinstance(held, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield pair[0], pair[1]


def _text(value: object) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.replace("\r", "").replace("\n", " ")


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _nanoseconds(moment: object) -> int:
    written = moment.isoformat() if isinstance(moment, datetime) else moment
    return max(nanoseconds(written) or 0, 0) if isinstance(written, str) else 0
