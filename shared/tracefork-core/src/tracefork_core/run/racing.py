"""Search the orders of a run for one that changes its outcome, and make that one small.

Nothing is run here: `attempt` is whatever can carry one order out and say what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracefork_core.order.endings import recorded_waits
from tracefork_core.tape import Tape

Order = int | tuple[int, ...]
"""A seed, or numbers of exchanges in the order in which they are to be completed."""
Kind = Literal["same", "asks", "ends", "prints"]
MOST_STEPS = 60
"""How many runs the search for the smallest reordering takes at most."""
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one order.

    Attributes:
        kind: as recorded; asks, ends or prints something else.
        where: what outcomes of one kind are told apart by: the place of a request, an exception.
        recorded: what stood there.
        now: what stands there.
        completed: the exchanges that were answered whole, in their order, as far as it went.
    """

    kind: Kind
    where: str = ""
    recorded: str = ""
    now: str = ""
    completed: tuple[int, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether it is not what was recorded."""
        return self.kind != "same"


Attempt = Callable[[Order], Outcome]


@dataclass(slots=True)
class Group:
    """Orders that came to the same: the first of them, what came of it, and how many there are."""

    order: Order
    outcome: Outcome
    orders: int = 1


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest reordering that was found to change the outcome.

    Attributes:
        order: what to ask for to see it again.
        outcome: what comes of it.
        moved: for each exchange that was answered early, those it was answered before.
    """

    order: Order
    outcome: Outcome
    moved: dict[int, tuple[int, ...]]


@dataclass(slots=True)
class Found:
    """What a search came to.

    Attributes:
        groups: what they came to, the recorded outcome first.
        smallest: None where no order changed anything.
    """

    groups: list[Group] = field(default_factory=list)
    smallest: Smallest | None = None

    @property
    def orders(self) -> int:
        """How many distinct orders were tried, that of the recording among them."""
        return sum(group.orders for group in self.groups)


def search(
    recorded: Sequence[int],
    overlapping: Collection[frozenset[int]],
    attempt: Attempt,
    seeds: Iterable[int],
) -> Found:
    """Try the recorded order and those of some seeds; make small what changes the outcome.

    Args:
        recorded: the exchanges in the order in which they were completed.
        overlapping: the pairs of exchanges that were in flight at the same time.
        attempt: carries out one order.
        seeds: of the orders to try.
    """
    return _Search(tuple(recorded), overlapping, attempt).run(seeds)


class _Search:
    def __init__(
        self,
        recorded: tuple[int, ...],
        overlapping: Collection[frozenset[int]],
        attempt: Attempt,
    ) -> None:
        self._recorded = recorded
        self._overlapping = overlapping
        self._attempt = attempt
        self._left = MOST_STEPS
        self._tried: dict[tuple[int, ...], Outcome] = {}
        self._seen: set[tuple[object, ...]] = set()
        self._failing: list[tuple[Order, Outcome]] = []
        self._found = Found()

    def run(self, seeds: Iterable[int]) -> Found:
        outcome = self._attempt(self._recorded)
        self._tried[self._recorded] = outcome
        self._count(self._recorded, outcome)
        if outcome.changed:
            # Pieces of answers that came in between one another, or a timer beside them.
            self._found.smallest = Smallest(self._recorded, outcome, {})
            return self._found
        for seed in seeds:
            self._count(seed, self._attempt(seed))
        if self._failing:
            self._found.smallest = self._smallest()
        return self._found

    def _count(self, order: Order, outcome: Outcome) -> None:
        key = self._whole(outcome), outcome.kind, outcome.where, outcome.now
        if key in self._seen:
            return
        self._seen.add(key)
        if outcome.changed:
            self._failing.append((order, outcome))
        for group in self._found.groups:
            if (group.outcome.kind, group.outcome.where) == (outcome.kind, outcome.where):
                group.orders += 1
                return
        self._found.groups.append(Group(order, outcome))

    def _smallest(self) -> Smallest:
        whole = [self._whole(outcome) for _, outcome in self._failing]
        nearest = sorted(whole, key=lambda order: len(self._inversions(order)))
        for candidate in [*self._moves(whole)[: self._left // 2], *nearest]:
            if self._changes(candidate):
                return self._told(self._shrunk(candidate))
        # What made the difference is no order of exchanges: a sleep, or pieces of answers.
        order, outcome = self._failing[0]
        return Smallest(order, outcome, self._moved(whole[0]))

    def _changes(self, order: tuple[int, ...]) -> bool:
        """Return whether an order changes the outcome; False once there are no runs left."""
        if order not in self._tried:
            if not self._left:
                return False
            self._left -= 1
            self._tried[order] = self._attempt(order)
        return self._tried[order].changed

    def _moves(self, failing: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the recorded order with one exchange before one other, shortest ways first.

        Only pairs are moved that overlapped, and that some failing order has the other way round.
        """
        places = {n: i for i, n in enumerate(self._recorded)}
        inverted = {pair for order in failing for pair in self._inversions(order)}
        pairs = [pair for pair in inverted if frozenset(pair) in self._overlapping]
        found = []
        for early, late in sorted(pairs, key=lambda p: (places[p[0]] - places[p[1]], places[p[0]])):
            others = [n for n in self._recorded if n != early]
            others.insert(others.index(late), early)
            found.append(tuple(others))
        return found

    def _shrunk(self, order: tuple[int, ...]) -> tuple[int, ...]:
        """Undo adjacent inversions as long as the outcome is still a changed one."""
        places = {n: i for i, n in enumerate(self._recorded)}
        i = 0
        while i + 1 < len(order):
            first, second = order[i], order[i + 1]
            swapped = (*order[:i], second, first, *order[i + 2 :])
            if places[first] > places[second] and self._changes(swapped):
                order, i = swapped, 0
            else:
                i += 1
        return order

    def _told(self, order: tuple[int, ...]) -> Smallest:
        return Smallest(self._trimmed(order), self._tried[order], self._moved(order))

    def _trimmed(self, order: tuple[int, ...]) -> tuple[int, ...]:
        """Leave out, at both ends, what comes as recorded."""
        differ = [i for i, n in enumerate(order) if n != self._recorded[i]]
        return order[differ[0] : differ[-1] + 1]

    def _whole(self, outcome: Outcome) -> tuple[int, ...]:
        """Return an order that broke off, and behind it what is missing, as recorded."""
        known = set(self._recorded)
        begun = [n for n in dict.fromkeys(outcome.completed) if n in known]
        return (*begun, *(n for n in self._recorded if n not in begun))

    def _inversions(self, order: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return pairs (early, late) of an order that were completed the other way round."""
        places = {n: i for i, n in enumerate(self._recorded)}
        return [
            (early, late)
            for i, early in enumerate(order)
            for late in order[i + 1 :]
            if places[early] > places[late]
        ]

    def _moved(self, order: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
        moved: dict[int, tuple[int, ...]] = {}
        for early, late in self._inversions(order):
            moved[early] = (*moved.get(early, ()), late)
        return moved
