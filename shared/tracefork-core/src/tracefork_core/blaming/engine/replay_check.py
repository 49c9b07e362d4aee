"""Whether the recorded run fails at all when nothing in it is live."""

from __future__ import annotations

from tracefork_core.blaming.engine.evidence import RECORDED, Asking, Inquiry
from tracefork_core.blaming.engine.intervals import confidence_sequence

_MOST = 40
_BLIND = 15


def reproduces(inquiry: Inquiry) -> Asking[bool | None]:
    """Grade the run with everything held: no live call; return whether it fails.

    One that fails every time goes on, one that never does is done with. In between it is graded
    until it is known to fail more often than not; a coin never is. None where it has no outcome.
    """
    inquiry.enter("replay")
    probe = RECORDED.probe(inquiry.all, "replay")
    most = max(_MOST, inquiry.settings.grades)
    while True:
        tally = yield from inquiry.reach(probe, inquiry.settings.grades)
        if tally.doubtful and tally.tried >= _BLIND:
            return None
        if tally.doubtful:
            yield from inquiry.repeat(probe, inquiry.settings.grades)
            continue
        if not tally.passes or not tally.failures:
            return not tally.passes
        low, high = confidence_sequence(*tally.count, inquiry.settings.level)
        if low > 0.5 or high < 0.5 or tally.tried >= most:
            return low > 0.5
        yield from inquiry.repeat(probe, inquiry.settings.grades)
