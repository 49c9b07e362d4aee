"""Say that a run goes on though it has left its tape: it may wait for what never comes."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress

_PATIENCE = 10.0
"""Seconds that a run has to end after its first error, before anything is said."""


class Overtime:
    """The time between the first error of a run and its end."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Begin to count."""
        # Made now: threads are numbered as they are made, and an agent may look at their names.
        self._timer = threading.Timer(_PATIENCE, _warn)
        self._timer.daemon = True
        with suppress(RuntimeError):  # Python itself is ending: it starts no threads any more.
            self._timer.start()

    def end(self) -> None:
        """Say nothing any more."""
        if self._timer is not None:
            self._timer.cancel()


def _warn() -> None:
    warnings.warn(
        f"tracefork: the run left its tape {_PATIENCE:g} seconds ago and has not ended since. "
        "Nothing that it asks is answered any more: it may wait for a task or a thread that has "
        "failed of that. Ctrl-C ends it, and what differed is shown then.",
        RuntimeWarning,
        stacklevel=1,
    )
