"""What a recorded run was resumed with."""

from __future__ import annotations

from collections import defaultdict

from tracefork_core.checkpoints.lineage import ROOT, RUNS, generations, lineage_of
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import Called, Saved, Write, Written

Resumed = dict[str, list[list[Write]]]
"""By the checkpoint that a thread was resumed from: what was written then, each time."""


def resumes_of(tape: Tape, thread: str, at: str) -> list[tuple[str, list[Write]]]:
    """Return the checkpoints that a recorded run was resumed from, on the line that begins at one.

    In that order, each with what was written to the outermost graph from then on, until the thread
    was run again. Where a branch went its own way, what its parent was given is not told.
    """
    known = [_resumed(one, thread) for one in generations(tape)]
    found: list[tuple[str, list[Write]]] = []
    for place in lineage_of(tape).line(thread, at):
        went_on = (resumed for parents, resumed in known if place in parents)
        stayed = (resumed for _, resumed in known if place in resumed)
        found += [(place, one) for one in next(went_on, next(stayed, {})).get(place, ())]
    return found


def _resumed(tape: Tape, thread: str) -> tuple[set[str | None], Resumed]:
    """Return the checkpoints that a run went on from, by itself, and where it was resumed."""
    parents: set[str | None] = set()
    resumed: Resumed = defaultdict(list)
    written: list[Write] = []
    for event in tape.checkpoints:
        match event:
            case Called(call=call, thread=of, found=place) if of == thread and call in RUNS:
                written = []
                if call == "resume" and place is not None:
                    resumed[place].append(written)
            case Saved(checkpoint=one, known=False) if (one.thread, one.ns) == (thread, ROOT):
                parents.add(one.parent)
            case Written(writes=writes, known=False):
                written.extend(one for one in writes if (one.thread, one.ns) == (thread, ROOT))
    return parents, resumed
