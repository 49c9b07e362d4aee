"""Pass the websockets of a program to their upstream server, live or from the tape.

A socket of the seam of websockets decides about each message, as it does for an agent in this
process. Two tasks pass messages on, one each way. Close codes pass too. A connection that the
upstream server cuts is closed with 1011: a proxy cannot cut only one websocket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Head, Headers, Session
from tracefork_core.seams.failures import refusal
from tracefork_core.seams.websockets.connections import Methods, OnLoopConnection, Opening
from tracefork_core.seams.websockets.family import Family
from tracefork_core.seams.websockets.messages import Message
from tracefork_core.seams.websockets.socket import Socket
from tracefork_core.seams.websockets.waiting import OnLoop

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_FAILED = 1011
_MADE_UP = (1004, 1005, 1006, 1015)
"""Codes that say how a connection ended, and that no close frame may hold."""


async def relay(
    session: Session, url: str, headers: Headers, seam: str, receive: Receive, send: Send
) -> None:
    """Answer a websocket of a program; `url` is that of the upstream server, over http or https."""
    await receive()
    socket, family = _socket(session, url.replace("http", "ws", 1), headers, seam)
    try:
        head = await socket.open()
    except TraceforkError as error:
        await refuse(send, *refusal(error))
        return
    except Exception as error:  # noqa: BLE001 - whatever the upstream server or the network does
        rejection = family.rejection(error)
        reason = f"the upstream server failed: {type(error).__name__}: {error}".encode()
        await refuse(send, *(rejection or (Head(502, "Bad Gateway", ()), reason)))
        return
    chosen = (v for name, v in head.headers if name.lower() == "sec-websocket-protocol")
    await send({"type": "websocket.accept", "subprotocol": next(chosen, None)})
    await _pass_on(socket, family, receive, send)


async def refuse(send: Send, head: Head, body: bytes) -> None:
    """Answer a handshake with a response."""
    kept = [pair for pair in head.headers if pair[0].lower() == "content-type"]
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in kept]
    start = {"type": "websocket.http.response.start", "status": head.status, "headers": fields}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})


def _socket(session: Session, url: str, headers: Headers, seam: str) -> tuple[Socket, Family]:
    lib, family = import_module("websockets.asyncio.client"), Family()
    own = tuple(pair for pair in headers if not pair[0].lower().startswith("sec-websocket"))
    protocols = [value for name, value in headers if name.lower() == "sec-websocket-protocol"]
    options: dict[str, Any] = {
        "additional_headers": list(own),
        "user_agent_header": None,
        "max_size": None,
        "subprotocols": [name.strip() for value in protocols for name in value.split(",")] or None,
    }

    async def opened() -> Any:
        return await lib.connect(url, **options)

    opening = Opening(family, opened, partial(OnLoopConnection, Methods(lib.ClientConnection)))
    opening.name = seam
    return Socket(session, url, own, opening, OnLoop()), family


async def _pass_on(socket: Socket, family: Family, receive: Receive, send: Send) -> None:
    sending = asyncio.ensure_future(_to_upstream(socket, receive))
    reading = asyncio.ensure_future(_to_program(socket, send))
    try:
        done, _ = await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
        if reading not in done:
            reading.cancel()
            await asyncio.wait({reading})
            await socket.read_rest()
        for task in done:
            task.result()
    except TraceforkError as error:
        await _close(send, _FAILED, str(error))
    except (OSError, family.exceptions.WebSocketException) as error:
        await _close(send, _FAILED, f"the connection to the upstream server was cut: {error}")
    finally:
        for task in (sending, reading):
            task.cancel()
        await socket.close()


async def _to_upstream(socket: Socket, receive: Receive) -> None:
    while (event := await receive())["type"] != "websocket.disconnect":
        text, data = event.get("text"), event.get("bytes")
        sent = Message(text.encode()) if text is not None else Message(data or b"", "binary")
        await socket.send(sent)
    code = event.get("code") or 1000
    if isinstance(socket.connection, OnLoopConnection) and code not in _MADE_UP:
        socket.connection.closing = (code, event.get("reason") or "")


async def _to_program(socket: Socket, send: Send) -> None:
    while (message := await socket.receive()).kind != "close":
        if message.kind == "text":
            await send({"type": "websocket.send", "text": message.data.decode()})
        else:
            await send({"type": "websocket.send", "bytes": message.data})
    code, reason = message.closing
    await _close(send, 1000 if code in _MADE_UP else code, reason)


async def _close(send: Send, code: int, reason: str) -> None:
    with suppress(RuntimeError):  # It is closed already.
        # A close frame has 125 bytes at most, two of them for the code.
        short = reason.encode()[:123].decode("utf-8", "ignore")
        await send({"type": "websocket.close", "code": code, "reason": short})
