"""Which part of a request is compared, and how volatile parts are made comparable.

Compared, by hash: the method, the URL, the semantic headers below, the bytes of the body. Never
compared: credentials, user agents, SDK telemetry (x-stainless-*), idempotency keys, tracing ids,
lengths, and every other header. Two matchers always apply:

    ephemeral-port      a loopback port from the ephemeral range (32768 and up) is an accident
    multipart-boundary  the random boundary of a multipart body becomes a fixed word

Two more are asked for by name, at replay:

    json                JSON bodies are equal when their values are (key order, white space)
    ignore:/pointer     the value at this JSON pointer of the body is not compared
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

import msgspec

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Request
from tracefork_core.tape.canonical import canonical, sha256
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
    }
)
CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
_CREDENTIAL_WORD = re.compile(r"(^|[-_.])(api-?key|key|token|secret|password|signature|auth)($|[-_.])")
_CREDENTIAL_QUERY = re.compile(
    r"^(key|sig|.*(api[-_]?key|token|secret|signature|password|credential).*)$", re.IGNORECASE
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_EPHEMERAL = 32768
_DEFAULT_PORTS = {"http": 80, "https": 443}
_BOUNDARY = b"tracefork-boundary"


@dataclass(frozen=True, slots=True)
class Form:
    """A request in comparable form.

    `sent` are the headers that are kept but not compared; `body` is what was really sent, and
    `stored_as` its sha256 where a matcher made the compared body another one.
    """

    record: RequestRecord
    url: str
    body: bytes
    sent: list[tuple[str, str]]
    stored_as: str | None = None

    @property
    def key(self) -> bytes:
        """What two equal requests share."""
        return canonical(self.record)

    def with_matchers(self, matchers: Sequence[str]) -> Form:
        """Return this form as the named matchers see it."""
        if not matchers:
            return self
        body = self.body
        for matcher in matchers:
            body = _apply(matcher, body)
        record = msgspec.structs.replace(self.record, body=sha256(body))
        return Form(record, self.url, body, self.sent)


def form(request: Request) -> Form:
    """Return the comparable form of a request."""
    canonical_url, shown_url = _urls(request.url)
    compared, sent = _headers(request.headers)
    body = request.body
    for i, (name, value) in enumerate(compared):
        if name == "content-type" and value.startswith("multipart/") and "boundary=" in value:
            compared[i], body = _without_boundary(value, body)
    record = RequestRecord(request.method, canonical_url, compared, sha256(body))
    stored_as = sha256(request.body) if body is not request.body else None
    return Form(record, shown_url, request.body, sent, stored_as)


def check_matchers(matchers: Sequence[str]) -> None:
    """Refuse a matcher nobody knows.

    Raises:
        UsageError: a name is neither `json` nor `ignore:/pointer`.
    """
    for matcher in matchers:
        if matcher != "json" and not matcher.startswith("ignore:/"):
            raise UsageError(
                f"tracefork: no matcher {matcher!r}. There are `json` and `ignore:/json/pointer`."
            )


def is_credential(name: str) -> bool:
    """Return whether a header of this (lower-case) name carries a credential."""
    return name in CREDENTIAL_HEADERS or bool(_CREDENTIAL_WORD.search(name))


def _headers(
    headers: Sequence[tuple[str, str]],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    compared: list[tuple[str, str]] = []
    sent: list[tuple[str, str]] = []
    for name, value in headers:
        name = name.lower()
        if name in SEMANTIC_HEADERS:
            compared.append((name, value))
        elif not is_credential(name):
            sent.append((name, value))
    compared.sort()
    return compared, sent


@lru_cache(maxsize=1024)
def _urls(url: str) -> tuple[str, str]:
    """Return the URL that is compared and the URL that is shown; neither holds a secret."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = parts.port
    shown_port = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    volatile = host in _LOOPBACK and port is not None and port >= _EPHEMERAL
    if ":" in host:
        host = f"[{host}]"
    query = "&".join(_without_secret(pair) for pair in parts.query.split("&"))
    path = parts.path or "/"
    shown = urlunsplit((parts.scheme, host + shown_port, path, query, ""))
    compared = urlunsplit((parts.scheme, host + (":*" if volatile else shown_port), path, query, ""))
    return compared, shown


def _without_secret(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}=*" if equals and _CREDENTIAL_QUERY.match(name) else pair


def _without_boundary(content_type: str, body: bytes) -> tuple[tuple[str, str], bytes]:
    boundary = content_type.partition("boundary=")[2].split(";")[0].strip().strip('"')
    fixed = _BOUNDARY.decode()
    if not boundary:
        return ("content-type", content_type), body
    named = content_type.replace(boundary, fixed)
    return ("content-type", named), body.replace(boundary.encode("latin-1"), _BOUNDARY)


def _apply(matcher: str, body: bytes) -> bytes:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if matcher != "json":
        _remove(document, matcher.removeprefix("ignore:"))
    return canonical(document)


def _remove(document: object, pointer: str) -> None:
    """Delete the value at an RFC 6901 pointer, if there is one."""
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    place = document
    for part in way:
        place = _child(place, part)
    if isinstance(place, dict):
        place.pop(last, None)
    elif isinstance(place, list) and last.isdigit() and int(last) < len(place):
        place[int(last)] = None


def _child(place: object, part: str) -> object:
    if isinstance(place, dict):
        return place.get(part)
    if isinstance(place, list) and part.isdigit() and int(part) < len(place):
        return place[int(part)]
    return None
