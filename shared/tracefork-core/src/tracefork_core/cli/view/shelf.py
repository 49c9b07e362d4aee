"""The tapes that are looked at, each read once for all of its viewers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracefork_core.cli.view.growing import Growing

_KEPT = 4
"""So many tapes without a viewer are kept: a viewer goes back and forth."""


class Shelf:
    """Lends tapes. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tapes: dict[Path, Growing] = {}
        self._lent: dict[Path, int] = {}

    @contextmanager
    def lent(self, path: Path) -> Iterator[Growing]:
        """Lend a tape to one viewer."""
        with self._lock:
            tape = self._tapes.pop(path, None) or Growing(path)
            self._tapes[path] = tape  # The one that was used last is the last of the dictionary.
            self._lent[path] = self._lent.get(path, 0) + 1
        try:
            yield tape
        finally:
            with self._lock:
                self._lent[path] -= 1
                idle = [one for one in self._tapes if not self._lent[one]]
                for one in idle[:-_KEPT]:
                    self._tapes.pop(one).close()
                    del self._lent[one]

    def find(self, path: Path) -> Growing | None:
        """Return a tape that is lent, or was a moment ago."""
        with self._lock:
            return self._tapes.get(path)
