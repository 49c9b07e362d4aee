"""Which recorded checkpoint follows which, and how often a thread was run from each.

Ids of checkpoints and tasks change with every run, and so do step numbers after a fork. The *line*
stays: from a checkpoint, a run continues to its child. If a recording continued from one checkpoint
several times, the line is the first time; the others began with a fork of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from tracefork_core.checkpoints.contract import RecordedRun
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import (
    Called,
    Checkpoint,
    CheckpointEvent,
    Saved,
    Write,
    Written,
)

ROOT = ""
"""The ns of the outermost graph; graphs inside its nodes have names."""
STANDS_FOR_ITS_PARENT = frozenset({"fork", "update"})
"""Sources of checkpoints made by hand, without a run."""
RUNS = frozenset({"run", "resume"})
"""The calls that run a thread."""
_BEFORE = -1
"""The run number of what was there before the recording."""

Key = tuple[str, str, str]
"""Thread, ns and id of a checkpoint."""

_ByPlace = dict[str, list[RecordedRun]]


def key_of(one: Checkpoint | Write) -> Key:
    """Return the key of a checkpoint, or of the checkpoint that a write came after."""
    return one.thread, one.ns, one.id


class Lineage:
    """The checkpoints of one recording. `events` are those of its tape, in order.

    `inherited` are those of a branch's parents, nearest first: the branch continues one of them.
    """

    def __init__(
        self, events: Sequence[CheckpointEvent], *inherited: Sequence[CheckpointEvent]
    ) -> None:
        self._events = events
        self._put: dict[Key, Checkpoint] = {}
        self._known: dict[Key, Checkpoint] = {}
        self._of_thread: dict[str, list[CheckpointEvent]] = defaultdict(list)
        for event in (event for one in reversed((events, *inherited)) for event in one):
            self._of_thread[_thread_of(event)].append(event)
            if isinstance(event, Saved):
                of = self._known if event.known else self._put
                of[key_of(event.checkpoint)] = event.checkpoint
        self._children = [_children(one) for one in (events, *inherited)]
        self._calls: dict[str, list[Called]] = defaultdict(list)
        for event in events:
            if isinstance(event, Called):
                self._calls[event.thread].append(event)
        self.threads = {thread for thread, _, _ in self._put}
        """The threads that the recording put checkpoints of."""

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints that the recording put, in order, and those that a branch began with."""
        wanted = {
            key_of(event.checkpoint)
            for event in self._events
            if isinstance(event, Saved) and not event.known
        }
        for call in (call for thread in self._calls for call in self.runs(thread)):
            if call.found is not None:  # If nothing was left to run, this is the only one.
                wanted.add((call.thread, ROOT, call.found))
        for key, one in reversed(self._put.items()):
            if key in wanted and one.parent is not None:
                wanted.add((one.thread, one.ns, one.parent))
        return [one for key, one in self._put.items() if key in wanted]

    def first(self, thread: str) -> Called | None:
        """Return the first call for a thread."""
        return self._calls[thread][0] if self._calls.get(thread) else None

    def runs(self, thread: str) -> list[Called]:
        """Return the runs of a thread, resumed ones among them."""
        return [call for call in self._calls.get(thread, ()) if call.call in RUNS]

    def holds(self, thread: str, at: str) -> bool:
        """Return whether a checkpoint is on the tape: put by the run, or there before it."""
        return (thread, ROOT, at) in self._put or (thread, ROOT, at) in self._known

    def made(self, thread: str, at: str) -> int | None:
        """Return when a checkpoint was made, in nanoseconds since the epoch, None if unknown."""
        key = thread, ROOT, at
        one = self._put.get(key) or self._known.get(key)
        return one.made or None if one is not None else None

    def forked_from(self, thread: str, at: str) -> str:
        """Return the checkpoint that this one is a fork of: the same tasks run from both."""
        seen = {at}
        while (one := self._put.get((thread, ROOT, at))) is not None:
            if one.metadata.get("source") != "fork" or one.parent is None or one.parent in seen:
                break
            at = one.parent
            seen.add(at)
        return at

    def next(self, thread: str, at: str) -> str | None:
        """Return the checkpoint that the recorded run continued to."""
        children = next((of[thread, at] for of in self._children if (thread, at) in of), [])
        line = [one for one in children if one.metadata.get("source") != "fork"] or children
        return line[0].id if line else None

    def line(self, thread: str, at: str) -> list[str]:
        """Return a checkpoint and all those that the recorded run continued to from it."""
        found: dict[str, None] = {}
        place: str | None = at
        while place is not None and place not in found:
            found[place] = None
            place = self.next(thread, place)
        return list(found)

    def resumed_at(self, thread: str, at: str) -> int | None:
        """Return how many exchanges had been asked for when a checkpoint was resumed."""
        found = (one.asked for one in self.runs(thread) if (one.call, one.found) == ("resume", at))
        return next(found, None)

    def known(self) -> Iterator[Checkpoint | Sequence[Write]]:
        """Yield the checkpoints, and the writes, that were there before the recording."""
        for event in self._events:
            match event:
                case Saved(checkpoint=one, known=True):
                    yield one
                case Written(writes=writes, known=True):
                    yield writes

    def put(self, thread: str) -> Iterator[Checkpoint | Sequence[Write]]:
        """Yield the checkpoints that the recording put on a thread, and their writes.

        A checkpoint has only the writes of the run that put it: what a later run added belongs to
        its future. `known` yields the writes of checkpoints from before.
        """
        run, made = 0, dict.fromkeys(self._known.keys() - self._put.keys(), _BEFORE)
        for event in self._of_thread.get(thread, ()):
            match event:
                case Called(call=call) if call in RUNS:
                    run += 1
                case Saved(checkpoint=one, known=False):
                    made[key_of(one)] = run
                    yield one
                case Written(writes=writes, known=False):
                    # Checkpoints are put in the background: a task may write before.
                    if shown := [one for one in writes if made.get(key_of(one), run) == run]:
                        yield shown


def _thread_of(event: CheckpointEvent) -> str:
    match event:
        case Saved(checkpoint=one):
            return one.thread
        case Written(writes=writes):
            return writes[0].thread if writes else ""
        case Called(thread=thread):
            return thread


def _children(events: Iterable[CheckpointEvent]) -> dict[tuple[str, str | None], list[Checkpoint]]:
    """Return the checkpoints that a recording put, by thread and parent."""
    found: dict[tuple[str, str | None], list[Checkpoint]] = defaultdict(list)
    for event in events:
        if isinstance(event, Saved) and not event.known and event.checkpoint.ns == ROOT:
            found[event.checkpoint.thread, event.checkpoint.parent].append(event.checkpoint)
    return dict(found)


def generations(tape: Tape | None) -> Iterator[Tape]:
    """Yield a tape, its parent, and so on."""
    while tape is not None:
        yield tape
        tape = tape.parent


def lineage_of(tape: Tape, store: str | None = None) -> Lineage:
    """Return the checkpoints of a tape and its parents: of all stores, or of one."""
    return Lineage(
        *(
            [event for event in one.checkpoints if store is None or event.store == store]
            for one in generations(tape)
        )
    )


def stores_of(tape: Tape) -> list[str]:
    """Return the names of the files in which a recorded run stored its checkpoints."""
    events = chain.from_iterable(one.checkpoints for one in generations(tape))
    return list(dict.fromkeys(event.store for event in events))


def stand_in(lineage: Lineage, line: Iterable[Checkpoint]) -> str | None:
    """Return the recorded checkpoint that a checkpoint made in a replay stands for.

    `line` leads from that one up through its parents, to the first that was recorded. A fork or an
    update stands for its parent; any other, for what the recorded run continued to from there.
    """
    made: list[Checkpoint] = []
    place: str | None = None
    for one in line:
        if lineage.holds(one.thread, one.id):
            place = one.id
            break
        made.append(one)
    for one in reversed(made):
        if place is None:
            return None
        if one.metadata.get("source") not in STANDS_FOR_ITS_PARENT:
            place = lineage.next(one.thread, place)
    return place


def exchanges_after(
    lineage: Lineage,
    asked: Iterable[tuple[int, tuple[str, str] | None]],
    thread: str,
    at: str | None,
    *,
    resumed: bool,
    first: int | None = None,
) -> tuple[list[int], list[int]]:
    """Return the exchanges still to come when a run continues from a checkpoint, and the past ones.

    Exchanges of other threads are in neither list. In a resumed run, exchanges after the resumption
    come first; those before it come last, since LangGraph may run finished tasks again.

    Args:
        lineage: the recorded checkpoints.
        asked: the number of each exchange, with the thread and id of the checkpoint it ran from.
        thread: the thread.
        at: the id of the checkpoint; None for the start.
        resumed: whether the run resumes after an interrupt.
        first: the first exchange sent after the checkpoint was made, by any thread or task.
    """
    line = set(lineage.line(thread, at) if at is not None else ())
    since = lineage.resumed_at(thread, at) if resumed and at is not None else None
    left: list[int] = []
    gone: list[int] = []
    loose: list[int] = []
    for n, place in asked:
        if place is None:
            loose.append(n)
        elif place[0] == thread:
            (left if place[1] in line else gone).append(n)
    start = min([*left, *([] if first is None else [first])]) if left else None
    for n in loose:  # Sent by no graph: past if it was sent before the first one left.
        if start is not None:
            (left if n >= start else gone).append(n)
    return sorted(left, key=lambda n: (n < (since or 0), n)), gone


def runs_of(tape: Tape, thread: str, at: str) -> list[RecordedRun]:
    """Return the runs of a recorded thread, along the line that begins at a checkpoint.

    At each checkpoint the runs are in order, up to the one that continued from there. Where a
    branch continued differently, the parent's runs are left out.
    """
    known = [_runs(one, thread) for one in generations(tape)]
    found: list[RecordedRun] = []
    for place in lineage_of(tape).line(thread, at):
        went_on = (runs for parents, runs in known if place in parents)
        stayed = (runs for _, runs in known if place in runs)
        for run in next(went_on, next(stayed, {})).get(place, ()):
            found.append(run)
            if run.led_to is not None:
                break
    return found


def revisited_checkpoint(tape: Tape, thread: str) -> str | None:
    """Return the first checkpoint that a recorded program travelled back to, if it did.

    The first run of a branch does not count: the fork started it.
    """
    for one in generations(tape):
        runs = [run for at_place in _runs(one, thread)[1].values() for run in at_place]
        forked = runs[:1] if one.parent is not None else []
        for run in runs:
            if run.travelled and run not in forked:
                return run.place
    return None


def _runs(tape: Tape, thread: str) -> tuple[set[str | None], _ByPlace]:
    """Return the checkpoints that a recording continued from, and the runs from each of them."""
    parents: set[str | None] = set()
    runs: _ByPlace = defaultdict(list)
    latest, last = RecordedRun("", resumed=False), None
    written: dict[str, list[Write]] = defaultdict(list)
    inside: list[Write] = []
    for event in tape.checkpoints:
        match event:
            case Called(call=call, thread=of, found=place, id=named) if (
                of == thread and call in RUNS
            ):
                resumed, travelled = call == "resume", named not in (None, last)
                before = list(written[place or ""])
                latest = RecordedRun(
                    place or "", resumed, travelled, before, before_inside=list(inside)
                )
                runs[latest.place].append(latest)
            case Saved(checkpoint=one, known=False) if (one.thread, one.ns) == (thread, ROOT):
                parents.add(one.parent)
                last = one.id
                stands_for_itself = one.metadata.get("source") not in STANDS_FOR_ITS_PARENT
                if latest.led_to is None and one.parent == latest.place and stands_for_itself:
                    latest.led_to = one
            case Written(writes=writes, known=known):
                own = [write for write in writes if write.thread == thread]
                nested = [write for write in own if write.ns != ROOT]
                own = [write for write in own if write.ns == ROOT]
                for write in own:
                    written[write.id].append(write)
                inside.extend(nested)
                if not known:
                    latest.written.extend(own)
                    latest.written_inside.extend(nested)
    return parents, runs
