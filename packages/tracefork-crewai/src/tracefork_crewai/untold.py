"""Let a fork catch up on calls that the tape answered before its fork point.

A memory that the tape answered has stored nothing. After the fork point its queries run live and
must find what was stored before. So those calls run again before the first live one, and not
earlier: a replay stores nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tracefork_core.adapters import fork_point

_live: ContextVar[list[bool] | None] = ContextVar("tracefork_crewai_live", default=None)


class Untold:
    """The calls that stored something and that a tape answered, in order, for each object."""

    def __init__(self) -> None:
        self._calls: dict[int, list[Callable[[], object]]] = defaultdict(list)

    @contextmanager
    def telling(self, thing: object, again: Callable[[], object]) -> Iterator[None]:
        """Note `again`, which stores something in `thing`, if a tape answers it in the block."""
        live: list[bool] = []
        token = _live.set(live)
        try:
            yield
        finally:
            _live.reset(token)
        if not live and fork_point() is not None:
            self._calls[id(thing)].append(again)  # It holds the thing, so the id is not reused.

    def catch_up(self, thing: object) -> None:
        """Run the noted calls of `thing`, before one of its calls runs live."""
        if (live := _live.get()) is not None:
            live.append(True)
        for call in self._calls.pop(id(thing), ()):
            call()

    def forget(self) -> None:
        """Forget all calls: the session is over."""
        self._calls.clear()
