"""How often a recorded run ran a thread on, and with what."""

from __future__ import annotations

from collections import defaultdict

from tracefork_core.checkpoints.contract import RecordedRun
from tracefork_core.checkpoints.lineage import (
    ROOT,
    RUNS,
    STANDS_FOR_ITS_PARENT,
    generations,
    lineage_of,
)
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import Called, Saved, Write, Written

_ByPlace = dict[str, list[RecordedRun]]


def runs_of(tape: Tape, thread: str, at: str) -> list[RecordedRun]:
    """Return how a recorded thread was run on, on the line that begins at a checkpoint.

    In that order; at each place up to the run that went on from there. Where a branch went its own
    way, what its parent was given is not told.
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


def sent_back(tape: Tape, thread: str) -> str | None:
    """Return the first checkpoint that a recorded program went back to by itself, if it did.

    The first run of a branch is that of the fork that made it.
    """
    for one in generations(tape):
        runs = [run for at_place in _runs(one, thread)[1].values() for run in at_place]
        forked = runs[:1] if one.parent is not None else []
        for run in runs:
            if run.travelled and run not in forked:
                return run.place
    return None


def _runs(tape: Tape, thread: str) -> tuple[set[str | None], _ByPlace]:
    """Return the checkpoints that a run went on from, by itself, and the runs from each of them."""
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
