"""The answers of a scripted provider, and their order."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tracefork_testkit.conversation import ModelRequest, ToolCall

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]
FaultKind = Literal[
    "status", "timeout", "reset", "truncate", "malformed", "misframed", "stream_error"
]


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts that the provider would bill."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class Hold:
    """Stop a reply after its k-th event (0: before the head) until the test releases it."""

    def __init__(self, after_chunks: int = 0) -> None:
        self.after_chunks = after_chunks
        self.reached = threading.Event()
        self._released = threading.Event()
        self._wakers: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def release(self) -> None:
        """Continue the reply, from any thread; later replies with this hold do not stop."""
        with self._lock:
            self._released.set()
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def on_release(self, wake: Callable[[], None]) -> None:
        """Call `wake` once released, at once if that already happened."""
        with self._lock:
            if not self._released.is_set():
                self._wakers.append(wake)
                return
        wake()


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer; `delay` is in seconds before the head, `chunk_delay` between events."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    thinking: str = ""
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    chunk_delay: float | None = None
    hold: Hold | None = None

    @property
    def finish(self) -> FinishReason:
        """Return the finish reason, inferred from the content if none is given."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure to put on the wire.

    status: an error answer in the provider's own shape. timeout: accept, never answer.
    reset: RST before the head, or after `after_chunks` events of `reply`. truncate: the same
    with an orderly close and no final chunk. malformed: invalid JSON in valid HTTP.
    misframed: invalid chunked framing. stream_error: the provider's in-stream error event.
    In a sequence a fault answers `times` requests. For a JSON answer a "chunk" is 64 bytes.
    """

    status: int = 500
    kind: FaultKind = "status"
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    after_chunks: int | None = None
    message: str = ""
    reply: Reply | None = None
    delay: float = 0.0


Outcome: TypeAlias = Reply | Fault
Script: TypeAlias = Callable[[ModelRequest], Outcome | Awaitable[Outcome]]


class ScriptExhaustedError(Exception):
    """A sequence script got more requests than it has answers."""


class SequenceScript:
    """Answer model calls with the given outcomes in order of arrival, then refuse.

    Embeddings use up no outcome: their vectors derive from the text.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._queue: list[Outcome] = []
        for outcome in outcomes:
            times = outcome.times if isinstance(outcome, Fault) else 1
            self._queue.extend([outcome] * times)
        self._used = 0

    def __call__(self, request: ModelRequest) -> Outcome:
        """Return the next outcome; raise ScriptExhaustedError past the last."""
        if request.provider.endswith("embeddings"):
            return Reply()
        self._used += 1
        if self._used > len(self._queue):
            raise ScriptExhaustedError(
                f"the script has {len(self._queue)} answers, but this is request {self._used} "
                f"({request.provider} {request.path}, last user text "
                f"{request.last_user_text[:80]!r}). Add a Reply, or pass a callable script."
            )
        return self._queue[self._used - 1]
