"""Make exchanges of what models are asked over a websocket.

The SDK keeps one connection per model and sends one request at a time on it: a frame with the body
that it would post to `/responses`, answered by frames with the events that it would stream. So a
request is one exchange whose answer is a stream of events, and everything that reads, answers or
edits requests to `/responses` works for it too.

The seam is where the SDK asks for a connection, once per attempt, and not where it opens one: an
open connection is used again, and a replay has no connection that could have closed in between. The
head of the answer says that a connection was there. So a failure without a head is one to connect.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import wraps
from http import HTTPStatus
from typing import Any

from agents.models import openai_responses

from tracefork_core.adapters import (
    Failure,
    Head,
    Live,
    Patches,
    Recorded,
    Request,
    crossing_seam,
    session_here,
)

_GAP = b"\n\n"
_STREAM = (("content-type", "text/event-stream"),)
_ENDINGS = frozenset(
    f"response.{ending}" for ending in ("completed", "failed", "incomplete", "error")
) | {"error"}
_OF_PYTHON = {
    kind.__name__: kind
    for kind in (
        *(ConnectionError, ConnectionRefusedError, ConnectionResetError, OSError),
        *(TimeoutError, RuntimeError),
    )
}

_frame: ContextVar[dict[str, Any]] = ContextVar("tracefork_websocket_frame")
"""What this task is about to send."""


def put_in(patches: Patches) -> None:
    """Make the requests of a session's websocket models exchanges."""
    model = openai_responses.OpenAIResponsesWSModel
    patches.wrap(model, "_prepare_websocket_request", _noting_frame)
    patches.wrap(model, "_ensure_websocket_connection", _per_request)


def _noting_frame(prepare: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(prepare)
    async def prepared(self: Any, create_kwargs: dict[str, Any]) -> Any:
        made = await prepare(self, create_kwargs)
        _frame.set(made[0])
        return made

    return prepared


def _per_request(ensure: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ensure)
    async def connected(self: Any, ws_url: str, headers: Any, **options: Any) -> Any:
        session = session_here()
        if session is None:
            return await ensure(self, ws_url, headers, **options)
        body = json.dumps(_frame.get(), default=openai_responses._json_dumps_default)  # noqa: SLF001
        asked = Request("POST", ws_url, tuple(headers.items()), body.encode(), "websockets")
        answer = session.open(asked)
        if answer is None:
            return await ensure(self, ws_url, headers, **options)
        if not answer.is_live:
            head = await answer.areceive_head()
            if isinstance(head, Failure):
                raise _error_of(head)
            return _Replayed(answer, head)
        sends = answer.sends.body.decode() if answer.sends else None
        recorded = _Recording(answer, sends)
        async with recorded.reported():
            with crossing_seam():
                recorded.connection = await ensure(self, ws_url, headers, **options)
            await answer.quiet()
        answer.head(Head(200, "OK", _STREAM))
        return recorded

    return connected


class _Recording:
    """A connection for one live request: reports to the session what arrives on it."""

    def __init__(self, live: Live, sends: str | None) -> None:
        self.connection: Any = None
        self._live = live
        self._sends = sends

    @property
    def transport(self) -> Any:
        """What the SDK aborts where the agent stops reading."""
        return _Transport(self)

    def abort(self) -> None:
        """End the exchange and the connection."""
        self._live.abandon()
        with crossing_seam():
            self.connection.transport.abort()

    async def send(self, frame: str) -> None:
        """Send the request, or what a fork sends instead."""
        async with self.reported():
            with crossing_seam():
                await self.connection.send(self._sends or frame)

    async def recv(self) -> Any:
        """Return the next event."""
        async with self.reported():
            with crossing_seam():
                frame = await self.connection.recv()
            await self._live.quiet()
        text = frame.decode() if isinstance(frame, bytes) else frame
        self._live.chunk(_event(text))
        if json.loads(text).get("type") in _ENDINGS:
            self._live.end()
        return frame

    @asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """Report how a part of the request fails."""
        try:
            yield
        except Exception as error:
            await self._live.quiet()
            self._live.fail(Failure(type(error).__name__, str(error)))
            raise
        except BaseException:
            self._live.cancel()
            raise


class _Transport:
    """The part of a connection's transport that the SDK uses."""

    def __init__(self, recording: _Recording | _Replayed) -> None:
        self.abort = recording.abort


class _Replayed:
    """A connection for one request that is answered without a server."""

    def __init__(self, answer: Recorded, head: Head) -> None:
        self._answer = answer
        self._status = head.status
        self._rest = b""

    @property
    def transport(self) -> Any:
        """What the SDK aborts where the agent stops reading."""
        return _Transport(self)

    def abort(self) -> None:
        """End the exchange."""
        self._answer.close()

    async def send(self, frame: str) -> None:
        """Do nothing: the session got the request when the connection was asked for."""

    async def recv(self) -> str | None:
        """Return the next event; None at the end of an answer without a last one."""
        while self._status >= HTTPStatus.BAD_REQUEST or _GAP not in self._rest:
            piece = await self._answer.areceive_chunk()
            if isinstance(piece, Failure):
                raise _error_of(piece)
            if piece is None:
                return self._last()
            self._rest += piece
        event, _, self._rest = self._rest.partition(_GAP)
        text = _text(event)
        if json.loads(text).get("type") in _ENDINGS:
            await self._answer.areceive_chunk()
        return text

    def _last(self) -> str | None:
        """Return the error that a fork gives as an HTTP response, as the event of an error."""
        body, self._rest = self._rest, b""
        if not body or self._status < HTTPStatus.BAD_REQUEST:
            return None
        return json.dumps({**json.loads(body), "type": "error", "status": self._status})


def _event(text: str) -> bytes:
    """Return the text of a frame as an event of a stream."""
    return b"".join(b"data: " + line + b"\n" for line in text.encode().split(b"\n")) + b"\n"


def _text(event: bytes) -> str:
    lines = event.split(b"\n")
    return b"\n".join(line[6:] for line in lines if line.startswith(b"data: ")).decode()


def _error_of(failure: Failure) -> Exception:
    """Return a recorded failure as the exception that the SDK got: it tells them by class."""
    if failure.kind in _OF_PYTHON:
        return _OF_PYTHON[failure.kind](failure.message)
    # The package is an optional requirement of the SDK, which imports it late too.
    from websockets import exceptions

    kind = getattr(exceptions, failure.kind, exceptions.WebSocketException)
    said = {"__str__": lambda _: failure.message, "__module__": kind.__module__}
    made: Any = type(kind.__name__, (kind,), said)
    error: Exception = made.__new__(made)
    if failure.kind == "InvalidMessage":
        error.__cause__ = EOFError()  # The SDK tries again where the peer closed too early.
    return error
