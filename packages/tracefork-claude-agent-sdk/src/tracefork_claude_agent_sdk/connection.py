"""One connection between the SDK and Claude Code: each line crosses here.

What the SDK sends is an exchange. The answer of a request is the line that answers it. The answer
of a prompt is all other lines until the next prompt: messages of the model, results of tools, and
requests of Claude Code for hooks, permissions and tools of this process. The SDK's responses to
those are exchanges with an empty answer. Before the first prompt, other lines belong to
`initialize`.

A recorded line waits for its recorded turn, so a result of a tool comes after the answer to the
question whether the tool may run. `send` runs in the task of the caller, so an exchange has the
caller's lane and step. All that comes in goes through one queue, whether it is live or recorded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

from tracefork_claude_agent_sdk import lines
from tracefork_claude_agent_sdk.failures import exception_of, failure_of
from tracefork_claude_agent_sdk.lines import Line
from tracefork_claude_agent_sdk.pending import Pending
from tracefork_claude_agent_sdk.process import ClaudeCode, environments_of, options_of
from tracefork_claude_agent_sdk.steps import Steps, is_within_turn
from tracefork_core import TraceforkError, UsageError
from tracefork_core.adapters import (
    Failure,
    Head,
    Live,
    Recorded,
    answering_tape,
    crossing_seam,
    current_step,
    fork_point,
    mask_secrets_of,
)

_END: Any = object()
_WITHIN_TURN = (
    "tracefork: the fork point lies within a turn of Claude Code, which can only continue from the "
    "beginning of one. Nothing was sent. Fork at a prompt: `tracefork show` lists them."
)


class Connection:
    """What the SDK sends and gets on one transport, under one session."""

    def __init__(self, transport: Any, session: Any, program: ClaudeCode) -> None:
        check_loop()
        self.session = session
        self.steps = Steps()
        self._transport = transport
        self.program = program
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._channels: list[Pending] = []
        self._requests: dict[str, Pending] = {}
        self._asked: dict[str, Line] = {}
        self._settings: list[Line] = []
        self._repeated: dict[str, asyncio.Future[None]] = {}
        self._last: tuple[str, str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()
        self._is_closed = False
        self._error: Exception | None = None
        self._is_unseen = False
        for environment in environments_of(transport):
            mask_secrets_of(environment)

    # What the SDK sends.

    async def send(self, data: str) -> None:
        """Send a line of the SDK, or answer it from the tape.

        Raises:
            TraceforkError: the session has failed, or fails with this line.
        """
        line: Line = json.loads(data)
        if not self.session.active:
            await self._forward(line)
            return
        try:
            _check_fork_point()
            await self._send(line)
        except TraceforkError as error:
            self._error = error
            # The SDK sends responses in tasks that it does not await.
            self._is_unseen = line.get("type") == "control_response"
            self._inbox.put_nowait(_END)
            raise

    async def _send(self, line: Line) -> None:
        name = lines.named(line, self._asked)
        body = lines.compared(line)
        if name.method == lines.INITIALIZE:
            body = {"request": body, "options": options_of(self._transport)}
        is_prompt = name.method == lines.PROMPT
        step = self.steps.begin_turn() if is_prompt else current_step.get()
        token = current_step.set(step)
        try:
            answer = self.session.open(lines.request_of(name, body))
        finally:
            current_step.reset(token)
        if answer is None:
            await self._forward(line)
        elif not answer.is_live:
            await self._replay(line, name.method, answer)
        elif line.get("type") == "control_response":
            await self._respond(line, answer)
        else:
            await self._ask(line, name.method, answer)

    async def _ask(self, line: Line, method: str, answer: Live) -> None:
        if answer.sends is not None:
            line = {**line, **json.loads(answer.sends.body)}
        asked = Pending(line.get("request_id"), answer)
        try:
            # Claude Code asks for hooks and tools while it starts: that belongs to this exchange.
            if method in (lines.PROMPT, lines.INITIALIZE):
                await self._open_channel(asked)
            await self._start(method)
            if asked.request_id is not None:
                self._requests[asked.request_id] = asked
            await self.program.write(line)
        except TraceforkError:
            self._forget(asked)
            answer.cancel()
            raise
        except Exception as error:
            self._forget(asked)
            await asked.end(failure_of(error))
            raise

    async def _respond(self, line: Line, answer: Live) -> None:
        self._asked.pop(str(line["response"].get("request_id")), None)
        try:
            await self._start("response")
            await self.program.write(line)
        except TraceforkError:
            answer.cancel()
            raise
        except Exception as error:
            await answer.quiet()
            answer.fail(failure_of(error))
            raise
        await answer.quiet()
        answer.head(lines.ACCEPTED)
        await answer.quiet()
        answer.end()

    async def _replay(self, line: Line, method: str, answer: Recorded) -> None:
        if line.get("type") == "control_response":
            self._asked.pop(str(line["response"].get("request_id")), None)
            await answer.areceive_head()
            await answer.areceive_chunk()
            return
        if method in lines.SETTINGS:
            self._settings.append(line)
        with crossing_seam():
            self._begin(self._deliver(line.get("request_id"), answer))

    async def _open_channel(self, asked: Pending) -> None:
        """Let the lines that answer no request belong to this exchange, once it is its turn."""
        self._channels.append(asked)
        while len(self._channels) > 1 and (self._channels[0].is_over or self._is_first_prompt()):
            await self._channels.pop(0).end()

    def _is_first_prompt(self) -> bool:
        """Return whether the oldest channel is that of `initialize`."""
        first = self._channels[0]
        return first.request_id is not None and first.request_id not in self._requests

    def _forget(self, asked: Pending) -> None:
        if asked in self._channels:
            self._channels.remove(asked)
        self._requests.pop(asked.request_id or "", None)

    async def _forward(self, line: Line) -> None:
        if not self.program.is_started:
            await self._start(lines.INITIALIZE)
        await self.program.write(line)

    # Claude Code.

    async def _start(self, method: str) -> None:
        """Start Claude Code if it does not run.

        Raises:
            UsageError: it cannot continue from here.
        """
        async with self._starting:
            if self.program.is_started:
                return
            if method not in (lines.INITIALIZE, lines.PROMPT):
                raise UsageError(_WITHIN_TURN)
            if self._settings and not self.program.can_resume():
                raise UsageError(
                    "tracefork: this transport cannot resume a session of Claude Code, so a fork "
                    "must run from its beginning. Nothing was sent. Fork at `initialize`."
                )
            if self._last is not None and self._last[1] == lines.REPLACED:
                raise UsageError(
                    "tracefork: Claude Code cannot continue from an answer that it did not give. "
                    "Nothing was sent. Replace the answer of the last turn, or change its prompt: "
                    "--prompt TEXT."
                )
            await self.program.start(self._last if self._settings else None)
            with crossing_seam():
                self._begin(self._feed())
            for number, line in enumerate(self._settings):
                private = f"tracefork_{number}"
                answered = self._repeated[private] = asyncio.get_running_loop().create_future()
                try:
                    await self.program.write({**line, "request_id": private})
                    await answered
                except Exception as error:
                    raise UsageError(
                        f"tracefork: Claude Code cannot resume the recorded session: {error} It "
                        "looks for the session on this machine. Fork where the run was recorded, "
                        "or at its first prompt."
                    ) from error

    async def _feed(self) -> None:
        """Record and deliver what Claude Code sends, until it ends."""
        failure: BaseException | None = None
        try:
            async for line in self.program.lines():
                answered = self._repeated.pop(lines.response_id(line) or "", None)
                if answered is not None:
                    answered.set_result(None)
                    continue
                if self.session.active:
                    with suppress(TraceforkError):  # The session raises it again.
                        await self._record(line)
                self._hand_on(line)
        except Exception as error:  # noqa: BLE001 - the SDK raises it
            failure = error
        for answered in self._repeated.values():
            answered.set_exception(failure or ConnectionError("Claude Code ended"))
        if not self._is_closed and self.session.active:
            with suppress(TraceforkError):
                await self._end_all(failure)
        self._inbox.put_nowait(failure or _END)

    async def _record(self, line: Line) -> None:
        asked = self._requests.pop(lines.response_id(line) or "", None)
        if asked is not None and asked not in self._channels:
            await asked.hear(line)
            await asked.end()
            return
        while len(self._channels) > 1 and self._channels[0].is_over:
            await self._channels.pop(0).end()
        if self._channels:
            await self._channels[0].hear(line)

    async def _end_all(self, failure: BaseException | None) -> None:
        """Record that Claude Code ended by itself."""
        waiting = [one for one in self._requests.values() if one not in self._channels]
        channels, self._channels = self._channels, []
        self._requests.clear()
        for number, asked in enumerate([*channels, *waiting]):
            if failure is not None:
                await asked.end(failure_of(failure))
                continue
            if number == len(channels) - 1:
                await asked.hear(lines.END)
            await asked.end()

    # What the tape holds.

    async def _deliver(self, request_id: str | None, answer: Recorded) -> None:
        """Deliver a recorded answer, each line in its turn."""
        buffer = b""
        try:
            piece: Head | Failure | bytes | None = await answer.areceive_head()
            while piece is not None:
                if isinstance(piece, Failure):
                    self._inbox.put_nowait(exception_of(piece))
                    return
                if isinstance(piece, bytes):
                    *whole, buffer = (buffer + piece).split(b"\n")
                    for data in whole:
                        self._deliver_line(request_id, data)
                piece = await answer.areceive_chunk()
            self._deliver_line(request_id, buffer)
        except asyncio.CancelledError:
            answer.close()
            raise
        except TraceforkError as error:
            self._inbox.put_nowait(error)

    def _deliver_line(self, request_id: str | None, data: bytes) -> None:
        if not data.strip():
            return
        line = lines.parsed(data)
        if line == lines.END:
            self._inbox.put_nowait(_END)
        else:
            self._hand_on(lines.answering(line, request_id))

    # Both.

    def _hand_on(self, line: Line) -> None:
        if line.get("type") == "control_request":
            self._asked[str(line.get("request_id"))] = line.get("request") or {}
        elif line.get("type") == "assistant" and line.get("parent_tool_use_id") is None:
            self._last = (str(line.get("session_id")), str(line.get("uuid")))
        self._inbox.put_nowait(line)

    async def messages(self) -> AsyncIterator[Line]:
        """Yield the lines for the SDK."""
        while True:
            item = await self._inbox.get()
            error = self._error or (item if isinstance(item, Exception) else None)
            if error is not None:
                self._is_unseen = False
                self.steps.end(repr(error))
                raise error
            if item is _END:
                self.steps.end()
                return
            self.steps.see(item)
            yield item

    async def end_input(self) -> None:
        """Tell Claude Code that nothing more is sent."""
        await self.program.end_input()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the connection."""
        self._is_closed = True
        await self.program.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TraceforkError):
            for asked in {*self._channels, *self._requests.values()}:
                if asked.is_over:
                    await asked.end()
                else:
                    asked.live.cancel()
        self._channels.clear()
        self._requests.clear()
        self.steps.end()
        if self._error is not None and self._is_unseen:
            raise self._error


def _check_fork_point() -> None:
    """Raise if the session forks within a turn.

    Raises:
        UsageError: it does.
    """
    at, tape = fork_point(), answering_tape()
    if at is None or tape is None or at >= len(tape.exchanges):
        return
    exchange = tape.exchanges[at]
    if exchange.method != lines.PROMPT and is_within_turn(exchange.steps):
        raise UsageError(_WITHIN_TURN)


def check_loop() -> None:
    """Raise unless this runs on asyncio.

    Raises:
        UsageError: it runs on another event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "tracefork: async code can be recorded and replayed on asyncio only, and this runs on "
            "another event loop (trio?). Nothing was sent. Run it on asyncio."
        ) from None
