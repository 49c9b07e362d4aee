"""Write the requests of a run as an HTTP Archive, version 1.2.

The format: http://www.softwareishard.com/blog/har-12-spec/. It has no chunks; `_chunks` are their
lengths and the milliseconds before each, which other readers ignore. Bodies are as on the wire, and
base64 where they are not text. A call of a tool is no request, and is left out.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tracefork_core.tape import Exchange, Tape
from tracefork_core.version import __version__

Document = dict[str, Any]

_WEB = ("http://", "https://")
_UNKNOWN = -1
"""What the format writes for sizes and times that are not known."""


def document(tape: Tape, *, content: bool) -> Document:
    """Return the archive of a run; without `content` its bodies are left out."""
    requests = [exchange for exchange in tape.exchanges if exchange.url.startswith(_WEB)]
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "tracefork", "version": __version__},
            "comment": f"digest {tape.digest}",
            "entries": [_entry(exchange, content=content) for exchange in requests],
        }
    }


def _entry(exchange: Exchange, *, content: bool) -> Document:
    aside = exchange.aside
    took = (aside.took or 0) / 1e6
    first = min((aside.first_byte or 0) / 1e6, took)
    has_bodies = content and exchange.has_bodies
    entry: Document = {
        "startedDateTime": datetime.fromtimestamp(aside.started / 1e9, UTC).isoformat(),
        "time": took,
        "request": _request(exchange, exchange.request_body if has_bodies else None, content),
        "response": _response(exchange, exchange.response_body if has_bodies else None),
        "cache": {},
        "timings": {"send": 0, "wait": first, "receive": took - first},
        "comment": f"exchange {exchange.n}",
    }
    if len(aside.sizes) > 1:
        entry["_chunks"] = {"sizes": aside.sizes, "pace": aside.pace}
    if exchange.failure is not None:
        kind, message = exchange.failure.kind, exchange.failure.message
        entry["response"]["_error"] = f"{kind}: {message}" if content else kind
    return entry


def _request(exchange: Exchange, body: bytes | None, content: bool) -> Document:
    headers = exchange.request_headers
    url = exchange.url if content else exchange.url.partition("?")[0]
    query = urlsplit(url).query
    request: Document = {
        "method": exchange.method,
        "url": url,
        "httpVersion": exchange.aside.http_version,
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": _pairs(parse_qsl(query, keep_blank_values=True)),
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN if body is None else len(body),
    }
    if body:
        text, encoding = _text(body)
        request["postData"] = {"mimeType": _type_of(headers), "text": text, "params": []}
        if encoding:
            request["postData"]["encoding"] = encoding
    return request


def _response(exchange: Exchange, body: bytes | None) -> Document:
    headers = exchange.response_headers
    held: Document = {
        "size": _UNKNOWN if body is None else len(body),
        "mimeType": _type_of(headers),
    }
    if body:
        held["text"], encoding = _text(body)
        if encoding:
            held["encoding"] = encoding
    return {
        "status": exchange.status or 0,
        "statusText": exchange.reason,
        "httpVersion": exchange.aside.http_version,
        "cookies": [],
        "headers": _pairs(headers),
        "content": held,
        "redirectURL": "",
        "headersSize": _UNKNOWN,
        "bodySize": held["size"],
    }


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[Document]:
    return [{"name": name, "value": value} for name, value in pairs]


def _type_of(headers: Sequence[tuple[str, str]]) -> str:
    types = (value for name, value in headers if name.lower() == "content-type")
    return next(types, "application/octet-stream")


def _text(body: bytes) -> tuple[str, str | None]:
    """Return a body as text, and how it is encoded; None for a body that is text already."""
    try:
        return body.decode(), None
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), "base64"
