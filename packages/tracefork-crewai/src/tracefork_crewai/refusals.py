"""Find the agents of a recorded run that refused to work because they were busy.

If a co-worker gets two tasks at once, it takes the one that arrives first and refuses the other.
The tape's steps tell which: each agent step keeps the lane that it began on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from weakref import WeakKeyDictionary

from tracefork_core import Tape
from tracefork_core.adapters import answering_tape, fork_point, lane_here

BUSY = "Executor is already running"
LANE = "lane"


class _Recorded:
    """The refusals of agents on each lane of a tape, in order; "" if an agent went to work."""

    def __init__(self, tape: Tape, before: int | None) -> None:
        self.said: dict[object, list[str]] = defaultdict(list)
        self.asked: Counter[str] = Counter()
        for step in tape.steps:
            if step.kind == "agent" and (before is None or step.started < before):
                error = step.error or ""
                self.said[step.detail.get(LANE)].append(error if error.startswith(BUSY) else "")


_recorded: WeakKeyDictionary[Tape, _Recorded] = WeakKeyDictionary()


def recorded_refusal() -> str | None:
    """Return the recorded refusal of the agent that begins here. Call it once for each agent.

    "" means that the agent went to work. None means not known: nothing is replayed, or this is past
    the point of a fork.
    """
    tape, lane = answering_tape(), lane_here()
    if tape is None or lane is None:
        return None
    recorded = _recorded.get(tape)
    if recorded is None:
        recorded = _recorded.setdefault(tape, _Recorded(tape, _forked_at(tape)))
    nth, refusals = recorded.asked[lane.name], recorded.said.get(lane.name, [])
    recorded.asked[lane.name] += 1
    return refusals[nth] if nth < len(refusals) else None


def _forked_at(tape: Tape) -> int | None:
    """Return the time of the exchange that this session forks at. Later agents run live."""
    at = fork_point()
    exchanges = tape.exchanges if at is not None else []
    return exchanges[at].aside.started if at is not None and at < len(exchanges) else None
