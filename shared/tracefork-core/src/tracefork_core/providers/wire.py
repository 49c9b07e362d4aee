"""Read the bytes of an exchange as JSON and events, without knowing the provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from tracefork_core.providers import sse
from tracefork_core.providers.lenient import (
    Json,
    is_bounded,
    mapping,
    mappings,
    parse,
    parse_array_prefix,
    text,
)
from tracefork_core.providers.remembered import parse_question
from tracefork_core.unpacking import decompress

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Wire:
    """An exchange as JSON; an unreadable body is empty, never an error.

    `chunks` are the JSON payloads of a streamed answer, in order. `body` is the JSON of a whole
    answer.
    """

    host: str
    path: str
    request: dict[str, Json]
    status: int | None
    body: dict[str, Json]
    chunks: tuple[dict[str, Json], ...]

    @property
    def streamed(self) -> bool:
        """Whether the caller asked for a stream or got one."""
        return self.request.get("stream") is True or bool(self.chunks)

    @property
    def request_model(self) -> str | None:
        """The model that the request names, or the deployment in Azure's path."""
        return text(self.request.get("model")) or self.after("deployments")

    def after(self, *collections: str) -> str | None:
        """Return the path segment after the first of these, up to a `:method`."""
        segments = self.path.split("/")
        pairs = pairwise(segments)
        segment = next((after for before, after in pairs if before in collections), "")
        return segment.partition(":")[0] or None


def read_wire(
    url: str,
    request_headers: Headers,
    request_body: bytes,
    status: int | None,
    response_headers: Headers,
    response_body: bytes,
) -> Wire | None:
    """Read an exchange; None if its URL is invalid."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    request = parse_question(_plain(request_headers, request_body))
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
    # Splitting a large body into lines is slow, so look for a data field first.
    events = sse.events(raw) if b"data:" in raw else ()
    payloads: list[Json] = [parse(event.data) for event in events]
    chunks = tuple(mappings(payloads))
    return ({}, chunks) if chunks else (mapping(parse(raw)), ())


def _plain(headers: Headers, body: bytes) -> bytes:
    plain = decompress(body, _header(headers, "content-encoding")) or b""
    return plain if is_bounded(plain) else b""


def _header(headers: Headers, name: str) -> str:
    return ",".join(value for key, value in headers if key.lower() == name).lower()
