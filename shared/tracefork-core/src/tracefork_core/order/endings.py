"""How the sleeps and timers of a recording ended, as stored on its tape.

A tape stores each ending as one integer, in the order in which the sleeps and timers of a lane and
call site began. That integer has three meanings. Only `Ending` reads and writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tracefork_core.exchange.contract import PROGRAM, TIMER, WAIT
from tracefork_core.order.turns import soft_owner
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.event import Reads

SLEEP = "sleep"
_CUT_SHORT = -1
_AT_ONCE = -2


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a sleep or a timer.

    Attributes:
        turn: Its turn. None for a sleep that was cut short.
        X

    On a tape `turn` is stored as itself, cut short as -1, and at once as -2 - `turn`.
    """

    turn: int | None
    is_at_once: bool = False

    @classmethod
    def read(cls, value: int) -> Ending:
        if value <= _AT_ONCE:
            return cls(_AT_ONCE - value, is_at_once=True)
        return cls(value if value >= 0 else None)

    @property
    def written(self) -> int:
        if self.turn is None:
            return _CUT_SHORT
        return _AT_ONCE - self.turn if self.is_at_once else self.turn

    def is_before(self, turn: int) -> bool:
        return self.turn is not None and self.turn < turn


CUT_SHORT = Ending(None)


def endings_of(reads: Reads) -> list[tuple[int, Ending]]:
    """Return the number of each sleep or timer and how it ended; timers are counted from 1."""
    values = reads.values
    if reads.source == SLEEP:
        return list(enumerate(map(Ending.read, values)))
    return list(zip(values[::2], map(Ending.read, values[1::2]), strict=False))


def recorded_waits(tape: Tape) -> list[Reads]:
    """Return the sleeps and the fired timers of a recording.

    Timers of threads whose lanes make no requests are left out. A background exporter polls every
    few seconds; waiting for each poll would make a replay as long as its recording.
    """
    asking = asking_lanes(tape)
    return [
        reads
        for reads in tape.chance.reads
        if reads.source in (SLEEP, TIMER, PROGRAM)
        or (reads.source == WAIT and reads.lane in asking)
    ]


def asking_lanes(tape: Tape) -> set[str]:
    """Return the lanes that make requests, and those that started them."""
    asking = {exchange.lane for exchange in tape.exchanges}
    return asking | {lane[:end] for lane in asking for end in range(len(lane)) if lane[end] == "/"}


def turns_of_waits(recorded: Iterable[Reads]) -> Iterator[tuple[int, int]]:
    """Yield (turn, owner) for each sleep and timer that has a turn."""
    for reads in recorded:
        for _, ending in endings_of(reads):
            if ending.turn is not None and not ending.is_at_once:
                yield ending.turn, soft_owner(ending.turn)


def waits_before(waits: Iterable[Reads], later: Sequence[Exchange]) -> Iterator[Reads]:
    """Yield the waits that ended before the first delivery of any exchange in `later`."""
    first = min((turns[0] for one in later for turns in one.aside.turns), default=None)
    for reads in waits:
        endings = endings_of(reads)
        if first is None:
            yield reads
        elif reads.source == SLEEP:
            yield Reads(SLEEP, reads.lane, reads.site, _over_before(first, endings))
        else:
            fired = [(number, ending) for number, ending in endings if ending.is_before(first)]
            values = [value for number, ending in fired for value in (number, ending.written)]
            yield Reads(reads.source, reads.lane, reads.site, values)


def _over_before(first: int, endings: Sequence[tuple[int, Ending]]) -> list[int]:
    """Return the endings of sleeps up to the last one that ended before a turn.

    A sleep among them that lasted longer is cut short at the fork point.
    """
    before = [ending if ending.is_before(first) else CUT_SHORT for _, ending in endings]
    while before and before[-1] != endings[len(before) - 1][1]:
        before.pop()
    return [ending.written for ending in before]
