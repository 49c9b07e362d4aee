"""Make one call of a tool that yields: each value is a line of JSON and a delivery of its own.

What the agent sends or throws into a generator is not on the tape, so a tool that uses it could not
be replayed. A value that is sent is refused, and an exception that is thrown ends the stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Failure, Head, Recorded, Session
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.tools.calls import Ended, Running
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool

HEAD = Head(200, "OK", (("content-type", "application/x-ndjson"),))
ASYNC_HEAD = Head(200, "OK", (("content-type", "application/x-ndjson; awaited"),))
"""For an async generator that a plain function returned: see `calls`."""
RETURN, _RETURNED = b'{"$return":', b"}\n"
"""These surround the return value of a generator: no yielded value begins like this."""


def call(tool: Tool, session: Session, args: Args, kwargs: Kwargs) -> Generator[Any, Any, Any]:
    """Yield the values of the tool: its own, or the recorded ones.

    Raises:
        TraceforkError: the session has failed, or fails with this call.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        return (yield from tool.function(*args, **kwargs))
    if not answer.is_live:
        return (yield from replay(tool, answer))
    return (yield from record(Running(tool, answer, asked, args, kwargs)))


async def acall(
    tool: Tool, session: Session, args: Args, kwargs: Kwargs
) -> AsyncGenerator[Any, Any]:
    """Yield the values of the tool: its own, or the recorded ones.

    Raises:
        TraceforkError: the session has failed, or fails with this call.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        items = tool.function(*args, **kwargs)
    elif answer.is_live:
        items = arecord(Running(tool, answer, asked, args, kwargs))
    else:
        items = areplay(tool, answer)
    try:
        async for item in items:
            _refuse(tool, (yield item))
    finally:
        await items.aclose()


def record(
    running: Running, items: Generator[Any, Any, Any] | None = None
) -> Generator[Any, Any, Any]:
    """Yield the values of the tool, each on the tape first.

    `items` is its generator, if that exists already and the head is on the tape.
    """
    live = running.live
    begun, over = items is not None, False
    try:
        while not over:
            try:
                with crossing_seam():
                    items = items or running.start()
                    value = next(items)
            except StopIteration as stop:
                over = True
                ended = running.kept(stop.value, ending=True)
            except BaseException as error:
                ended = running.raised(error)
            else:
                ended = running.kept(value)
            running.check(ended)
            if not begun:
                begun = True
                live.head(HEAD)
            if not over:
                live.chunk(ended.body + b"\n")
                _refuse(running.tool, (yield ended.given))
            elif stop_line := _returned(ended):
                live.chunk(stop_line)
        live.end()
        return ended.given
    finally:
        live.abandon()
        if items is not None:
            with crossing_seam():
                items.close()


async def arecord(
    running: Running, items: AsyncGenerator[Any, Any] | None = None
) -> AsyncGenerator[Any, Any]:
    """Do the same as `record` with an async generator."""
    live = running.live
    begun, over = items is not None, False
    try:
        while not over:
            try:
                with crossing_seam():
                    items = items or running.start()
                    value = await anext(items)
            except StopAsyncIteration:
                over, ended = True, Ended()
            except BaseException as error:
                ended = running.raised(error)
            else:
                ended = running.kept(value)
            await running.quiet()
            running.check(ended)
            if not begun:
                begun = True
                live.head(HEAD)
                await running.quiet()
            if not over:
                live.chunk(ended.body + b"\n")
                yield ended.given
        live.end()
    finally:
        live.abandon()
        if items is not None:
            with crossing_seam():
                await items.aclose()


def replay(tool: Tool, answer: Recorded, head: Head | None = None) -> Generator[Any, Any, Any]:
    """Yield the recorded values; `head` is the head of the answer, if it was received already."""
    try:
        piece: Head | Failure | bytes | None = head or answer.receive_head()
        while piece is not None:
            for line in _lines(tool, piece):
                if line.startswith(RETURN):
                    returned = line[len(RETURN) : -1]
                    while answer.receive_chunk() is not None:
                        pass
                    return tool.rebuild(returned, ending=True)
                _refuse(tool, (yield tool.rebuild(line)))
            piece = answer.receive_chunk()
        return None
    finally:
        answer.close()


async def areplay(
    tool: Tool, answer: Recorded, head: Head | None = None
) -> AsyncGenerator[Any, Any]:
    """Do the same as `replay` for an async generator."""
    try:
        piece: Head | Failure | bytes | None = head or await answer.areceive_head()
        while piece is not None:
            for line in _lines(tool, piece):
                yield tool.rebuild(line)
            piece = await answer.areceive_chunk()
    finally:
        answer.close()


def _lines(tool: Tool, piece: Head | Failure | bytes) -> list[bytes]:
    """Return the lines of a piece; raise the tool's exception for a failure."""
    if isinstance(piece, Failure):
        raise tool.failures.exception(piece)
    return piece.splitlines() if isinstance(piece, bytes) else []


def _returned(ended: Ended) -> bytes:
    """Return the line for the return value of a generator; empty for None."""
    return b"" if ended.given is None else RETURN + ended.body + _RETURNED


def _refuse(tool: Tool, sent: object) -> None:
    if sent is not None:
        raise UsageError(
            f"tracefork: the agent sent a value into the tool {tool.name}, a generator. Sent "
            "values are not on the tape. Pass it as an argument, or make it two tools."
        )
