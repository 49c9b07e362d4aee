"""Record the requests of an ASGI app (Starlette, FastAPI, Quart, Litestar …), one tape each.

The app gets every message as the server sent it; copies go onto the tape. A run is what happens
within the app's call: the response, also a streamed one, and the background tasks after it.
WebSockets and lifespan events pass through. After the last one of a kept run, its tape is written
in a thread, so that the event loop serves other requests meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracefork_core.service.messages import Body, Incoming, Outgoing, served_request
from tracefork_core.service.service_run import Run

if TYPE_CHECKING:
    from tracefork_core.service.recorder import Recorder

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_ID = "x-request-id"


class RecordingMiddleware:
    """An ASGI app around another one. `Recorder.asgi` makes it."""

    def __init__(self, app: App, recorder: Recorder) -> None:
        self.app = app
        self._recorder = recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = _pairs(scope["headers"])
        run = self._recorder.begin(
            f"{scope['method']} {scope['path']}",
            next((value for name, value in headers if name.lower() == _ID), ""),
        )
        if run is None:
            await self.app(scope, receive, send)
            return
        watched = _Watched(receive, send)
        error: BaseException | None = None
        try:
            await self.app(scope, watched.receive, watched.send)
        except BaseException as raised:
            error = raised
            raise
        finally:
            run.status = watched.status
            run.name = f"{scope['method']} {_route(scope)}"
            run.is_unfinished = watched.status is None and not watched.is_disconnected
            if isinstance(error, asyncio.CancelledError) and watched.is_disconnected:
                error = None  # The client left, and the server gave the request up.
            incoming = Incoming(
                "asgi", scope["method"], _target(scope), headers, scope.get("root_path", ""),
                watched.asked,
            )  # fmt: skip
            outgoing = Outgoing(watched.status, watched.headers, watched.answered)
            await self._recorder.afinish(run, error, _served(run, incoming, outgoing))


def _served(run: Run, incoming: Incoming, outgoing: Outgoing) -> Callable[[], Any]:
    def served() -> Any:
        assert run.masking is not None
        return served_request(run.masking, run.name, run.id, incoming, outgoing, run.outcome)

    return served


class _Watched:
    """The two channels of a request, with what passes through them."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.asked = Body()
        self.answered = Body()
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.is_disconnected = False
        self._is_whole = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.asked.add(message.get("body", b""))
        elif message["type"] == "http.disconnect" and not self._is_whole:
            self.is_disconnected = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = _pairs(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self.answered.add(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        await self._send(message)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    pairs = ((bytes(name), bytes(value)) for name, value in headers)
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _route(scope: Scope) -> str:
    """Return the template of the route, which Starlette and FastAPI put into the scope."""
    template = getattr(scope.get("route"), "path", None)
    return template if isinstance(template, str) else str(scope["path"])


def _target(scope: Scope) -> str:
    raw = scope.get("raw_path")
    path = bytes(raw).decode("latin-1") if raw else quote(str(scope["path"]))
    query = bytes(scope.get("query_string", b"")).decode("latin-1")
    return f"{path.partition('?')[0]}?{query}" if query else path
