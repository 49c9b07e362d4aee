"""The session of a child process: its parent's, joined at the first request or draw.

Nothing heavy is loaded before that: most children make no request and draw nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from tracefork_core.children.invitation import Invitation
from tracefork_core.exchange.contract import Live, Recorded, Redraw, Request, States, Waits
from tracefork_core.exchange.lane import UNORDERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from tracefork_core.checkpoints.contract import Checkpoints
    from tracefork_core.children.child.remote import Remote
    from tracefork_core.errors import TraceforkError
    from tracefork_core.tape import Tape
    from tracefork_core.tape.event import Reads


class Member:
    """Implements `exchange.contract.Session` by calls to the parent."""

    def __init__(self, invitation: Invitation, join: Callable[[Member], Remote]) -> None:
        self.invitation = invitation
        self.threads: set[int] = set()
        self.redraws: list[Redraw] = []  # Forks are the parent's.
        self.waits: Waits | None = None
        self.states: States | None = None
        self.drawn: list[Callable[[], list[Reads]]] = []
        self._join = join
        self._joined: Remote | None = None
        self._pid = os.getpid()
        # Re-entrant: loading the code to join can trigger the first draw, which joins too.
        self._lock = threading.RLock()

    @property
    def active(self) -> bool:
        """Whether this is the invited process, not a fork of it."""
        return self._pid == os.getpid()

    @property
    def unordered(self) -> str:
        """The lane of threads without a context: one for each process."""
        return f"{self.invitation.lane}/{UNORDERED}"

    def open(self, request: Request) -> Live | Recorded | None:
        """Ask the parent what happens to an exchange.

        Raises:
            TraceforkError: the session is poisoned, or this request poisons it.
        """
        return self._remote().open(request)

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        return self._remote().begin_step(kind, name, parent, detail)

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape."""
        self._remote().end_step(step, error, kind)

    def take_in(self, environment: Mapping[str, str]) -> None:
        """Do nothing: the parent masks, and has taken in the environment of this process only."""

    def check(self) -> None:
        """Raise the error that poisoned the session of the parent, if one did."""
        self._remote().check()

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Return the error: it ends the call in this process, and the parent decides the rest."""
        return error

    def check_asked(self, thread: str) -> None:
        """Do nothing: no thread of a framework runs here."""

    def mark_as_recorded(self, thread: str) -> None:
        """Do nothing: no thread of a framework runs here."""

    def checkpoints(self, path: Path) -> Checkpoints:
        """Refuse: checkpoints of a child process would be on no tape."""
        from tracefork_core.errors import UsageError

        raise UsageError(
            f"tracefork: a child process of a recorded or replayed run cannot save checkpoints to "
            f"{path}: a tape holds only those of the process that started the run. Save them there."
        )

    @property
    def source(self) -> Tape | None:
        """None: the parent answers from its tape."""
        return None

    @property
    def tapes(self) -> tuple[Path, ...]:
        """Empty: the tapes are the parent's."""
        return ()

    @property
    def fork_point(self) -> int | None:
        """None: forks are the parent's."""
        return None

    def chance(self) -> tuple[bytes, list[str]]:
        """Return the seed for the entropy of this process, and which sources are on the tape."""
        return self._remote().chance()

    def recall(self, lane: str) -> list[Reads]:
        """Return the recorded random values and clock reads of a lane of this process."""
        return self._remote().recall(lane)

    def flush(self) -> None:
        """Put the draws since the last exchange on the tape."""
        if self.drawn:
            self._remote().flush()

    def leave(self, *, clock: int, entropy: int) -> None:
        """Put the last draws on the tape, report the misses, and disconnect."""
        if self._joined is not None or self.drawn:
            self._remote().leave(clock=clock, entropy=entropy)

    def move(self, invitation: Invitation) -> None:
        """Continue on the lane of another invitation, over new connections."""
        with self._lock:
            joined, self._joined = self._joined, None
            self.invitation = invitation
        if joined is not None:
            joined.forget()

    def forget(self) -> None:
        """Close the connections that a forked child inherited."""
        if self._joined is not None:
            self._joined.forget()

    def _remote(self) -> Remote:
        with self._lock:
            return self._joined or self._first(self._join(self))

    def _first(self, joined: Remote) -> Remote:
        if self._joined is None:
            self._joined = joined
        return self._joined
