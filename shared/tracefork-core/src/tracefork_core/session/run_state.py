"""What the parts of one session share: the first error, the lock, the counters.

A session makes the state first and hands it down, so that no part has to know the session.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from tracefork_core.errors import Divergence, DivergenceError, TraceforkError, again
from tracefork_core.exchange.contract import Redraw
from tracefork_core.masking.masking import Masking

HANG_SECONDS = 10.0
"""How long a run may take to end after its first error before a warning is shown."""


class RunState:
    """The state of one session. Safe to use from any thread.

    Attributes:
        masking: what is masked on the tape and in what is compared.
        lock: held while an exchange is opened, and while the session closes.
        is_open: whether the session was not closed yet.
        poison: the first error; every later exchange raises it again.
        asked: how many exchanges were opened.
        suspects: called at a divergence, for lines that say what else changed since the recording.
        redraws: where forks draw new random values: those that made the tape, then this one.
    """

    def __init__(
        self,
        masking: Masking,
        redraws: list[Redraw],
        *,
        wake_all: Callable[[], None],
        warns_of_hang: bool,
    ) -> None:
        self.masking = masking
        self.lock = threading.RLock()
        self.is_open = True
        self.poison: TraceforkError | None = None
        self.asked = 0
        self.suspects: list[Callable[[], Iterable[str]]] = []
        self.redraws = redraws
        self._wake_all = wake_all
        self._hang_timer: threading.Timer | None = None
        self._warns_of_hang = warns_of_hang
        self._pid = os.getpid()

    @property
    def active(self) -> bool:
        """Whether the session is open, in the process that opened it."""
        return self.is_open and self._pid == os.getpid()

    def check(self) -> None:
        """Raise a copy of the error that poisoned the session, if one did."""
        if self.poison is not None:
            raise again(self.poison)

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Remember the first error, wake every waiting thread and task, and return that error."""
        with self.lock:
            if not self.is_open:
                return error
            if self.poison is None:
                self.poison = error
                if self._warns_of_hang:
                    self._start_hang_timer()
        self._wake_all()
        return self.poison

    def diverge(self, divergence: Divergence) -> TraceforkError:
        """Poison the session with a divergence, and return the first error."""
        before = replace(divergence, replayed=max(self.asked - 1, 0))
        return self.poison_with(DivergenceError(self.with_suspects(before)))

    def with_suspects(self, divergence: Divergence) -> Divergence:
        """Add what the session knows to have changed since the recording."""
        hints = [self.masking.text(hint) for suspect in self.suspects for hint in suspect()]
        return replace(divergence, hints=(*hints, *divergence.hints))

    def close(self) -> None:
        """Accept no further error, and do not warn about a hang any more."""
        self.is_open = False
        if self._hang_timer is not None:
            self._hang_timer.cancel()

    def _start_hang_timer(self) -> None:
        # Made only now: threads are numbered when they are made, and an agent may see their names.
        self._hang_timer = threading.Timer(HANG_SECONDS, _warn_of_hang)
        self._hang_timer.daemon = True
        with suppress(RuntimeError):  # Python is shutting down and starts no more threads.
            self._hang_timer.start()


def _warn_of_hang() -> None:
    warnings.warn(
        f"tracefork: the run left its tape {HANG_SECONDS:g} seconds ago and has not ended since. "
        "Its calls get no more answers. It may be waiting for a task or thread that stopped at the "
        "divergence. Press Ctrl-C to stop it and see what differed.",
        RuntimeWarning,
        stacklevel=1,
    )
