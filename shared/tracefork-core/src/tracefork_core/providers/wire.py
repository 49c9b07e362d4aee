"""One exchange with its bytes read as far as JSON and events, before any provider's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from tracefork_core.providers import sse
from tracefork_core.providers.content import decompress
from tracefork_core.providers.lenient import (
    Json,
    mapping,
    mappings,
    parse,
    parse_array_prefix,
    text,
)

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Wire:
    """Hold what could be read; a body that could not is empty, never an error.

    `chunks` are the JSON payloads of a streamed answer in order, `body` the JSON of a whole one.
    """

    host: str
    path: str
    request: dict[str, Json]
    status: int | None
    body: dict[str, Json]
    chunks: tuple[dict[str, Json], ...]

    @property
    def streamed(self) -> bool:
        """Tell whether the caller asked for a stream or got one."""
        return self.request.get("stream") is True or bool(self.chunks)

    @property
    def request_model(self) -> str | None:
        """Give the model named in the request, or Azure's deployment named in the path."""
        return text(self.request.get("model")) or self.after("deployments")

    def after(self, *collections: str) -> str | None:
        """Give the path segment after one of these, up to a `:method`."""
        segments = self.path.split("/")
        pairs = pairwise(segments)
        found = next((after for before, after in pairs if before in collections), "")
        return found.partition(":")[0] or None


def read_wire(
    url: str,
    request_headers: Headers,
    request_body: bytes,
    status: int | None,
    response_headers: Headers,
    response_body: bytes,
) -> Wire | None:
    """Read an exchange; None when the address is not one."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    request = parse(_plain(request_headers, request_body))
    body, chunks = _read_response(response_headers, _plain(response_headers, response_body))
    path = unquote(parts.path).rstrip("/")
    return Wire(host, path, mapping(request), status, body, chunks)


def _read_response(
    headers: Headers, raw: bytes
) -> tuple[dict[str, Json], tuple[dict[str, Json], ...]]:
    if "event-stream" not in _header(headers, "content-type"):
        whole = parse(raw)
        if isinstance(whole, dict):
            return whole, ()
        elements = whole if isinstance(whole, list) else parse_array_prefix(raw)
        if elements:
            return {}, tuple(mappings(elements))
    found = sse.events(raw) if b"data:" in raw else ()  # Large bodies of nobody known are not.
    payloads: list[Json] = [parse(event.data) for event in found]
    chunks = tuple(mappings(payloads))
    return ({}, chunks) if chunks else (mapping(parse(raw)), ())


def _plain(headers: Headers, body: bytes) -> bytes:
    return decompress(body, _header(headers, "content-encoding")) or b""


def _header(headers: Headers, name: str) -> str:
    return ",".join(value for key, value in headers if key.lower() == name).lower()
