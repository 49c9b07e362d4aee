"""Find which exchange of one run stands where an exchange of another run stands.

Lanes are paired first. Then, within a lane and in this order: exchanges that are equal on the tape;
that ask and answer the same; that ask the same; that do the same in the same step; that do the
same. Each looks only between the pairs found before, so that what is paired keeps its order
(`alignment`). Two rules come before anything that differs is paired: equal exchanges of a lane in
another order were moved, and equal exchanges of two lanes are the same one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from tracefork_core.comparing.alignment import align
from tracefork_core.comparing.incidental import Incidental
from tracefork_core.comparing.reading import Reading, read, read_exactly
from tracefork_core.tape import Exchange, Tape

Pair = tuple[Exchange, Exchange]
_Key = Callable[[Exchange, "Run"], Hashable]
_Lane = tuple[str, list[Exchange]]
_Gap = tuple[list[Exchange], list[Exchange]]


class Run:
    """One of two runs that are compared. Reads each exchange at most once."""

    def __init__(self, tape: Tape, *, strict: bool) -> None:
        self._incidental = None if strict else Incidental(tape)
        self._readings: dict[int, Reading] = {}
        self._strict = strict
        self.exchanges = [one for one in tape.exchanges if strict or not one.is_auxiliary]

    @property
    def lanes(self) -> dict[str, list[Exchange]]:
        """The exchanges of each lane, in the order asked; all in one where order counts."""
        if self._strict:
            return {"": self.exchanges}
        lanes: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            lanes[exchange.lane].append(exchange)
        return lanes

    def reading(self, exchange: Exchange) -> Reading:
        """Return an exchange, ready to be compared."""
        if (found := self._readings.get(exchange.n)) is None:
            incidental = self._incidental
            found = read(exchange, incidental) if incidental else read_exactly(exchange)
            self._readings[exchange.n] = found
        return found

    def taped(self, exchange: Exchange) -> Hashable:
        """Return what two exchanges share if they are equal on the tape, bodies by their hashes."""
        asked, answered, failure = exchange.request, exchange.payload.response, exchange.failure
        error = (failure.kind, failure.message) if failure else None
        answer = (answered.status, answered.body) if answered else None
        if not self._strict:
            return asked.method, asked.url, asked.body, answer, error
        headers = tuple(answered.headers) if answered else ()
        return asked.method, asked.url, asked.body, tuple(asked.headers), answer, headers, error


@dataclass(slots=True)
class Pairs:
    """How the exchanges of two runs correspond.

    Attributes:
        pairs: exchanges of the same place, equal or not.
        moved: blocks of equal exchanges that stand elsewhere in their lane; of two that changed
            places, the first one.
        missing: exchanges of the first run alone.
        extra: exchanges of the second run alone.
    """

    pairs: list[Pair] = field(default_factory=list)
    moved: list[list[Pair]] = field(default_factory=list)
    missing: list[Exchange] = field(default_factory=list)
    extra: list[Exchange] = field(default_factory=list)


def pair(first: Run, second: Run) -> Pairs:
    """Pair the exchanges of two runs."""
    found = Pairs()
    gaps: list[_Gap] = []
    for whole in _lanes(first, second):
        rest = _fill(whole, (_as_taped, _as_said), (first, second), found.pairs)
        places = [{one.n: i for i, one in enumerate(side)} for side in whole]
        found.moved += _blocks(_take_equal(rest, first, second), *places)
        gaps += rest
    found.pairs += _take_equal(gaps, first, second)
    for gap in gaps:
        for left, right in _fill(
            gap, (_as_asked, _as_step, _as_operation), (first, second), found.pairs
        ):
            if len(left) == len(right):
                found.pairs += zip(left, right, strict=True)
            else:
                found.missing += left
                found.extra += right
    return found


def _lanes(first: Run, second: Run) -> Iterator[_Gap]:
    """Yield the lanes of both runs side by side, those that only one run has at last.

    An additional task shifts the numbers in the names of those that start after it. So lanes of the
    same content come before lanes of the same name.
    """
    left, right = list(first.lanes.items()), list(second.lanes.items())
    for key in (_by_tape, _by_content, _by_start_and_name, _by_start, _by_name):
        if len(left) == len(right) == 1:
            break  # What is alone on both sides belongs together, and is not read for that.
        waiting: dict[Hashable, deque[_Lane]] = defaultdict(deque)
        for lane in right:
            waiting[key(lane, second)].append(lane)
        taken: set[str] = set()
        rest = []
        for lane in left:
            if equal := waiting.get(key(lane, first)):
                other = equal.popleft()
                taken.add(other[0])
                yield list(lane[1]), list(other[1])
            else:
                rest.append(lane)
        left, right = rest, [lane for lane in right if lane[0] not in taken]
    nothing: _Lane = ("", [])
    for one, two in zip_longest(left, right, fillvalue=nothing):
        yield list(one[1]), list(two[1])


def _by_tape(lane: _Lane, run: Run) -> Hashable:
    return lane[0], tuple(run.taped(exchange) for exchange in lane[1])


def _by_content(lane: _Lane, run: Run) -> Hashable:
    return tuple(run.reading(exchange).key for exchange in lane[1])


def _by_start_and_name(lane: _Lane, run: Run) -> Hashable:
    return lane[0], _by_start(lane, run)


def _by_start(lane: _Lane, run: Run) -> Hashable:
    return run.reading(lane[1][0]).question_key


def _by_name(lane: _Lane, _: Run) -> Hashable:
    return lane[0]


def _fill(gap: _Gap, keys: Sequence[_Key], runs: tuple[Run, Run], found: list[Pair]) -> list[_Gap]:
    """Add pairs within a stretch by one key after another; return what is left, in stretches."""
    left, right = gap
    if not keys or not left or not right:
        return [gap] if left or right else []
    key, *later = keys
    here, there = ([key(one, run) for one in side] for side, run in zip(gap, runs, strict=True))
    pairs = align(here, there)
    found += [(left[i], right[j]) for i, j in pairs]
    rest: list[_Gap] = []
    at, other = 0, 0
    for i, j in [*pairs, (len(left), len(right))]:
        rest += _fill((left[at:i], right[other:j]), later, runs, found)
        at, other = i + 1, j + 1
    return rest


def _as_taped(exchange: Exchange, run: Run) -> Hashable:
    return run.taped(exchange)


def _as_said(exchange: Exchange, run: Run) -> Hashable:
    return run.reading(exchange).key


def _as_asked(exchange: Exchange, run: Run) -> Hashable:
    return run.reading(exchange).question_key


def _as_step(exchange: Exchange, run: Run) -> Hashable:
    return run.reading(exchange).operation, exchange.step_path


def _as_operation(exchange: Exchange, run: Run) -> Hashable:
    return run.reading(exchange).operation


def _take_equal(gaps: list[_Gap], first: Run, second: Run) -> list[Pair]:
    """Take the equal exchanges out of stretches, wherever each stands, and return them in pairs."""
    if not any(left for left, _ in gaps) or not any(right for _, right in gaps):
        return []
    missing: dict[str, deque[Exchange]] = defaultdict(deque)
    for left, _ in gaps:
        for exchange in left:
            missing[first.reading(exchange).key].append(exchange)
    pairs = [
        (equal.popleft(), exchange)
        for _, right in gaps
        for exchange in right
        if (equal := missing.get(second.reading(exchange).key))
    ]
    gone = {id(one) for pair in pairs for one in pair}
    for side in (side for gap in gaps for side in gap):
        side[:] = [one for one in side if id(one) not in gone]
    return pairs


def _blocks(pairs: list[Pair], places: dict[int, int], others: dict[int, int]) -> list[list[Pair]]:
    """Join moved exchanges that moved together, and drop the second of two that swapped places."""
    blocks: list[list[Pair]] = []
    ends = (-2, -2)
    for pair in sorted(pairs, key=lambda pair: pair[0].n):
        at, other = places[pair[0].n], others[pair[1].n]
        if (at, other) == (ends[0] + 1, ends[1] + 1):
            blocks[-1].append(pair)
        else:
            blocks.append([pair])
        ends = at, other
    kept: list[list[Pair]] = []
    for block in blocks:
        moved = places[block[0][0].n] - others[block[0][1].n]
        is_second = any(
            len(one) == len(block) and others[one[0][1].n] - places[one[0][0].n] == moved
            for one in kept
        )
        if not is_second:
            kept.append(block)
    return kept
