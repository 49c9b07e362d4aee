"""Talk to the session of the parent: each exchange on a connection of its own while it lasts.

The parent serves each connection with a thread, and nothing of one exchange can hold up another.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tracefork_core.children import messages
from tracefork_core.children.child.connection import (
    Connection,
    LostError,
    RemoteLive,
    RemoteRecorded,
)
from tracefork_core.children.invitation import Invitation
from tracefork_core.children.messages import (
    Answer,
    Begun,
    Chance,
    Live,
    Recalled,
    Recorded,
    Word,
)
from tracefork_core.errors import ReplayError, TraceforkError
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import current_lane
from tracefork_core.tape.event import Draws, Reads


class Gate(Protocol):
    """Lets those pass, one by one, who have something to deliver on an event loop."""

    async def apass_on(self, owner: object) -> None: ...


class Asking(Protocol):
    """What this needs of the session that the process itself sees."""

    invitation: Invitation
    threads: set[int]
    drawn: list[Callable[[], list[Reads]]]


class Remote:
    """The session of the parent. `member` is who asks; safe to use from any thread."""

    def __init__(self, member: Asking, gate: Callable[[set[int]], Gate]) -> None:
        self._member = member
        self._new_gate = gate
        self._gate: Gate | None = None
        self._process = f"{os.getpid()}.{time.monotonic_ns()}"
        self._idle: deque[Connection] = deque()
        self._connections: set[Connection] = set()
        self._told: set[int] = set()
        self._environment: dict[bytes, bytes] | None = None
        self._lock = threading.Lock()
        self._warned = False

    def open(self, request: Request) -> RemoteLive | RemoteRecorded | None:
        """Ask the parent what happens to an exchange.

        Raises:
            TraceforkError: the session is poisoned, or this request poisons it.
        """
        try:
            connection = self._connection()
            try:
                self._tell_draws(connection)
                answer = connection.call(self._opening(request))
            except TraceforkError:
                self._free(connection)
                raise
        except LostError:
            self._pass(request)
            return None
        if isinstance(answer, Live):
            return RemoteLive(connection, self._quiet, self._free, answer.sends)
        if isinstance(answer, Recorded):
            return RemoteRecorded(
                connection, self._quiet, lambda: self._outlived(request), self._free
            )
        self._free(connection)
        return None

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        answer = self._call(messages.BeginStep(kind, name, parent, detail))
        return answer.step if isinstance(answer, Begun) else "lost"

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape."""
        self._call(messages.EndStep(step, error, kind))

    def check(self) -> None:
        """Raise the error that poisoned the session of the parent, if one did."""
        self._call(messages.Check())

    def chance(self) -> tuple[bytes, list[str]]:
        """Return the seed for the entropy of this process, and which sources are on the tape."""
        answer = self._call(messages.AskChance())
        return (answer.seed, answer.sources) if isinstance(answer, Chance) else (b"", [])

    def recall(self, lane: str) -> list[Reads]:
        """Return what was drawn on a lane of this process when this was recorded."""
        answer = self._call(messages.Recall(lane))
        return answer.reads if isinstance(answer, Recalled) else []

    def flush(self) -> None:
        """Put on the tape what was drawn since the last exchange."""
        drawn = self._drawn()
        if drawn is not None:
            self._call(messages.Draw(drawn))

    def leave(self, *, clock: int, entropy: int) -> None:
        """Put on the tape what was drawn since the last exchange, tell the misses, and hang up."""
        self.flush()
        if clock or entropy:
            self._call(messages.Leave(clock, entropy))
        self.forget()

    def forget(self) -> None:
        """Close the connections: also those that a forked child inherited."""
        for connection in tuple(self._connections):
            connection.close()
        self._connections.clear()
        self._idle.clear()

    @property
    def _lane(self) -> str:
        return self._member.invitation.lane

    async def _quiet(self, owner: object) -> None:
        if self._gate is None:
            self._gate = self._new_gate(self._member.threads)
        await self._gate.apass_on(owner)

    def _opening(self, request: Request) -> messages.Open:
        lane, step = current_lane(self._member), current_step.get()
        behind = vars(os.environ).get("_data")
        found = dict(behind) if isinstance(behind, dict) else dict(os.environb)
        with self._lock:
            changed = None if found == self._environment else found
            self._environment = found
            threads = sorted(self._member.threads - self._told)
            self._told.update(threads)
        return messages.Open(request, lane, step, caller(2), threads, changed)

    def _tell_draws(self, connection: Connection) -> None:
        drawn = self._drawn()
        if drawn is not None:
            connection.call(messages.Draw(drawn))

    def _drawn(self) -> Draws | None:
        """Return what was drawn since the last time."""
        reads = [read for fresh in self._member.drawn for read in fresh()]
        return Draws(reads) if reads else None

    def _call(self, word: Word) -> Answer | None:
        """Make a call outside of any exchange; None where nobody answers."""
        try:
            connection = self._connection()
            try:
                return connection.call(word)
            finally:
                self._free(connection)
        except LostError:
            return None

    def _connection(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = Connection(self._member.invitation, self._process)
            self._connections.add(connection)
            return connection

    def _free(self, connection: Connection) -> None:
        if connection.lost:
            self._connections.discard(connection)
        else:
            self._idle.append(connection)

    def _pass(self, request: Request) -> None:
        """Let a request pass that the recording has missed; a replay lets none."""
        if not self._member.invitation.records:
            raise self._outlived(request)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"tracefork: the recording that this process ({self._lane}) belonged to has ended: "
                f"{request.method} {_bare(request.url)} is not on the tape, nor is what "
                "follows. Wait for the process inside the block.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _outlived(self, request: Request) -> ReplayError:
        return ReplayError(
            f"tracefork: the replay that this process ({self._lane}) belonged to has ended, "
            f"and it asks for {request.method} {_bare(request.url)}. Nothing was sent. Wait "
            "for the process inside the block."
        )


def _bare(url: str) -> str:
    return url.partition("?")[0]
