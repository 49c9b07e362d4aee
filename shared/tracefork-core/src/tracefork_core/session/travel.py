"""Continue a recording from another checkpoint than the recorded run did.

In a replay a framework's thread is either run *again*, as the recorded program ran it, and then
looks as it did at that time; or it is *travelled*: the agent looks into its recorded past and
continues from one of its checkpoints. Then only what followed there can still be asked for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tracefork_core.checkpoints.contract import Call, Checkpoints
from tracefork_core.checkpoints.lineage import (
    ROOT,
    RUNS,
    Key,
    Lineage,
    exchanges_after,
    key_of,
    stand_in,
)
from tracefork_core.exchange.contract import Redraw
from tracefork_core.exchange.lane import MAIN, UNORDERED
from tracefork_core.order.turns import turns_of
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.session.run_state import RunState
from tracefork_core.session.tape_source import Source
from tracefork_core.tape.checkpoint import Called, Checkpoint, Write


class Travel:
    """How one session leaves the order of its recording.

    `moved` are called with the moment of the recording from which the run continues, in nanoseconds
    since the epoch.
    """

    def __init__(self, state: RunState, source: Source, turnstile: Turnstile) -> None:
        self._state = state
        self._source = source
        self._turnstile = turnstile
        self.moved: list[Callable[[int], None]] = []

    def depart(self) -> None:
        """Leave the recorded run: nothing of it has to be asked for any more.

        From here on each lane has its own order and no other: the recorded order was of another
        run.
        """
        self._source.is_travelled = True
        self._turnstile.break_open()

    def to(
        self, lineage: Lineage, thread: str, at: str | None, made: int, *, resumed: bool
    ) -> list[int]:
        """Continue from a recorded checkpoint, made at `made`; return the exchanges it skips."""
        source = self._source
        self._state.check()
        exchanges = source.tape.exchanges
        recorded = [(exchange.n, exchange.checkpoint) for exchange in exchanges]
        since = lineage.made(thread, at) if at is not None else None
        first = next((e.n for e in exchanges if since and e.aside.started >= since), None)
        left, gone = exchanges_after(lineage, recorded, thread, at, resumed=resumed, first=first)
        with self._state.lock:
            skipped = source.travel(left, gone, lineage.forked_from)
            self.redraw(made)
        for move in self.moved:
            move(made)
        return skipped

    def skip(self, exchanges: Sequence[int], made: int) -> None:
        """Skip exchanges that the recorded run skipped to continue from what was made at `made`."""
        with self._state.lock:
            self.redraw(made)
            self._source.skip(exchanges)
        numbers = set(exchanges)
        skipped = [exchange for exchange in self._source.tape.exchanges if exchange.n in numbers]
        self._turnstile.give_up(turn for turn, _ in turns_of(skipped))

    def redraw(self, made: int) -> None:
        """Draw other ids and random values than the run that led to a checkpoint made at `made`.

        That run has used the first ones, and its ids are in the state: a message that gets the id
        of an older one would replace it.
        """
        before = "".join(redraw.salt for redraw in self._state.redraws)
        self._state.redraws[:] = [Redraw(f"{before}{made:x}", 0, {MAIN, UNORDERED})]


class Way(NamedTuple):
    """When the checkpoint was made that a run continues from, and the exchanges it skips."""

    made: int
    skipped: list[int]


class Route:
    """Decides for each thread of one checkpoint file whether it is run again or travelled.

    `own` is where this run keeps its checkpoints, and `put` are the keys of those it put itself.
    """

    def __init__(self, travel: Travel, recorded: Lineage, own: Checkpoints, put: set[Key]) -> None:
        self._travel = travel
        self._recorded = recorded
        self._own = own
        self._put = put
        self._runs: dict[str, deque[Called]] = defaultdict(deque)
        self._again: set[str] = set()
        self._travelled: set[str] = set()
        self._load(recorded.known())
        for thread in recorded.threads:
            self._runs[thread].extend(recorded.runs(thread))

    def way(self, call: Call, thread: str, at: str | None) -> Way | None:
        """Return the way that a call takes through the recording; None where it jumps nowhere."""
        if thread not in self._recorded.threads:
            return None
        if call not in RUNS:
            if thread not in self._again | self._travelled:
                return self._look(call, thread)
            return None
        if thread not in self._travelled:
            due = self._runs[thread].popleft() if self._runs[thread] else None
            if at is None or (due is not None and self._is_same(due, thread, at)):
                self._again.add(thread)
                if due is None or not due.made:
                    return None
                self._travel.skip(due.skipped, due.made)
                return Way(due.made, due.skipped)
            self._show(thread)
        return self._continue_from(thread, at, resumed=call == "resume")

    def _look(self, call: Call, thread: str) -> Way | None:
        """Let the agent read or change a thread: as the recorded run began, or at its end."""
        first = self._recorded.first(thread)
        if first is not None and first.call == call:
            self._again.add(thread)
            way = Way(first.made, first.skipped) if first.made else None
        else:
            self._show(thread)
            latest = self._own.find(thread, ROOT)
            way = Way(latest.made, []) if latest is not None and latest.made else None
        if way is not None:
            self._travel.redraw(way.made)
        return way

    def _is_same(self, due: Called, thread: str, at: str) -> bool:
        """Return whether a run begins where the recorded one began, at what is there by now."""
        if due.id is None or self._own.find(thread, ROOT, at) is None:
            return False
        return due.id == at or (thread, ROOT, at) in self._put

    def _continue_from(self, thread: str, at: str | None, *, resumed: bool) -> Way | None:
        start = self._own.find(thread, ROOT, at)
        if start is None or (at is None and key_of(start) in self._put):
            return None  # It continues where this run stands.
        target = stand_in(self._recorded, self._upwards(start))
        skipped = self._travel.to(self._recorded, thread, target, start.made, resumed=resumed)
        return Way(start.made, skipped)

    def _upwards(self, checkpoint: Checkpoint | None) -> Iterator[Checkpoint]:
        seen: set[str] = set()
        while checkpoint is not None and checkpoint.id not in seen:
            seen.add(checkpoint.id)
            yield checkpoint
            thread, parent = checkpoint.thread, checkpoint.parent
            checkpoint = self._own.find(thread, ROOT, parent) if parent else None

    def _show(self, thread: str) -> None:
        """Show a thread from now on as it was at the end of the recording."""
        self._travelled.add(thread)
        self._travel.depart()
        self._load(self._recorded.put(thread))

    def _load(self, recorded: Iterator[Checkpoint | Sequence[Write]]) -> None:
        for item in recorded:
            if not isinstance(item, Checkpoint):
                self._own.put_writes(item, {})
            elif key_of(item) not in self._put:
                self._own.put(item, {})
