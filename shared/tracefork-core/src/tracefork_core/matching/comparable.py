"""Which part of a request is compared: its form.

Compared, by hash: the method, the URL, the semantic headers below, the bytes of the body. Never
compared: credentials, user agents, SDK telemetry (x-stainless-*), idempotency keys, tracing ids,
lengths, and every other header. Headers of different names may come in any order; the values of one
name may not. Two incidental values are always ignored:

    ephemeral-port      a loopback port from the ephemeral range (32768 and up)
    multipart-boundary  the random boundary of a multipart body becomes a fixed word

Other parts are ignored if the user names them: see `matchers`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from tracefork_core.exchange.contract import Headers, Request
from tracefork_core.masking.names import is_credential, referer, without_secrets
from tracefork_core.matching.matchers import matched
from tracefork_core.tape.digest import canonical, sha256
from tracefork_core.tape.event import RequestRecord

SEMANTIC_HEADERS = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-encoding",
        "content-type",
        "openai-beta",
        "range",
        "x-amz-target",
    }
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_EPHEMERAL = 32768
_DEFAULT_PORTS = {"http": 80, "https": 443}
_BOUNDARY = "tracefork-boundary"
_BOUNDARY_PARAMETER = re.compile(r'(;\s*boundary=)("[^"]+"|[^;"\s]+)', re.IGNORECASE)


class Form(NamedTuple):
    """A request in comparable form. `headers` are all headers of the request."""

    record: RequestRecord
    url: str
    body: bytes
    headers: Headers

    @property
    def sent(self) -> list[tuple[str, str]]:
        """The headers that go onto the tape but are not compared."""
        return [
            (name, value if name != "referer" else referer(value))
            for spelled, value in self.headers
            if (name := spelled.lower()) not in SEMANTIC_HEADERS and not is_credential(name)
        ]

    @property
    def key(self) -> bytes:
        """The canonical bytes that two equal requests share."""
        return canonical(self.record)

    def with_matchers(self, matchers: Sequence[str]) -> Form:
        """Return this form without what the named matchers ignore."""
        if not matchers:
            return self
        body = matched(self.body, matchers)
        record = msgspec.structs.replace(self.record, body=sha256(body))
        return Form(record, self.url, body, self.headers)


def form(request: Request) -> Form:
    """Return the comparable form of a request."""
    canonical_url, shown_url = _urls(request.url)
    body = request.body
    compared = sorted(
        [
            (name, value)
            for spelled, value in request.headers
            if (name := spelled.lower()) in SEMANTIC_HEADERS
        ],
        key=itemgetter(0),
    )
    for i, (name, value) in enumerate(compared):
        if name == "content-type" and value.lower().startswith("multipart/"):
            compared[i], body = _without_boundary(value, body)
    record = RequestRecord(request.method, canonical_url, compared, sha256(body))
    return Form(record, shown_url, body, request.headers)


@lru_cache(maxsize=1024)
def _urls(url: str) -> tuple[str, str]:
    """Return the URL that is compared and the URL that is shown; neither holds a secret."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = _port(parts)
    shown_port = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    volatile = host in _LOOPBACK and port is not None and port >= _EPHEMERAL
    if ":" in host:
        host = f"[{host}]"
    query = without_secrets(parts.query)
    path = parts.path or "/"
    shown = urlunsplit((parts.scheme, host + shown_port, path, query, ""))
    compared_port = ":*" if volatile else shown_port
    return urlunsplit((parts.scheme, host + compared_port, path, query, "")), shown


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:  # Out of range. The library that sends the request decides about it.
        _, _, port = parts.netloc.rpartition(":")
        return int(port) if port.isascii() and port.isdigit() else None


def _without_boundary(content_type: str, body: bytes) -> tuple[tuple[str, str], bytes]:
    match = _BOUNDARY_PARAMETER.search(content_type)
    if match is None:
        return ("content-type", content_type), body
    renamed = content_type[: match.start(2)] + _BOUNDARY + content_type[match.end(2) :]
    boundary = match[2].strip('"').encode("latin-1")
    return ("content-type", renamed), body.replace(b"--" + boundary, b"--" + _BOUNDARY.encode())
