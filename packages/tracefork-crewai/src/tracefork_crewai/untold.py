"""What a fork has to catch up on: it is live from some place on, and answered from a tape before.

What was stored before that place was not stored again; but what is asked behind it is asked for
real, and has to find it. It is stored then, and not before: a replay stores nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tracefork_core.adapters import fork_point

_live: ContextVar[list[bool] | None] = ContextVar("tracefork_crewai_live", default=None)


class Untold:
    """What memories and the like were told that a tape answered, in its order."""

    def __init__(self) -> None:
        self._calls: dict[int, list[Callable[[], object]]] = defaultdict(list)

    @contextmanager
    def telling(self, thing: object, again: Callable[[], object]) -> Iterator[None]:
        """Note that `thing` is told something inside, by `again`, where a tape answers that."""
        live: list[bool] = []
        token = _live.set(live)
        try:
            yield
        finally:
            _live.reset(token)
        if not live and fork_point() is not None:
            self._calls[id(thing)].append(again)  # With it the thing itself, and so its id.

    def catch_up(self, thing: object) -> None:
        """Tell `thing` what it was not told yet: it is about to be told, or asked, for real."""
        if (live := _live.get()) is not None:
            live.append(True)
        for call in self._calls.pop(id(thing), ()):
            call()

    def forget(self) -> None:
        """Forget all of it: the session is over."""
        self._calls.clear()
