"""One request, task or call of a service that is being recorded, and whether its tape is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

from tracefork_core.masking.masking import Masking
from tracefork_core.patching.real_clock import monotonic_ns, time_ns
from tracefork_core.service import folder
from tracefork_core.service.held_session import HeldSession
from tracefork_core.tape import marks
from tracefork_core.tape.served import Served


class Run:
    """One request, task or call of a service. `Recorder.current` returns the one that runs here.

    Attributes:
        id: the id in the name of its tape: that of the request or the task, or a fresh one.
        name: what runs, like "POST /chat/{id}".
        status: the status code of the response, once there is one.
        error: the exception that ended it.
        label: what it was marked with.
        tape: the path of its tape, once it is written.
        recorded: whether it is recorded at all; `mark` does nothing if it is not.
    """

    def __init__(self, name: str, id: str, *, session: HeldSession | None) -> None:  # noqa: A002
        self.id = id
        self.name = name
        self.status: int | None = None
        self.error: BaseException | None = None
        self.label: str | None = None
        self.tape: Path | None = None
        self.recorded = session is not None
        self.is_unfinished = False
        """Whether it ended in a way that counts as failed without an exception."""
        self._session = session
        self._started = time_ns()
        self._began = monotonic_ns()
        self._took: int | None = None
        self._is_over = False
        self._lock = threading.RLock()  # The caller's verdict may mark the run.
        self._around: Run | None = None

    def __repr__(self) -> str:
        return f"<Run {self.name} {self.id}: {self.outcome}>"

    @property
    def seconds(self) -> float:
        """How long it ran, or has been running."""
        return (self._took if self._took is not None else monotonic_ns() - self._began) / 1e9

    @property
    def failed(self) -> bool:
        """Whether it ended with an exception or a status of 500 or above, or was marked."""
        return self.label is not None or self.outcome != "ok"

    @property
    def outcome(self) -> str:
        """How it ended: "ok", the name of an exception, "500", or "unfinished"."""
        if self.error is not None:
            return type(self.error).__name__
        if self.status is not None and self.status >= 500:
            return str(self.status)
        return "unfinished" if self.is_unfinished else "ok"

    def mark(self, label: str = "failed") -> bool:
        """Mark this run: its tape is kept, and no bound of the folder removes it.

        After the run has ended this works if the tape was kept. Return whether there is a tape, or
        will be one.

        Raises:
            UsageError: the label has other characters than a word or two has.
            OSError: the mark cannot be written beside a tape that was kept.
        """
        marks.check_label(label)
        with self._lock:
            if not self.recorded:
                return False
            if not self._is_over:
                self.label = label
                return True
            if self.tape is None:
                return False
            self.label = label
            return marks.mark(self.tape, label)

    def enter(self) -> None:
        """Begin the session and make this the current run."""
        if self._session is not None:
            self._session.__enter__()
        self._around = _current.get()
        _current.set(self)

    def leave(self, error: BaseException | None) -> None:
        """End the session. Other code may still mark the run."""
        if _current.get() is self:
            _current.set(self._around)
        self._around = None
        self.error = error
        self._took = monotonic_ns() - self._began
        if self._session is not None:
            kind = None if error is None else type(error)
            self._session.__exit__(kind, error, None)

    def decide(self, keep: Callable[[Run], bool]) -> bool:
        """Return whether the tape is to be written; if not, the run cannot be marked any more."""
        with self._lock:
            if self._session is None:
                return False
            if self.label is not None or keep(self):
                return True
            self._end()
            return False

    def write(self, where: Path, served: Served) -> Path:
        """Write the tape into a folder, and its mark beside it.

        Raises:
            TraceforkError: the tape cannot be written.
            OSError: the mark cannot be written.
        """
        assert self._session is not None
        with self._lock:
            path = folder.free_path(where, self._started, self.name, self.id)
            try:
                error = "ok" if self.error is None else type(self.error).__name__
                self._session.write(path, served, error)
                self.tape = path
                if self.label is not None:
                    marks.mark(path, self.label)
            finally:
                self._end()
        return path

    def give_up(self) -> None:
        """Drop what is held: the tape cannot be written."""
        with self._lock:
            self._end()

    @property
    def masking(self) -> Masking | None:
        """What masks the secrets of the request; None if nothing is recorded."""
        return None if self._session is None else self._session.masking

    def _end(self) -> None:
        self._is_over = True
        if self._session is not None:
            self._session.drop()
            self._session = None


_current: ContextVar[Run | None] = ContextVar("tracefork_run", default=None)


def current_run() -> Run | None:
    """Return the run that this code is part of."""
    return _current.get()
