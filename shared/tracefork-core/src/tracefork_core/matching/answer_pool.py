"""Match a request with the recorded exchange that answers it, by content and by lane."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from operator import attrgetter

from tracefork_core.exchange.lane import UNORDERED
from tracefork_core.tape import Exchange


class Unused:
    """Find the recorded exchange that answers a request.

    Content decides. Where several recorded exchanges are equal, the lane decides: the first request
    of a lane pairs it with a recorded lane, so that fan-outs whose branches start in another order
    still find their own answers. Within a lane, order counts.

    Where `step` tells the steps of a framework apart, an answer comes from the first step that
    holds an equal exchange, whatever its lanes are called.
    """

    def __init__(
        self,
        recorded: Sequence[Exchange],
        key: Callable[[Exchange], bytes],
        lane: Callable[[Exchange], str] = attrgetter("lane"),
        step: Callable[[Exchange], object] | None = None,
    ) -> None:
        self._step = step
        self._by_key: dict[bytes, dict[str, deque[Exchange]]] = {}
        self._by_lane: dict[str, deque[Exchange]] = defaultdict(deque)
        self._left = {exchange.n: exchange for exchange in recorded}
        self._paired: dict[str, str] = {}
        self._taken: set[str] = set()
        for exchange in recorded:
            lanes = self._by_key.setdefault(key(exchange), {})
            lanes.setdefault(lane(exchange), deque()).append(exchange)
            self._by_lane[lane(exchange)].append(exchange)

    def remaining(self) -> list[Exchange]:
        """Return the exchanges that were not asked for, in recorded order."""
        return list(self._left.values())

    def has(self, key: bytes) -> bool:
        """Return whether an unused exchange answers `key`."""
        return bool(self._by_key.get(key))

    def due(self, lane: str) -> Exchange | None:
        """Return the exchange that the recorded lane asked for next."""
        recorded = self._by_lane.get(self._paired.get(lane, lane))
        return self._next(recorded) if recorded else None

    def take(self, key: bytes, lane: str) -> tuple[Exchange, Exchange] | None:
        """Use up the exchange that answers `key` on `lane`.

        Returns the exchange and the one that was due on its lane, or None where no equal exchange
        is left. If the two differ, the order of the lane was broken.
        """
        lanes = self._by_key.get(key)
        if not lanes:
            return None
        recorded_lane = self._choose(self._of_first_step(lanes), lane)
        exchange = lanes[recorded_lane].popleft()
        if not lanes[recorded_lane]:
            del lanes[recorded_lane]
        due = self._next(self._by_lane[recorded_lane])
        del self._left[exchange.n]
        paired = self._paired.get(lane) == recorded_lane
        if due is None or not paired or UNORDERED in (lane, recorded_lane):
            due = exchange
        return exchange, due

    def _of_first_step(self, lanes: dict[str, deque[Exchange]]) -> dict[str, deque[Exchange]]:
        if self._step is None or len(lanes) == 1:
            return lanes
        numbers = {line[0].n: name for name, line in lanes.items()}
        first = next(n for n in self._left if n in numbers)
        step = self._step(lanes[numbers[first]][0])
        return {name: line for name, line in lanes.items() if self._step(line[0]) == step}

    def _choose(self, lanes: dict[str, deque[Exchange]], lane: str) -> str:
        if (paired := self._paired.get(lane)) is not None:
            return paired if paired in lanes else next(iter(lanes))
        if lane in lanes and lane not in self._taken:
            chosen = lane
        else:
            free = (name for name in lanes if name not in self._taken)
            chosen = next(free, None) or next(iter(lanes))
        if chosen not in self._taken:
            self._paired[lane] = chosen
            self._taken.add(chosen)
        return chosen

    def _next(self, recorded: deque[Exchange]) -> Exchange | None:
        while recorded and recorded[0].n not in self._left:
            recorded.popleft()
        return recorded[0] if recorded else None
