"""Make one call of a tool in a session, sync or async: record it, or answer it from the tape.

A plain function may return a generator or a coroutine: a decorator does, if it has one below it.
Only the call tells. So the head is on the tape at that moment, before any value, and its content
type tells the replay what to return.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.exchange.contract import (
    TOOL_TEXT,
    TOOL_VALUE,
    Failure,
    Head,
    Live,
    Recorded,
    Request,
    Session,
)
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.cancelling import Cancellable
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool
from tracefork_core.seams.tools.verifying import wanted

_RecordRest = Callable[["Running", Any], Any]
_ReplayRest = Callable[[Tool, Recorded, Head], Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a call.

    Either a `body` for the tape and the value `given` to the agent, or a `failure` for the tape
    and the `error` that the agent gets.
    """

    body: bytes = b""
    given: Any = None
    failure: Failure | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """One call that runs the function and is recorded by `live`."""

    tool: Tool
    live: Live
    asked: Request
    args: Args
    kwargs: Kwargs

    def start(self) -> Any:
        """Call the function with the agent's arguments, or with those that a fork sets."""
        args, kwargs = self.args, self.kwargs
        if (sends := self.live.sends) is not None:
            args, kwargs = self.tool.instead(self.asked, sends, args, kwargs)
        return self.tool.function(*args, **kwargs)

    def kept(self, value: object, *, ending: bool = False) -> Ended:
        """Return the outcome of a result, or of the error that it cannot be recorded."""
        try:
            body, given = self.tool.keep(value, ending=ending)
        except UsageError as error:
            return Ended(failure=self.tool.failures.failure(error), error=error)
        return Ended(body, given)

    def raised(self, error: BaseException, rounds: int = 0) -> Ended:
        """Return the outcome of an exception of the tool; raise any other exception.

        `rounds` is the number of event-loop rounds that the cancellation took.
        """
        if isinstance(error, TraceforkError) or not isinstance(error, Exception):
            self.live.cancel(rounds)
            raise error
        failure = self.tool.failures.failure(error)
        seen = self.tool.failures.seen(error, failure)
        if seen is not error:
            seen.__cause__ = error
        return Ended(failure=failure, error=seen)

    def check(self, ended: Ended) -> None:
        """Record and raise the error of an outcome that has one."""
        if ended.failure is not None and ended.error is not None:
            self.live.fail(ended.failure)
            raise ended.error

    async def quiet(self) -> None:
        """Wait for this delivery's turn. If the agent gives up meanwhile, it gets nothing."""
        try:
            await self.live.quiet()
        except BaseException:
            self.live.cancel()
            raise


def call(tool: Tool, session: Session, args: Args, kwargs: Kwargs) -> Any:
    """Return the result of the tool: its own, or the recorded one.

    Raises:
        TraceforkError: the session has failed, or fails with this call.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        return tool.function(*args, **kwargs)
    if not answer.is_live:
        if (rerunning := wanted(tool, answer, asked)) is None:
            return _replay(tool, answer)
        with rerunning.after(args, kwargs):
            return _replay(tool, answer)
    return _record(Running(tool, answer, asked, args, kwargs))


async def acall(tool: Tool, session: Session, args: Args, kwargs: Kwargs) -> Any:
    """Return the result of the tool: its own, or the recorded one.

    Raises:
        TraceforkError: the session has failed, or fails with this call.
    """
    asked = tool.request(args, kwargs)
    answer = session.open(asked)
    if answer is None:
        return await tool.function(*args, **kwargs)
    if not answer.is_live:
        if (rerunning := wanted(tool, answer, asked)) is None:
            return await _areplay(tool, answer)
        async with rerunning.aafter(args, kwargs):
            return await _areplay(tool, answer)
    return await _arecord(Running(tool, answer, asked, args, kwargs))


def _record(running: Running) -> Any:
    live = running.live
    try:
        with crossing_seam():
            value = running.start()
    except BaseException as error:
        ended = running.raised(error)
    else:
        for is_kind, head, record_rest, _ in _rests():
            if is_kind(value):
                live.head(head)
                return record_rest(running, value)
        ended = running.kept(value)
    running.check(ended)
    live.head(_head(ended.body))
    live.chunk(ended.body)
    return ended.given


async def _arecord(running: Running, started: Any = None) -> Any:
    """Record a call, or the rest of one that has `started` and has its head on the tape."""
    live, working = running.live, None
    try:
        with crossing_seam():
            working = Cancellable(running.start() if started is None else started)
            value = await working
    except BaseException as error:
        ended = running.raised(error, working.rounds if working else 0)
    else:
        ended = running.kept(value)
    await running.quiet()
    running.check(ended)
    if started is None:
        live.head(_head(ended.body))
        await running.quiet()
    live.chunk(ended.body)
    if started is not None:
        live.end()
    return ended.given


def _head(body: bytes) -> Head:
    # With the length, so that the last byte is the end: that saves a delivery.
    length = str(len(body))
    return Head(200, "OK", (("content-type", TOOL_VALUE), ("content-length", length)))


_AWAITED = Head(200, "OK", (("content-type", "application/json; awaited"),))


def _rests() -> tuple[tuple[Callable[[object], bool], Head, _RecordRest, _ReplayRest], ...]:
    """Return what a function may return that runs later: how to know, record and replay it."""
    from tracefork_core.seams.tools import streams

    return (
        (inspect.isgenerator, streams.HEAD, streams.record, streams.replay),
        (inspect.isasyncgen, streams.ASYNC_HEAD, streams.arecord, streams.areplay),
        (inspect.iscoroutine, _AWAITED, _arecord, _areplay),
    )


def _replay(tool: Tool, answer: Recorded) -> Any:
    pieces: list[bytes] = []
    rebuild: Callable[[bytes], Any] = tool.rebuild
    try:
        piece: Head | Failure | bytes | None = answer.receive_head()
        if isinstance(piece, Head):
            rebuild = _rebuilding(tool, piece)
            for _, head, _, replay_rest in _rests():
                if _content_type(piece) == _content_type(head):
                    return replay_rest(tool, answer, piece)
        while piece is not None:
            if isinstance(piece, Failure):
                raise tool.failures.exception(piece)
            if isinstance(piece, bytes):
                pieces.append(piece)
            piece = answer.receive_chunk()
        return rebuild(b"".join(pieces))
    except BaseException:
        answer.close()
        raise


def _rebuilding(tool: Tool, head: Head) -> Callable[[bytes], Any]:
    return tool.said if _content_type(head) == TOOL_TEXT else tool.rebuild


def _content_type(head: Head) -> str:
    return next((value for name, value in head.headers if name.lower() == "content-type"), "")


async def _areplay(tool: Tool, answer: Recorded, head: Head | None = None) -> Any:
    pieces: list[bytes] = []
    rebuild: Callable[[bytes], Any] = tool.rebuild
    try:
        piece: Head | Failure | bytes | None = head or await answer.areceive_head()
        if isinstance(piece, Head):
            rebuild = _rebuilding(tool, piece)
        while piece is not None:
            if isinstance(piece, Failure):
                raise tool.failures.exception(piece)
            if isinstance(piece, bytes):
                pieces.append(piece)
            piece = await answer.areceive_chunk()
        return rebuild(b"".join(pieces))
    except BaseException:
        answer.close()
        raise
