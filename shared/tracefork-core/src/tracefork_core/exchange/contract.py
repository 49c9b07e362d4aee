"""The interface between a seam and a session.

A seam turns its library's request into a `Request` and calls `Session.open`. The result is

    Live       make the call, and report to it what arrives, in the order of arrival;
    Recorded   read the recorded answer from it, and make no call;
    None       make the call and report nothing: it is telemetry, and no part of the run.

`open` raises `DivergenceError`, and raises it again for every later exchange of that session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

TYPE_CHECKING = False  # Child processes load this at their start.
if TYPE_CHECKING:
    from tracefork_core.checkpoints.contract import Checkpoints
    from tracefork_core.errors import TraceforkError
    from tracefork_core.tape import Tape

T = TypeVar("T")

Headers = tuple[tuple[str, str], ...]

Effect = Literal["read", "write", "pure"]
"""The side effects of an exchange: a fork must not repeat a write unless that is allowed."""


AFTER = "after"
"""In the detail of a step that joins branches: the ids of the steps that it waited for."""


class Request(NamedTuple):
    """One attempt to make a call, as it would leave the process. A retry is another attempt.

    `seam` names the library that sends it; `effect` is its side effect, where that was declared.
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


SEND = "SEND"
"""The method of an exchange that is a message on a websocket."""
PROXY = "proxy"
"""The seam of the proxy: what it captures comes from another program."""
TOOL = "tool"
"""The seam of tools, whose answers are values instead of bytes."""
TOOL_VALUE, TOOL_TEXT = "application/json", "text/plain; charset=utf-8"
"""Content types of a tool's answer: the value that it returned, or the text that a fork gives."""


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

    `sends` is what to send instead of the agent's request; None sends that. Its headers are the
    agent's, including Content-Length and Host: they do not fit the new body and URL.
    """

    is_live: ClassVar[Literal[True]]
    sends: Request | None

    async def quiet(self) -> None:
        """Wait until the effects of the last delivery are done: they come one at a time."""

    def head(self, head: Head) -> None: ...

    def chunk(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def complete(self) -> None:
        """End it without a delivery: the answer is complete, and the agent does not see its end."""

    def abandon(self) -> None:
        """End it: the agent stopped reading. What it read so far is on the tape."""

    def fail(self, failure: Failure) -> None: ...

    def cancel(self, rounds: int = 0) -> None:
        """End it: the agent gave up waiting, which took `rounds` of the event loop."""


class Recorded(Protocol):
    """The replaying side of one exchange. Each receive waits for its recorded turn."""

    is_live: ClassVar[Literal[False]]

    def receive_head(self) -> Head | Failure: ...

    async def areceive_head(self) -> Head | Failure: ...

    def receive_chunk(self) -> bytes | Failure | None:
        """Return the next chunk, the failure that cut the body short, or None at its end."""

    async def areceive_chunk(self) -> bytes | Failure | None: ...

    def close(self) -> None:
        """End it: the agent stopped reading, so no delivery waits for the rest."""


TIMER, WAIT, PROGRAM = "timer", "wait", "program"
"""Sources of a timer: the event loop, the timeout of a waiting thread, the end of a subprocess."""


class Timer(Protocol):
    """A timer of the agent under a session. `is_pending` returns whether it may still fire."""

    def is_over(self, *, now: bool) -> bool:
        """Return whether it fires at once instead of beginning; `now` is whether its time is up."""

    def begin(self, is_pending: Callable[[], bool]) -> None: ...

    def fire(self) -> None:
        """Wait, once its time is over, until its effects may happen."""

    async def afire(self) -> None: ...


class Waits(Protocol):
    """The agent's own sleeps and timeouts under a session. `site` is the call site."""

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


class Noted(NamedTuple):
    """What a recorded read of state gave.

    `n` is its number among the reads with its key, and `answer` is JSON, as it was noted. `values`
    are serialised by the framework, each with its tag for the format; the answer has their indices.
    """

    n: int
    answer: Any
    values: Sequence[tuple[str, bytes]]


class State(Protocol):
    """One object outside of the run, as a session sees it. Safe to use from any thread."""

    @property
    def name(self) -> str:
        """What the tape calls it."""

    @property
    def is_answered(self) -> bool:
        """Whether the session answers from a tape. The object must not be touched then."""

    @property
    def is_noted(self) -> bool:
        """Whether the session writes a tape: if not, `note` does nothing."""

    def number(self, key: str) -> int:
        """Return the number of a read that begins now: 0 for the first one with this key."""

    def recorded(self, key: str, n: int) -> list[Noted]:
        """Return what was noted of the reads with this key, up to number `n`, in order."""

    def note(
        self, key: str, n: int, answer: object, values: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        """Put the answer to read number `n` on the tape, if the session writes one.

        `answer` is JSON. Secrets in it, and in values that are MessagePack, are masked.
        """


class States(Protocol):
    """The stand-ins of a session for state that outlives the run."""

    def of(
        self, shared: object, kind: str, make: Callable[[State], T], same: Hashable | None = None
    ) -> T:
        """Return the stand-in for an object; `make` makes it once."""


class Session(Protocol):
    """What seams, adapters, the clock and randomness may use of the running session.

    `threads` are the native ids of threads that run its lanes and of subprocesses they wait for.
    `redraws` says where forks draw new random values, the latest fork last. `states` are the
    stand-ins for state that outlives the run; None in a child process.
    """

    threads: set[int]
    redraws: list[Redraw]
    states: States | None

    @property
    def unordered(self) -> str:
        """The lane of threads that carry no context."""

    @property
    def source(self) -> Tape | None:
        """The tape that answers it; None in a recording."""

    @property
    def tapes(self) -> tuple[Path, ...]:
        """The paths of the tape that answers it and of the tape that it writes, in that order."""

    @property
    def waits(self) -> Waits | None:
        """What happens to the agent's own sleeps and timeouts; None leaves them as they are."""

    @property
    def active(self) -> bool:
        """Whether the session is open in this process."""

    def open(self, request: Request) -> Live | Recorded | None: ...

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to have."""

    def take_in(self, environment: Mapping[str, str]) -> None:
        """Mask the secrets of another environment, too, from now on."""

    def check(self) -> None:
        """Raise a copy of the error that poisoned the session, if one did."""

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Remember the first error, wake every waiting thread and task, and return that error."""

    def check_asked(self, thread: str) -> None:
        """Raise unless everything was asked that a recorded thread of a framework asked."""

    def mark_as_recorded(self, thread: str) -> None:
        """Note that a recorded thread gets the same input as when it was recorded."""

    def checkpoints(self, path: Path) -> Checkpoints:
        """Return where a framework's checkpoints go that lie at `path` outside of a session."""

    @property
    def fork_point(self) -> int | None:
        """The number of the exchange that it forks at; None if it is no fork."""


@dataclass(slots=True, eq=False)
class Lane:
    """A lane of one session.

    `owners` identify the tasks and threads that run on it, one at a time. `in_step` is its name
    with numbers counted from the beginning of the step around it: the same in a run that begins in
    the middle of the recorded one.
    """

    name: str
    session: Session
    owners: set[int]
    in_step: str
    _children: dict[str, int] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)

    def child(self, name: str) -> Lane:
        """Return the lane of the next `name` that is started from here."""
        number = self._children[name] = self._children.get(name, 0) + 1
        nth = number - self._before.get(name, 0)
        in_step = f"{self.in_step}/{name}.{nth}"
        return Lane(f"{self.name}/{name}.{number}", self.session, set(), in_step)

    def branch(self, name: str, owner: int) -> Lane:
        """Return the lane of a branch that `owner` runs in parallel to this one."""
        return Lane(f"{self.name}.{name}", self.session, {owner}, f"{self.in_step}.{name}")

    def began_at(self, lane: Lane) -> bool:
        """Return whether this was started from a lane, directly or through others."""
        return self.session is lane.session and self.name.startswith(f"{lane.name}/")

    def begin_step(self) -> None:
        """Number what is started from here from 1 again, in `in_step`."""
        self._before = dict(self._children)
