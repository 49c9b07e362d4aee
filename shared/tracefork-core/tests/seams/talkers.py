"""One interface to every library that has websockets: a conversation, and all that an agent sees.

The steps of a conversation: a text or bytes are sent, and a number says how many messages to read.
A read that fails is the last step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx2
import websockets
from httpx2.websockets import HTTPXWSException, WebSocketUpgradeError
from websockets.asyncio import client as on_loop
from websockets.sync import client as in_thread

Step = str | bytes | int
Seen = list[Any]
Talker = Callable[[str, list[Step]], Seen]
AUTHORIZATION = {"Authorization": "Bearer sk-of-the-agent"}


def websockets_on_loop(url: str, steps: list[Step]) -> Seen:
    async def talk(seen: Seen) -> None:
        async with on_loop.connect(url, additional_headers=AUTHORIZATION) as socket:
            try:
                for step in steps:
                    if isinstance(step, int):
                        for _ in range(step):
                            seen.append(await socket.recv())
                    else:
                        await socket.send(step)
            except websockets.ConnectionClosed as error:
                seen.append((*_seen_of(error), socket.close_code, socket.state.name))

    return _seen(lambda seen: asyncio.run(talk(seen)))


def websockets_in_thread(url: str, steps: list[Step]) -> Seen:
    def talk(seen: Seen) -> None:
        with in_thread.connect(url, additional_headers=AUTHORIZATION) as socket:
            try:
                for step in steps:
                    if isinstance(step, int):
                        seen += [socket.recv() for _ in range(step)]
                    else:
                        socket.send(step)
            except websockets.ConnectionClosed as error:
                seen.append((*_seen_of(error), socket.close_code, socket.state.name))

    return _seen(talk)


def _seen(talk: Callable[[Seen], object]) -> Seen:
    """Return what an agent saw, the exception of its handshake included."""
    seen: Seen = []
    try:
        talk(seen)
    except aiohttp.WSServerHandshakeError as error:
        seen.append((type(error).__name__, error.status, error.message))
    except WebSocketUpgradeError as error:
        seen.append((type(error).__name__, error.response.status_code))
    except (OSError, httpx2.TransportError, websockets.InvalidStatus) as error:
        response = getattr(error, "response", None)
        seen.append(
            (type(error).__name__, *((response.status_code, response.body) if response else ()))
        )
    return seen


def _seen_of(error: BaseException) -> tuple[str, str]:
    return type(error).__name__, str(error)


def aiohttp_on_loop(url: str, steps: list[Step]) -> Seen:
    async def talk(seen: Seen) -> None:
        async with (
            aiohttp.ClientSession(headers=AUTHORIZATION) as client,
            client.ws_connect(url) as socket,
        ):
            for step in steps:
                if isinstance(step, str):
                    await socket.send_str(step)
                elif isinstance(step, bytes):
                    await socket.send_bytes(step)
                else:
                    for _ in range(step):
                        message = await socket.receive()
                        is_data = message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)
                        last = (message.type.name, str(message.data), message.extra)
                        seen.append(message.data if is_data else (*last, socket.close_code))

    return _seen(lambda seen: asyncio.run(talk(seen)))


def httpx2_in_thread(url: str, steps: list[Step]) -> Seen:
    def talk(seen: Seen) -> None:
        with httpx2.Client(headers=AUTHORIZATION) as client, client.websocket(url) as socket:
            try:
                for step in steps:
                    if isinstance(step, str):
                        socket.send_text(step)
                    elif isinstance(step, bytes):
                        socket.send_bytes(step)
                    else:
                        for _ in range(step):
                            seen.append(socket.receive().data)  # type: ignore[attr-defined]
            except HTTPXWSException as error:
                seen.append((*_seen_of(error), *vars(error).values()))

    return _seen(talk)


def httpx2_on_loop(url: str, steps: list[Step]) -> Seen:
    async def talk(seen: Seen) -> None:
        async with (
            httpx2.AsyncClient(headers=AUTHORIZATION) as client,
            client.websocket(url) as socket,
        ):
            try:
                for step in steps:
                    if isinstance(step, str):
                        await socket.send_text(step)
                    elif isinstance(step, bytes):
                        await socket.send_bytes(step)
                    else:
                        for _ in range(step):
                            event: Any = await socket.receive()
                            seen.append(event.data)
            except HTTPXWSException as error:
                seen.append((*_seen_of(error), *vars(error).values()))

    return _seen(lambda seen: asyncio.run(talk(seen)))


TALKERS: dict[str, Talker] = {
    "websockets, asyncio": websockets_on_loop,
    "websockets, threads": websockets_in_thread,
    "aiohttp": aiohttp_on_loop,
    "httpx2, threads": httpx2_in_thread,
    "httpx2, asyncio": httpx2_on_loop,
}
