"""One interface to every library that has websockets: a conversation, and all that an agent sees.

The steps of a conversation: a text or bytes are sent, and a number says how many messages to read.
A read that fails is the last step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import websockets
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
    except (OSError, websockets.InvalidStatus) as error:
        response = getattr(error, "response", None)
        seen.append(
            (type(error).__name__, *((response.status_code, response.body) if response else ()))
        )
    return seen


def _seen_of(error: BaseException) -> tuple[str, str]:
    return type(error).__name__, str(error)


TALKERS: dict[str, Talker] = {
    "websockets, asyncio": websockets_on_loop,
    "websockets, threads": websockets_in_thread,
}
