"""One call of a tool under a session, sync and async: recorded, or answered from the tape."""

from __future__ import annotations

from typing import Any, cast

from tracefork_core.exchange.contract import Failure, Head, Recorded, Session
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.cancelling import Cancellable
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool
from tracefork_core.seams.tools.running import Running


def call(tool: Tool, session: Session, args: Args, kwargs: Kwargs) -> Any:
    """Return what the tool returns, or returned.

    Raises:
        TraceforkError: the session is poisoned, or this call poisons it.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        return tool.function(*args, **kwargs)
    if hasattr(answer, "receive_head"):
        return _replay(tool, cast(Recorded, answer))
    return _record(Running(tool, answer, asked, args, kwargs))


async def acall(tool: Tool, session: Session, args: Args, kwargs: Kwargs) -> Any:
    """Return what the tool returns, or returned.

    Raises:
        TraceforkError: the session is poisoned, or this call poisons it.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        return await tool.function(*args, **kwargs)
    if hasattr(answer, "areceive_head"):
        return await _areplay(tool, cast(Recorded, answer))
    return await _arecord(Running(tool, answer, asked, args, kwargs))


def _record(running: Running) -> Any:
    live = running.live
    try:
        with crossing_seam():
            value = running.start()
    except BaseException as error:
        ended = running.raised(error)
    else:
        ended = running.kept(value)
    running.check(ended)
    live.head(_head(ended.body))
    live.chunk(ended.body)
    return ended.given


async def _arecord(running: Running) -> Any:
    live, working = running.live, None
    try:
        with crossing_seam():
            working = Cancellable(running.start())
            value = await working
    except BaseException as error:
        ended = running.raised(error, working.rounds if working else 0)
    else:
        ended = running.kept(value)
    await running.quiet()
    running.check(ended)
    live.head(_head(ended.body))
    await running.quiet()
    live.chunk(ended.body)
    return ended.given


def _head(body: bytes) -> Head:
    # With its length, so that the last byte is the end: one delivery less to wait for.
    length = str(len(body))
    return Head(200, "OK", (("content-type", "application/json"), ("content-length", length)))


def _replay(tool: Tool, answer: Recorded) -> Any:
    pieces: list[bytes] = []
    try:
        piece: Head | Failure | bytes | None = answer.receive_head()
        while piece is not None:
            if isinstance(piece, Failure):
                raise tool.failures.exception(piece)
            if isinstance(piece, bytes):
                pieces.append(piece)
            piece = answer.receive_chunk()
        return tool.rebuild(b"".join(pieces))
    except BaseException:
        answer.close()
        raise


async def _areplay(tool: Tool, answer: Recorded) -> Any:
    pieces: list[bytes] = []
    try:
        piece: Head | Failure | bytes | None = await answer.areceive_head()
        while piece is not None:
            if isinstance(piece, Failure):
                raise tool.failures.exception(piece)
            if isinstance(piece, bytes):
                pieces.append(piece)
            piece = await answer.areceive_chunk()
        return tool.rebuild(b"".join(pieces))
    except BaseException:
        answer.close()
        raise
