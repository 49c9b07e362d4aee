"""Invite child processes to a session: where they connect, and on which lane they run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import UNORDERED, lane_here

UNSEEN = "python"
"""The name of a process whose start the session did not see."""


class Invitation(NamedTuple):
    """How a child process joins the session of its parent.

    Attributes:
        address: the path of a unix socket, or "127.0.0.1:port" on platforms without them.
        token: the secret that the child must send first.
        lane: the lane of the process.
        step: the step that started the process.
        records: whether the session records; otherwise it replays.
        forks: whether it replays and records: draws go onto a branch.
        ambient: whether HTTP libraries are instrumented.
        tools: the functions that the session makes tools by name, as on the tape.
        tools_of: the tables of such functions.
    """

    address: str
    token: str
    lane: str
    step: str | None
    records: bool
    ambient: bool
    forks: bool = False
    tools: Sequence[str] = ()
    tools_of: Sequence[str] = ()

    def on(self, lane: str, step: str | None) -> Invitation:
        """Return the invitation for a process on another lane."""
        return self._replace(lane=lane, step=step)

    def through(self, address: str, token: str) -> Invitation:
        """Return the invitation for a door that has been opened meanwhile."""
        return self._replace(address=address, token=token)

    def spelled(self) -> dict[str, object]:
        """Return the invitation as JSON-able values, for `read`."""
        return self._asdict()

    @classmethod
    def read(cls, given: dict[str, object]) -> Invitation:
        """Read what `spelled` returned."""
        return cls(**given)  # type: ignore[arg-type]


class Door(Protocol):
    """The socket where processes join, and what they reported."""

    address: str
    token: str
    clock_misses: int
    entropy_misses: int
    complaints: list[str]

    def close(self) -> None: ...

    def wait(self) -> None: ...

    def forget(self) -> None: ...


def _ignore(address: str) -> None:
    """Do nothing with the address of a door."""


class Descent:
    """Invites the processes that are started under one session.

    Args:
        session: the session of this process.
        home: the invitation of this process itself. `opening` replaces its address and token.
        opening: opens the door when the first process is about to start; None if another process
            owns the door.
        opened: called once, with the address.
    """

    def __init__(
        self,
        session: Session,
        home: Invitation,
        opening: Callable[[], Door] | None = None,
        opened: Callable[[str], None] = _ignore,
    ) -> None:
        self.session = session
        self.home = home
        self._opening = opening
        self._opened = opened
        self._door: Door | None = None
        self._unordered: Counter[str] = Counter()
        self._lock = threading.RLock()

    @property
    def clock_misses(self) -> int:
        """The number of clock reads in other processes for which the tape had no value."""
        return self._door.clock_misses if self._door else 0

    @property
    def entropy_misses(self) -> int:
        """The number of entropy draws in other processes for which the tape had no value."""
        return self._door.entropy_misses if self._door else 0

    @property
    def complaints(self) -> list[str]:
        """Descriptions of connections that were refused."""
        return self._door.complaints if self._door else []

    def open(self) -> None:
        """Accept processes from now on."""
        with self._lock:
            if self._door is None and self._opening is not None:
                door = self._door = self._opening()
                self.home = self.home.through(door.address, door.token)
                self._opened(door.address)

    def invite(self, name: str) -> Invitation:
        """Return the invitation for a process that is about to start."""
        self.open()
        lane = lane_here(self.session)
        if lane is not None:
            lane_name = lane.child(name).name
        else:
            with self._lock:
                self._unordered[name] += 1
            lane_name = f"{UNORDERED}/{name}.{self._unordered[name]}"
        return self.home.on(lane_name, current_step.get())

    def standing(self) -> Invitation | None:
        """Return the invitation for processes started unseen; None before the door is open."""
        if not self.home.address:
            return None
        return self.home.on(f"{self.home.lane}/{UNSEEN}", None)

    def close(self) -> None:
        """Accept no more processes."""
        self._opening, self._opened = None, _ignore  # What they are bound to is freed at once.
        if self._door is not None:
            self._door.close()

    def wait(self) -> None:
        """Wait until the connected processes have gone."""
        if self._door is not None:
            self._door.wait()

    def continue_in_fork(self, session: Session, home: Invitation) -> None:
        """Continue in a forked child, which joins its parent's session over the door."""
        if self._door is not None:
            self._door.forget()
        self.session, self.home = session, home
        self._door = self._opening = None
        self._lock = threading.RLock()
