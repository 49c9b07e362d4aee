"""Where a child puts what it drew."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """Takes what was drawn, as a tape does."""

    def note(self, kind: str, *, payload: object = None, aside: object = None) -> None: ...
