"""Which exchanges of a recording were in flight together, and which was completed first."""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_core.order.waits import recorded_waits
from tracefork_core.tape import Tape

_UNANSWERED = ("cancelled", "open")


@dataclass(frozen=True, slots=True)
class Overlap:
    """What of a recording could have come in another order.

    Attributes:
        completed: the exchanges in the order of their last deliveries.
        pairs: those of them that were in flight at the same time.
        waits: whether the agent slept, or a timer of its fired: such ends are reordered too.
        unanswered: those that were in flight beside others and have no answer, as the losers of a
            race that were cancelled: what they would have said is not known.
    """

    completed: tuple[int, ...]
    pairs: frozenset[frozenset[int]]
    waits: bool
    unanswered: frozenset[int] = frozenset()

    @property
    def exchanges(self) -> frozenset[int]:
        """Those that were not alone all the time."""
        return frozenset().union(*self.pairs)


def overlap_of(tape: Tape) -> Overlap:
    """Read from a tape what overlapped when it was recorded."""
    last = {
        exchange.n: max(first + count for first, count in exchange.aside.turns)
        for exchange in tape.exchanges
        if exchange.aside.turns and exchange.end not in _UNANSWERED
    }
    pairs: set[frozenset[int]] = set()
    in_flight: dict[int, float] = {}
    for exchange in sorted(tape.exchanges, key=lambda one: one.aside.started):
        began, took = exchange.aside.started, exchange.aside.took
        in_flight = {n: end for n, end in in_flight.items() if end > began}
        pairs |= {frozenset((n, exchange.n)) for n in in_flight}
        in_flight[exchange.n] = float("inf") if took is None else began + took
    completed = tuple(sorted(last, key=last.__getitem__))
    answered = frozenset(pair for pair in pairs if pair <= last.keys())
    unanswered = frozenset().union(*pairs) - last.keys()
    return Overlap(completed, answered, bool(recorded_waits(tape)), unanswered)
