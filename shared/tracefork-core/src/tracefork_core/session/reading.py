"""How far a replay reads each answer: as far as the recording did, or the run is another one.

An answer counts as read when all of its recorded chunks were given to the agent, or its failure.
Whether the agent also asked for the end does not count: some clients know the length of a body, and
never ask. An answer that was in flight when the recording ended is not compared, because where that
was depends on time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracefork_core.tape import Exchange


@dataclass(slots=True, eq=False)
class Progress:
    """How far one answer was read: the `chunks` that were not empty, and their `size` in bytes."""

    exchange: Exchange
    _under_way: dict[int, Progress]
    chunks: int = 0
    size: int = 0
    _chunks_left: int = field(init=False)
    _needs_head: bool = field(init=False)
    _needs_failure: bool = field(init=False)

    def __post_init__(self) -> None:
        exchange = self.exchange
        self._chunks_left = len([size for size in exchange.aside.sizes if size])
        self._needs_head = exchange.status is not None
        self._needs_failure = exchange.failure is not None
        if self._is_short() and exchange.end != "open":
            self._under_way[exchange.n] = self

    def head(self) -> None:
        """Note that the head was given to the agent."""
        self._needs_head = False
        self._forget_if_read()

    def chunk(self, data: bytes) -> None:
        """Note that a chunk was given to the agent; an empty one does not count."""
        if data:
            self.chunks += 1
            self.size += len(data)
            self._chunks_left -= 1
            self._forget_if_read()

    def failed(self) -> None:
        """Note that the recorded failure was given to the agent."""
        self._needs_failure = False
        self._forget_if_read()

    def _is_short(self) -> bool:
        return self._needs_head or self._needs_failure or self._chunks_left > 0

    def _forget_if_read(self) -> None:
        if not self._is_short():
            self._under_way.pop(self.exchange.n, None)


class Reading:
    """The answers of a replay that were not read as far as when they were recorded."""

    def __init__(self) -> None:
        self._under_way: dict[int, Progress] = {}

    def begin(self, exchange: Exchange) -> Progress:
        """Follow how far an answer is read."""
        return Progress(exchange, self._under_way)

    def short(self, since: int) -> Progress | None:
        """Return the first answer from exchange `since` on that was read less far, if any."""
        under_way = [one for one in list(self._under_way.values()) if one.exchange.n >= since]
        return min(under_way, key=lambda progress: progress.exchange.n, default=None)
