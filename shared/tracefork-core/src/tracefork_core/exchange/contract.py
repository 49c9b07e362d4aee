"""What a seam and a session say to one another.

A seam turns its library's request into a `Request` and calls `Session.open`. The answer is

    Live       make the call for real and tell me what comes back, in the order it comes;
    Recorded   here is what came back when this was recorded: hand it on;
    None       telemetry, and no part of the run: make the call for real, and tell nobody.

`open` raises `DivergenceError`, and raises it again for every later exchange of that session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol

TYPE_CHECKING = False  # Child processes load this at their start.
if TYPE_CHECKING:
    from tracefork_core.checkpoints.contract import Checkpoints
    from tracefork_core.tape import Tape

Headers = tuple[tuple[str, str], ...]

Effect = Literal["read", "write", "pure"]
"""What an exchange does to the world: a write must not be done again by a fork, unasked."""


class Request(NamedTuple):
    """One attempt as it would leave the process.

    `seam` names the library that sends it, `effect` what it does where that was declared.
    """

    method: str
    url: str
    headers: Headers
    body: bytes
    seam: str
    effect: Effect | None = None


class Head(NamedTuple):
    """Status line and headers of a response, headers in wire order with their own spelling."""

    status: int
    reason: str
    headers: Headers
    http_version: str = "HTTP/1.1"


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that ended in an exception of the client library.

    `kind` is the exception's class name inside its library's family ("ReadTimeout"); a seam maps
    it back through a fixed table, never by importing what a tape names.
    """

    kind: str
    message: str


class Live(Protocol):
    """The recording side of one exchange. Call `head`, `chunk`…, then exactly one ending.

    On an event loop, await `quiet` before each of `head`, `chunk`, `end` and `fail`.

    `sends` is what to send in place of what the agent asked, None where that is sent as it is. Its
    headers are the agent's, those that say how long the body is and to whom it goes among them.
    """

    is_live: ClassVar[Literal[True]]
    sends: Request | None

    async def quiet(self) -> None:
        """Wait until what the last delivery set off is done: deliveries come one at a time."""

    def head(self, head: Head) -> None: ...

    def chunk(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def abandon(self) -> None:
        """The agent stopped reading; what it read so far is on the tape."""

    def fail(self, failure: Failure) -> None: ...

    def cancel(self, rounds: int = 0) -> None:
        """The agent gave up waiting for an answer; that took `rounds` of the event loop."""


class Recorded(Protocol):
    """The replaying side of one exchange. Each receive waits for its recorded turn."""

    is_live: ClassVar[Literal[False]]

    def receive_head(self) -> Head | Failure: ...

    async def areceive_head(self) -> Head | Failure: ...

    def receive_chunk(self) -> bytes | Failure | None:
        """Return the next chunk, the failure that cut the body short, or None at its end."""

    async def areceive_chunk(self) -> bytes | Failure | None: ...

    def close(self) -> None:
        """The agent stopped reading: nobody has to wait for what is left."""


TIMER, WAIT, PROGRAM = "timer", "wait", "program"
"""What fires: a timer of an event loop, the limit of a thread that waits, the end of a program."""


class Timer(Protocol):
    """What a session makes of a timer of the agent's. `is_pending` tells whether it may fire."""

    def is_over(self, *, now: bool) -> bool:
        """Return whether it fires at once and does not begin; `now` is whether its time is up."""

    def begin(self, is_pending: Callable[[], bool]) -> None: ...

    def fire(self) -> None:
        """Wait until what it sets off may happen. Its time is over."""

    async def afire(self) -> None: ...


class Waits(Protocol):
    """What a session does about the agent's own waiting. `site` names who waits."""

    def sleep(self, seconds: float, site: str) -> None: ...

    async def asleep(self, seconds: float, site: str) -> None: ...

    def timer(self, site: str, source: str) -> Timer: ...


@dataclass(frozen=True, slots=True)
class Redraw:
    """Where a fork draws new random values.

    Attributes:
        salt: goes into the names under which lanes draw.
        at: the exchange of the fork point.
        since: the lanes that are past that exchange.
        is_recorded: whether the tape that is forked was made with this redraw already.
    """

    salt: str
    at: int
    since: set[str] = field(default_factory=set)
    is_recorded: bool = False


class Session(Protocol):
    """What a seam, a step source or a clock may ask of the running session.

    `threads` are the native ids of the threads that run its lanes, and of programs they wait for.
    `redraws` says where forks draw new random values, the latest fork last.
    """

    threads: set[int]
    redraws: list[Redraw]

    @property
    def unordered(self) -> str:
        """The lane of threads that carry no context."""

    @property
    def source(self) -> Tape | None:
        """The tape that it is answered from; None where it is not."""

    @property
    def tapes(self) -> tuple[Path, ...]:
        """Where the tapes lie that it is answered from, and that it writes: in that order."""

    @property
    def waits(self) -> Waits | None:
        """What becomes of the agent's own waiting; None where it is left as it is."""

    @property
    def active(self) -> bool:
        """Whether the session is open in this process."""

    def open(self, request: Request) -> Live | Recorded | None: ...

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to be of."""

    def check(self) -> None:
        """Raise a copy of the error that poisoned the session, if one did."""

    def check_asked(self, thread: str) -> None:
        """Raise where not all was asked that a recorded thread of a framework asked."""

    def mark_as_recorded(self, thread: str) -> None:
        """Note that a recorded thread gets the same input as when it was recorded."""

    def checkpoints(self, path: Path) -> Checkpoints:
        """Return what becomes of a framework's checkpoints, which lie at `path` otherwise."""

    @property
    def fork_point(self) -> int | None:
        """The number of the exchange that it forks at; None where it forks nothing."""
