"""Workers of a pool that are older than the session: they cannot join it, so they are named."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from tracefork_core.children import forks
from tracefork_core.egress.guard import watches_here
from tracefork_core.exchange.caller import caller

_NAME = "workers of a process pool from before"
_RUNS = "_tracefork_runs"


def note_start(process: object) -> None:
    """Remember under which sessions a process was started."""
    setattr(process, _RUNS, _open_runs())


def tell_of_older(pool: object, workers: Iterable[object]) -> None:
    """Say, once for each session, that a pool which is given work has workers from before.

    Raises:
        EgressError: programs that nobody watches were ruled out.
    """
    told = vars(pool).setdefault(_RUNS, set[str]())
    runs = _open_runs() - told
    if not runs or all(runs <= getattr(worker, _RUNS, frozenset()) for worker in workers):
        return
    told |= runs
    for watch in watches_here():
        watch.starting(_NAME, guarded=False)
    warnings.warn(
        f"tracefork: {caller() or 'a library'} gives work to a process pool whose workers were "
        "started before the block: what they ask is not on the tape, and live at replay. Make the "
        "pool inside the block.",
        RuntimeWarning,
        stacklevel=1,
    )


def _open_runs() -> frozenset[str]:
    here = forks.descents()
    for descent in here:
        descent.open()  # Behind the door is the name of the run.
    return frozenset(descent.home.token for descent in here)
