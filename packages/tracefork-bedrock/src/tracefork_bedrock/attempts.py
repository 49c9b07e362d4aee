"""Know each attempt of a request before it is sent, by the public events of its client.

`before-sign` tells what is about to be signed and by which signer, `choose-signer` which signature
it gets, and `before-send` which prepared request came of it. The seam itself lies lower, where the
HTTP session of botocore sends: handlers of `before-send` of other people run before that. A rate
limiter waits there, and a mock may answer there: then there is no exchange.

A session that answers from a tape signs nothing until a request is live. So a replay needs no
credentials, and a request that a fork changes is signed as it is sent.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from botocore import UNSIGNED
from botocore.awsrequest import AWSRequest

from tracefork_bedrock.effects import effect_of
from tracefork_core.adapters import Request, answering_tape, in_session

SEAM = "botocore"
_MARK = "tracefork_attempt"
_VOLATILE = frozenset(
    {
        "amz-sdk-invocation-id",
        "amz-sdk-request",
        "authorization",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-user-agent",
        "x-amzn-trace-id",
    }
)
"""Headers of one attempt: who signed it, when, and with what. None of them goes onto a tape."""


class Attempt(NamedTuple):
    """One attempt of a request: its signer, its operation, and the request before it is signed."""

    signer: Any
    operation: str
    unsigned: AWSRequest

    def to_send(self, prepared: Any, instead: Request | None) -> Any:
        """Return the request to send, signed: the agent's, or the one that a fork sends instead."""
        if instead is None and not _is_unsigned(prepared):
            return prepared
        request = self._unsigned_again(prepared, instead)
        with _signing_late():
            self.signer.sign(self.operation, request)
        return _prepared_like(prepared, request)

    async def ato_send(self, prepared: Any, instead: Request | None) -> Any:
        """Return the same for a client of aiobotocore."""
        if instead is None and not _is_unsigned(prepared):
            return prepared
        request = self._unsigned_again(prepared, instead)
        with _signing_late():
            await self.signer.sign(self.operation, request)
        return _prepared_like(prepared, request)

    def _unsigned_again(self, prepared: Any, instead: Request | None) -> AWSRequest:
        if instead is None:
            method, url, body = prepared.method, prepared.url, prepared.body
        else:
            method, url, body = instead.method, instead.url, instead.body
        headers = {name: text(value) for name, value in prepared.headers.items()}
        if instead is not None:
            headers.pop("Content-Length", None)
            headers.pop("Host", None)
        request = AWSRequest(method, url, headers, body, auth_path=self.unsigned.auth_path)
        request.context.update(self.unsigned.context)
        return request


_about_to_be_signed: ContextVar[Attempt | None] = ContextVar("tracefork_attempt", default=None)
_late: ContextVar[bool] = ContextVar("tracefork_signing_late", default=False)


def attempt_of(prepared: Any) -> Attempt | None:
    """Return the attempt that a prepared request belongs to; None if its client is not recorded."""
    attempt: Attempt | None = getattr(prepared, _MARK, None)
    return attempt


def watch(events: Any, services: Iterable[str], owner: str) -> None:
    """Know the attempts of a client, or of each later client of a session. Twice is once.

    `owner` tells who watches: one does not end what another began.
    """
    for service in services:
        for event, handler in _HANDLERS.items():
            name = f"tracefork-{owner}-{event}-{service}"
            events.register_first(f"{event}.{service}", handler, unique_id=name)


def leave(events: Any, services: Iterable[str], owner: str) -> None:
    """Undo `watch`."""
    for service in services:
        for event, handler in _HANDLERS.items():
            name = f"tracefork-{owner}-{event}-{service}"
            events.unregister(f"{event}.{service}", handler, unique_id=name)


def request_of(prepared: Any, operation: str) -> Request:
    """Return the request of the contract, without what belongs to one attempt only."""
    headers = tuple(
        (name, text(value))
        for name, value in prepared.headers.items()
        if name.lower() not in _VOLATILE
    )
    body = _body_of(prepared)
    return Request(prepared.method, prepared.url, headers, body, SEAM, effect_of(operation))


def _body_of(prepared: Any) -> bytes:
    """Return the body of a request, which can still be sent after that."""
    body = prepared.body
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray):
        return bytes(body)
    if getattr(body, "seekable", bool)():
        here = body.tell()
        data = body.read()
        body.seek(here)
    else:
        data = body.read() if hasattr(body, "read") else b"".join(body)
        prepared.body = io.BytesIO(data)
    return data.encode() if isinstance(data, str) else bytes(data)


def text(value: Any) -> str:
    """Return the value of a header, which botocore encodes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _note(request: Any, request_signer: Any, operation_name: str, **_: Any) -> None:
    if in_session() and not _late.get():
        _about_to_be_signed.set(Attempt(request_signer, operation_name, request))


def _choose(**_: Any) -> Any:
    return UNSIGNED if not _late.get() and answering_tape() is not None else None


def _mark(request: Any, **_: Any) -> None:
    if in_session():
        setattr(request, _MARK, _about_to_be_signed.get())


_HANDLERS = {"before-sign": _note, "choose-signer": _choose, "before-send": _mark}


def _prepared_like(prepared: Any, request: AWSRequest) -> Any:
    for name, value in request.headers.items():
        if isinstance(value, str):
            request.headers.replace_header(name, value.encode())
    sent = request.prepare()
    sent.stream_output = prepared.stream_output
    return sent


@contextmanager
def _signing_late() -> Iterator[None]:
    token = _late.set(True)
    try:
        yield
    finally:
        _late.reset(token)


def _is_unsigned(prepared: Any) -> bool:
    return answering_tape() is not None and "Authorization" not in prepared.headers
