"""What a process hands on to those it starts: an invitation to the session it runs under."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import UNORDERED, lane_here

UNSEEN = "python"
"""What a process is called that was started unseen."""


class Invitation(NamedTuple):
    """Where the parent's session is asked, and as whom.

    Attributes:
        address: path of a unix socket, or "127.0.0.1:port" where there are none.
        token: who does not know it is not listened to.
        lane: the lane of the process.
        step: the step that ran where the process was started.
        records: whether the session records; else it replays.
        forks: whether it replays and records: what is drawn goes onto a branch.
        ambient: whether HTTP libraries are instrumented.
    """

    address: str
    token: str
    lane: str
    step: str | None
    records: bool
    ambient: bool
    forks: bool = False

    def on(self, lane: str, step: str | None) -> Invitation:
        """Return the invitation for a process on another lane."""
        return self._replace(lane=lane, step=step)

    def through(self, address: str, token: str) -> Invitation:
        """Return the invitation through a door that is open by now."""
        return self._replace(address=address, token=token)

    def spelled(self) -> dict[str, object]:
        """Return what `read` takes, as JSON has it."""
        return self._asdict()

    @classmethod
    def read(cls, given: dict[str, object]) -> Invitation:
        """Return the invitation that `spelled` returned."""
        return cls(**given)  # type: ignore[arg-type]


class Door(Protocol):
    """Where processes come in, and who came."""

    address: str
    token: str
    clock_misses: int
    entropy_misses: int
    complaints: list[str]

    def close(self) -> None: ...

    def wait(self) -> None: ...

    def forget(self) -> None: ...


class Descent:
    """Invites the processes that are started under one session.

    Args:
        session: the session of this process.
        home: an invitation to it as this process has it: of the address and the token only what
            `opening` does not say.
        opening: opens the door, when the first process is about to start; None where the door is
            another process's.
        opened: told of the address, once.
    """

    def __init__(
        self,
        session: Session,
        home: Invitation,
        opening: Callable[[], Door] | None = None,
        opened: Callable[[str], None] = lambda address: None,
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
        """How many reads of the clock in other processes the tape had no value for."""
        return self._door.clock_misses if self._door else 0

    @property
    def entropy_misses(self) -> int:
        """How many draws of entropy in other processes the tape had no value for."""
        return self._door.entropy_misses if self._door else 0

    @property
    def complaints(self) -> list[str]:
        """Who came to the door and was turned away."""
        return self._door.complaints if self._door else []

    def open(self) -> None:
        """Let processes in from now on."""
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
            called = lane.child(name).name
        else:
            with self._lock:
                self._unordered[name] += 1
            called = f"{UNORDERED}/{name}.{self._unordered[name]}"
        return self.home.on(called, current_step.get())

    def standing(self) -> Invitation | None:
        """Return the invitation for whoever is started unseen; None before the door is open."""
        if not self.home.address:
            return None
        return self.home.on(f"{self.home.lane}/{UNSEEN}", None)

    def close(self) -> None:
        """Let nobody in any more."""
        if self._door is not None:
            self._door.close()

    def wait(self) -> None:
        """Wait until those who were inside are gone."""
        if self._door is not None:
            self._door.wait()

    def continue_in_fork(self, session: Session, home: Invitation) -> None:
        """Go on in a forked child, whose session is its parent's from afar."""
        if self._door is not None:
            self._door.forget()
        self.session, self.home = session, home
        self._door = self._opening = None
        self._lock = threading.RLock()
