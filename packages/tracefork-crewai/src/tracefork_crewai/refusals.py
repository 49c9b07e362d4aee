"""Which agents of a recorded run refused to work, because they were at work already.

A co-worker to whom two tasks are given at once takes one of them, whichever comes first. The steps
of the tape tell which it was: those of agents keep the lane they began on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from weakref import WeakKeyDictionary

from tracefork_core import Tape
from tracefork_core.adapters import answering_tape, fork_point, lane_here

BUSY = "Executor is already running"
LANE = "lane"


class _Recorded:
    """What agents said on each lane of a tape, in that order: nothing where they went to work."""

    def __init__(self, tape: Tape, before: int | None) -> None:
        self.said: dict[object, list[str]] = defaultdict(list)
        self.asked: Counter[str] = Counter()
        for step in tape.steps:
            if step.kind == "agent" and (before is None or step.started < before):
                error = step.error or ""
                self.said[step.detail.get(LANE)].append(error if error.startswith(BUSY) else "")


_recorded: WeakKeyDictionary[Tape, _Recorded] = WeakKeyDictionary()


def recorded_refusal() -> str | None:
    """Return what the agent that begins here said when this was recorded, to be asked once of each.

    Nothing ("") where it went to work, and None where that is not known: nothing is replayed, or
    this is past the point of a fork.
    """
    tape, lane = answering_tape(), lane_here()
    if tape is None or lane is None:
        return None
    recorded = _recorded.get(tape)
    if recorded is None:
        recorded = _recorded.setdefault(tape, _Recorded(tape, _forked_at(tape)))
    nth, said = recorded.asked[lane.name], recorded.said.get(lane.name, [])
    recorded.asked[lane.name] += 1
    return said[nth] if nth < len(said) else None


def _forked_at(tape: Tape) -> int | None:
    """Return the time of the exchange that this session forks at: what began later goes anew."""
    at = fork_point()
    exchanges = tape.exchanges if at is not None else []
    return exchanges[at].aside.started if at is not None and at < len(exchanges) else None
