"""Talk to the session of the parent, with a connection for each exchange in progress.

The parent serves each connection with a thread, so exchanges cannot block each other.
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
from tracefork_core.exchange.contract import Request, Session
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import current_lane
from tracefork_core.tape.event import Draws, Reads


class Gate(Protocol):
    """Lets deliveries on an event loop pass one at a time."""

    async def apass_on(self, owner: object) -> None: ...


class Asking(Session, Protocol):
    """The part of the joined session that `Remote` uses."""

    invitation: Invitation
    drawn: list[Callable[[], list[Reads]]]


class Remote:
    """The session of the parent, as `member` uses it; thread-safe."""

    def __init__(self, member: Asking, gate: Callable[[set[int]], Gate]) -> None:
        self._member = member
        self._new_gate = gate
        self._gate: Gate | None = None
        self._process = f"{os.getpid()}.{time.monotonic_ns()}"
        self._idle: deque[Connection] = deque()
        self._connections: set[Connection] = set()
        self._reported: set[int] = set()
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
                self._send_draws(connection)
                answer = connection.call(self._opening(request))
            except TraceforkError:
                self._free(connection)
                raise
        except LostError:
            self._pass_live(request)
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
        """Return the recorded random values and clock reads of a lane of this process."""
        answer = self._call(messages.Recall(lane))
        return answer.reads if isinstance(answer, Recalled) else []

    def flush(self) -> None:
        """Put the draws since the last exchange on the tape."""
        drawn = self._drawn()
        if drawn is not None:
            self._call(messages.Draw(drawn))

    def leave(self, *, clock: int, entropy: int) -> None:
        """Put the last draws on the tape, report the misses, and disconnect."""
        self.flush()
        if clock or entropy:
            self._call(messages.Leave(clock, entropy))
        self.forget()

    def forget(self) -> None:
        """Close all connections, also those that a forked child inherited."""
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
        environment = dict(behind) if isinstance(behind, dict) else dict(os.environb)
        with self._lock:
            changed = None if environment == self._environment else environment
            self._environment = environment
            threads = sorted(self._member.threads - self._reported)
            self._reported.update(threads)
        return messages.Open(request, lane, step, caller(2), threads, changed)

    def _send_draws(self, connection: Connection) -> None:
        drawn = self._drawn()
        if drawn is not None:
            connection.call(messages.Draw(drawn))

    def _drawn(self) -> Draws | None:
        """Return the draws since the last call."""
        reads = [read for fresh in self._member.drawn for read in fresh()]
        return Draws(reads) if reads else None

    def _call(self, word: Word) -> Answer | None:
        """Make a call outside of an exchange; return None if the session is gone."""
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

    def _pass_live(self, request: Request) -> None:
        """Warn and let a request go live after the recording ended; refuse it after a replay."""
        if not self._member.invitation.records:
            raise self._outlived(request)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"tracefork: the recording that this process ({self._lane}) belonged to has ended: "
                f"{request.method} {_bare(request.url)} is not on the tape, and later requests "
                "are not either. Wait for the process inside the block.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _outlived(self, request: Request) -> ReplayError:
        return ReplayError(
            f"tracefork: the replay that this process ({self._lane}) belonged to has ended, "
            f"and it requested {request.method} {_bare(request.url)}. Nothing was sent. Wait for "
            "the process inside the block."
        )


def _bare(url: str) -> str:
    return url.partition("?")[0]
