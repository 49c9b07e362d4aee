"""Answer requests: each becomes an exchange of the session, live or from the tape.

The proxy adds nothing to an exchange: no header, no matching, no order of its own. Two things
differ from a seam in the agent's process. The agent's threads and tasks are out of sight, so
nothing waits until they are at rest. And an error of the connection cannot become an exception
there: the program gets a response 502 with the error, which its SDK retries as it would retry the
error itself. A response that breaks off breaks off for the program, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import (
    PROXY,
    Failure,
    Head,
    Live,
    Recorded,
    Request,
    Session,
)
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.masking.names import is_credential
from tracefork_core.proxy.door import Door
from tracefork_core.proxy.routes import Routes
from tracefork_core.proxy.upstream import HOP_BY_HOP, Upstream, failure
from tracefork_core.seams.failures import refusal
from tracefork_core.session.replayed_exchange import ReplayedExchange

_SIGNED = "AWS4-"
"""The signature of AWS covers the host, which is the proxy: AWS would refuse it."""
_BEARER = "AWS accepts no such signature: set AWS_BEARER_TOKEN_BEDROCK instead of access keys"
_LEAVES_WITHIN = 10.0
"""Seconds until a program counts as reading on where the recorded one left."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _BrokenOffError(Exception):
    """The body of a response ends too early: the server closes the connection."""


class ProxyApp:
    """An ASGI app that answers the requests of programs under one session."""

    def __init__(self, session: Session, routes: Routes, door: Door, upstream: Upstream) -> None:
        self._session = session
        self._routes = routes
        self._door = door
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._relay_websocket(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._door.refusal(headers.get(b"host", ""), headers.get(b"origin"))
        if refused is not None:
            await _say(send, refused.status, refused.reason)
            return
        if (url := self._routes.url(_target(scope))) is None:
            await _say(send, 404, self._no_upstream(scope))
            return
        if self._session.source is None and headers.get(b"authorization", "").startswith(_SIGNED):
            await _say(send, 501, f"the request is signed for {headers[b'host']}. {_BEARER}")
            return
        body = await _body(receive)
        if body is None:
            return
        asked = Request(scope["method"], url, _headers(scope), body, PROXY)
        await _while_connected(self._answer(asked, send), receive)

    def _no_upstream(self, scope: Scope) -> str:
        known = ", ".join(f"/{name}" for name in sorted(self._routes.origins))
        reason = f"no upstream for {scope['path']!r}. Paths begin with one of: {known}. "
        return f"{reason}Or name one for all paths: --upstream URL"

    async def _relay_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        from tracefork_core.proxy import websockets  # Most programs use none.

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._door.refusal(headers.get(b"host", ""), headers.get(b"origin"))
        url = self._routes.url(_target(scope))
        if refused is not None:
            await websockets.refuse(send, *_said(refused.status, refused.reason))
        elif url is None:
            await websockets.refuse(send, *_said(404, self._no_upstream(scope)))
        else:
            sent = _headers(scope)
            self._session.take_in(_credentials(Request("GET", url, sent, b"", PROXY)))
            await websockets.relay(self._session, url, sent, PROXY, receive, send)

    async def _answer(self, asked: Request, send: Send) -> None:
        self._session.take_in(_credentials(asked))
        try:
            answer = self._session.open(asked)
            if answer is None:
                await self._pass_on(asked, send)
            elif answer.is_live:
                await self._live(answer, asked, send)
            else:
                await _replay(answer, send)
        except TraceforkError as error:
            head, body = refusal(error)
            await _begin(send, head)
            await _end(send, body)

    async def _pass_on(self, asked: Request, send: Send) -> None:
        """Answer a request that is no part of the run."""
        try:
            with crossing_seam():
                response = await self._upstream.send(asked)
        except self._upstream.errors as error:
            await _say_failed(send, failure(error))
            return
        try:
            await _begin(send, response.head)
            async for piece in response.pieces():
                await _piece(send, piece)
            await _end(send)
        except self._upstream.errors as error:
            raise _BrokenOffError from error
        finally:
            await response.close()

    async def _live(self, live: Live, asked: Request, send: Send) -> None:
        """Send a request, and pass on each piece of its response as soon as it is recorded."""
        try:
            with crossing_seam():
                response = await self._upstream.send(live.sends or asked)
        except asyncio.CancelledError:
            live.cancel()
            raise
        except self._upstream.errors as error:
            failed = failure(error)
            live.fail(failed)
            await _say_failed(send, failed)
            return
        try:
            head = response.head
            live.head(head)
            await _begin(send, head)
            await self._relay(live, response.pieces(), send)
            await _end(send)
        except asyncio.CancelledError:
            live.abandon()
            raise
        except TraceforkError as error:  # The head is sent: this cannot be a response any more.
            raise _BrokenOffError from error
        finally:
            await response.close()

    async def _relay(self, live: Live, pieces: Any, send: Send) -> None:
        try:
            async for piece in pieces:
                if piece:
                    live.chunk(piece)
                    await _piece(send, piece)
        except self._upstream.errors as error:
            live.fail(failure(error))
            raise _BrokenOffError from error
        live.end()


async def _replay(recorded: Recorded, send: Send) -> None:
    """Answer from the tape, each piece in its recorded turn."""
    head = await recorded.areceive_head()
    if isinstance(head, Failure):
        await _say_failed(send, head)
        return
    await _begin(send, head)
    try:
        while (piece := await _next(recorded)) is not None:
            if isinstance(piece, Failure):
                raise _BrokenOffError(piece.message)
            await _piece(send, piece)
    except asyncio.CancelledError:
        await _read_rest(recorded)
        raise
    except TraceforkError as error:
        raise _BrokenOffError from error
    await _end(send)


async def _next(recorded: Recorded) -> bytes | Failure | None:
    """Return the next piece; where the recorded program left, wait for this one to leave."""
    if isinstance(recorded, ReplayedExchange) and recorded.was_left:
        await asyncio.sleep(_LEAVES_WITHIN)
    return await recorded.areceive_chunk()


async def _read_rest(recorded: Recorded) -> None:
    """Read what the proxy had read of a response when the recorded program left.

    A program leaves while pieces are still on their way to it, so how many it got is a matter of
    time. That is not compared.
    """
    while isinstance(recorded, ReplayedExchange) and recorded.has_chunks:
        await recorded.areceive_chunk()
    recorded.close()


async def _while_connected(answering: Awaitable[None], receive: Receive) -> None:
    """Answer a request, and stop at once if the program closes the connection."""
    answer = asyncio.ensure_future(answering)
    left = asyncio.ensure_future(_until_left(receive))
    try:
        await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
        with suppress(asyncio.CancelledError):
            await answer
    finally:
        for task in (answer, left):
            task.cancel()


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if the program closed the connection meanwhile."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _target(scope: Scope) -> str:
    path: str = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _headers(scope: Scope) -> tuple[tuple[str, str], ...]:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    return tuple([pair for pair in pairs if pair[0] != "host" and pair[0] not in HOP_BY_HOP])


def _credentials(asked: Request) -> dict[str, str]:
    """Return the keys that a request carries, as variables: a server may echo one in a body.

    An idempotency key is a new one for each request, and no secret.
    """
    found = {}
    for name, value in asked.headers:
        if is_credential(name) and "idempotency" not in name:
            scheme, space, token = value.partition(" ")
            found[f"{name.replace('-', '_')}_key"] = token if space else scheme
    for name, value in parse_qsl(urlsplit(asked.url).query):
        if is_credential(name):
            found[f"{name}_key"] = value
    return found


async def _begin(send: Send, head: Head) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in head.headers
        if name.lower() not in HOP_BY_HOP
    ]
    await send({"type": "http.response.start", "status": head.status, "headers": headers})


async def _piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _end(send: Send, body: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": body})


async def _say_failed(send: Send, failed: Failure) -> None:
    await _say(send, 502, f"the upstream server failed: {failed.kind}: {failed.message}")


async def _say(send: Send, status: int, reason: str) -> None:
    """Answer with a response of the proxy itself."""
    head, body = _said(status, reason)
    await _begin(send, head)
    await _end(send, body)


def _said(status: int, reason: str) -> tuple[Head, bytes]:
    message = f"tracefork proxy: {reason}"
    error = {"type": "tracefork_proxy", "message": message}
    body = json.dumps({"type": "error", "error": error, "message": message}).encode()
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return Head(status, "", headers), body
