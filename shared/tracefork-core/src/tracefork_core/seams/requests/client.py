"""The seam of requests: the adapter of HTTP that every session sends through.

The seam lies below redirects, cookies and authentication, and above the pool of urllib3: each hop
of a redirect is an exchange. An adapter with a `Retry` retries inside urllib3: all of its attempts
are one exchange, with the outcome of the last. Adapters that do not derive from `HTTPAdapter` (for
other schemes, or custom ones) are not recorded.

Bodies are recorded as they come over the wire, without the framing and still compressed. urllib3
decodes a body from a tape as it decodes one from a server.
"""

from __future__ import annotations

import http.client
import io
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any, cast

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Headers, Live, Recorded, Request
from tracefork_core.exchange.current import (
    crossing_seam,
    is_crossing_seam,
    rebuilding,
    session_of_request,
)
from tracefork_core.patching.instrument import Undo
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.failures import refusal, wants_response
from tracefork_core.seams.requests.body import GIVEN_UP, Heard, Pieces, Replayed, crossing
from tracefork_core.seams.requests.failures import Failures

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_OLD, _OLD_VERSION = "HTTP/1.0", 10
_USUAL, _USUAL_VERSION = "HTTP/1.1", 11

Send = Callable[..., Any]


@lru_cache(maxsize=4)
def seam_of(lib: ModuleType) -> Seam:
    """Return the seam for a module of requests."""
    return Seam(lib)


def instrument(lib: ModuleType) -> Undo:
    """Patch every session of `lib`, and return what undoes it."""
    seam, patches = seam_of(lib), Patches()

    def crossing_seam_of(original: Send) -> Send:
        @wraps(original)
        def send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
            return seam.send(original, self, request, args, options)

        return send

    patches.wrap(lib.adapters.HTTPAdapter, "send", crossing_seam_of)
    return patches.undo


def is_client(value: object) -> bool:
    """Return whether `value` is a session of requests."""
    lib = sys.modules.get("requests")
    return lib is not None and isinstance(value, lib.Session)


def bind_client(client: Any) -> Any:
    """Return a copy of a session whose adapters cross the seam; the original is untouched.

    Both share their pools and one cookie jar. Closing the copy closes the original's pools, too.
    """
    bound = _copied(client, type(client))
    bound.adapters = type(client.adapters)(
        (prefix, _bound_adapter(adapter)) for prefix, adapter in client.adapters.items()
    )
    return bound


def _bound_adapter(adapter: Any) -> Any:
    if not isinstance(adapter, sys.modules["requests"].adapters.HTTPAdapter):
        return adapter
    return _copied(adapter, _bound_class(cast(Hashable, type(adapter))))


def _copied(value: Any, kind: Any) -> Any:
    # Not `copy`: sessions and adapters copy by pickling, which drops the connection pools.
    made = object.__new__(kind)
    vars(made).update(vars(value))
    return made


@lru_cache(maxsize=16)
def _bound_class(kind: Any) -> Any:
    seam = seam_of(sys.modules["requests"])

    def send(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        return seam.send(kind.send, self, request, args, options)

    if hasattr(kind, "tracefork_bound"):
        return kind
    body = {"send": send, "tracefork_bound": True, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), body)


class Seam:
    """The seam of one module of requests."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        self.failures = Failures(lib)

    def send(
        self, original: Send, adapter: Any, request: Any, args: Any, options: dict[str, Any]
    ) -> Any:
        """Answer an attempt from the network, through `original`, or from the tape."""
        session = session_of_request()
        if session is None or is_crossing_seam():
            return original(adapter, request, *args, **options)
        asked, restore = self._read(request)
        try:
            answer = session.open(asked)
            if answer is None:
                with restore, crossing_seam():
                    return original(adapter, request, *args, **options)
            if not answer.is_live:
                return self._replay(answer, adapter, request)
        except TraceforkError as error:
            if not wants_response(asked):
                raise
            return self._refuse(error, adapter, request)
        with restore:
            return self._record(answer, original, adapter, request, args, options)

    def _read(self, request: Any) -> tuple[Request, Held]:
        """Read the body of a request, once, and return the `Request` of the contract."""
        held = Held(request)
        headers = tuple((_text(name), _text(value)) for name, value in request.headers.items())
        return Request(request.method, _text(request.url), headers, held.data, "requests"), held

    def _replay(self, answer: Recorded, adapter: Any, request: Any) -> Any:
        head = answer.receive_head()
        if isinstance(head, Failure):
            raise self.failures.exception(head, request)
        return self._response(head, answer, adapter, request)

    def _refuse(self, error: TraceforkError, adapter: Any, request: Any) -> Any:
        head, body = refusal(error)
        return self._response(head, Refusal(body), adapter, request)

    def _record(
        self,
        live: Live,
        original: Send,
        adapter: Any,
        request: Any,
        args: Any,
        options: dict[str, Any],
    ) -> Any:
        try:
            with crossing_seam():
                response = original(adapter, self._sent(request, live), *args, **options)
        except GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            live.fail(self.failures.failure(error))
            raise
        response.request, response.url = request, request.url
        raw = response.raw
        live.head(_head(raw))
        enforced = getattr(raw, "enforce_content_length", False)
        # Both: urllib3 closes a body that is given up in the middle by the second name.
        raw._fp = raw._original_response = Heard(raw._fp, live, enforced=enforced)
        raw.__class__ = crossing(cast(Hashable, type(raw)), self.failures)
        raw.tracefork_live = live
        return response

    def _sent(self, request: Any, live: Live) -> Any:
        """Return the request to send: the agent's, or the one that a fork sends instead."""
        if (asked := live.sends) is None:
            return request
        sent = request.copy()
        sent.method, sent.url, sent.body = asked.method, asked.url, asked.body or None
        framed = _FRAMING if request.url == asked.url else _FRAMING | {"host"}
        sent.headers = type(request.headers)(
            pair for pair in asked.headers if pair[0].lower() not in framed
        )
        if asked.body:
            sent.headers["Content-Length"] = str(len(asked.body))
        return sent

    def _response(self, head: Head, answer: Pieces, adapter: Any, request: Any) -> Any:
        """Build a response as the adapter does, with a body from the tape."""
        message = http.client.HTTPMessage()
        for name, value in head.headers:
            message[name] = value
        urllib3 = self.lib.urllib3
        source = Replayed(answer, message, request.method)
        raw = crossing(urllib3.HTTPResponse, self.failures)(
            body=source,
            headers=urllib3.response.HTTPHeaderDict(message.items()),
            status=head.status,
            version=_OLD_VERSION if head.http_version == _OLD else _USUAL_VERSION,
            reason=head.reason,
            preload_content=False,
            decode_content=False,
            original_response=source,
            request_method=request.method,
        )
        raw.version_string = _USUAL  # The version urllib3 sends, whatever the server answers.
        with rebuilding():
            return adapter.build_response(request, raw)


class Held:
    """The body of a request, read to be compared; inside a `with` block it can be sent again.

    `data` is what was read. After that, a body that can be read only once is used up, as if it had
    been sent.
    """

    def __init__(self, request: Any) -> None:
        self._request = request
        self._body = body = request.body
        self._again: Any = body
        if body is None or isinstance(body, (str, bytes, bytearray, memoryview)):
            self.data = _bytes(body or b"")
        elif hasattr(body, "read"):
            self.data = _bytes(body.read())
            self._again = io.BytesIO(self.data)
        else:
            pieces = [_bytes(piece) for piece in body]
            self.data, self._again = b"".join(pieces), _given(pieces)

    def __enter__(self) -> None:
        self._request.body = self._again

    def __exit__(self, *error: object) -> None:
        self._request.body = self._body


class Refusal:
    """The body of a synthetic response that refuses a request."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    def receive_chunk(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    def close(self) -> None: ...


def _given(pieces: list[bytes]) -> Iterator[bytes]:
    # Not a list: requests frames a body that has a length in another way.
    yield from pieces


def _head(raw: Any) -> Head:
    original = getattr(raw, "_original_response", None)
    pairs: Headers = tuple((raw.headers if original is None else original.msg).items())
    version = _OLD if raw.version == _OLD_VERSION else _USUAL
    return Head(raw.status, raw.reason or "", pairs, version)


def _bytes(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
