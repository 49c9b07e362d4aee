"""Which exchanges of a recording were in flight together, and which was completed first."""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_core.session.waits import recorded_waits
from tracefork_core.tape import Tape


@dataclass(frozen=True, slots=True)
class Overlap:
    """What of a recording could have come in another order.

    Attributes:
        completed: the exchanges in the order of their last deliveries.
        pairs: those of them that were in flight at the same time.
        waits: whether the agent slept, or a timer of its fired: such ends are reordered too.
    """

    completed: tuple[int, ...]
    pairs: frozenset[frozenset[int]]
    waits: bool

    @property
    def exchanges(self) -> frozenset[int]:
        """Those that were not alone all the time."""
        return frozenset().union(*self.pairs)


def overlap_of(tape: Tape) -> Overlap:
    """Read from a tape what overlapped when it was recorded."""
    last = {
        exchange.n: max(first + count for first, count in exchange.aside.turns)
        for exchange in tape.exchanges
        if exchange.aside.turns
    }
    pairs: set[frozenset[int]] = set()
    in_flight: dict[int, float] = {}
    for exchange in sorted(tape.exchanges, key=lambda one: one.aside.started):
        if exchange.n not in last:
            continue
        began, took = exchange.aside.started, exchange.aside.took
        in_flight = {n: end for n, end in in_flight.items() if end > began}
        pairs |= {frozenset((n, exchange.n)) for n in in_flight}
        in_flight[exchange.n] = float("inf") if took is None else began + took
    completed = tuple(sorted(last, key=last.__getitem__))
    return Overlap(completed, frozenset(pairs), bool(recorded_waits(tape)))
