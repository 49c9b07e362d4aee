"""Run an edited agent again: what it asks as before is answered from the tape, the rest is live."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tracefork_core.chance.guard.boundary import Mode as Boundary
from tracefork_core.run.fork import BeforeLive, Forking, ForkScope, Options
from tracefork_core.run.scope import Covers, Scope, Switches
from tracefork_core.session.side_effects import Writes


def rerun(
    path: str | Path,
    *,
    before_live: BeforeLive | None = None,
    writes: Writes = "refuse",
    reads: Collection[str] = (),
    calls: int | None = None,
    rerun_tools: bool = False,
    to: str | Path | None = None,
    overwrite: bool = False,
    ambient: bool = True,
    clock: bool = True,
    entropy: bool = True,
    subprocesses: bool = True,
    mask: Sequence[str] = (),
    boundary: Boundary | None = None,
    scope: Covers = "context",
) -> Scope[Forking]:
    """Run what is inside again after an edit, and pay only for what it asks differently.

    A request that equals a recorded one gets the recorded answer: the next equal one of its lane,
    or else one of any lane, each once. Any other request is live. All of it goes onto a branch, a
    tape beside the first one, which replays by itself. The clock and random values continue as
    recorded.

    Args:
        path: the tape of the run before the edit.
        before_live: called before each live call with its request, and with the recorded exchange
            whose place it takes, if there is one. Raise a `UsageError` in it to stop.
        writes: what happens to a live call that may have side effects, as for `fork`.
        reads: as for `fork`.
        calls: the block is over before it makes more live calls than this; 0 asks for nothing.
        rerun_tools: as for `fork`.
        to: where the branch goes, beside the tape; `run.rerun.tape` by default.
        overwrite: replace a tape of that name.
        ambient: as for `record`.
        clock: as for `record`.
        entropy: as for `record`.
        subprocesses: as for `record`.
        mask: as for `replay`.
        boundary: as for `record`.
        scope: as for `record`.

    Raises:
        UsageError: there is no such tape, the branch exists, or a tool that is not on the tape
            would run again.
        WriteError: a live call may have a side effect.
        TapeError: the tape is corrupt, or the branch cannot be written.
    """
    options = Options(
        at=0,
        changes={},
        hold=(),
        writes=writes,
        reads=reads,
        until=None,
        calls=calls,
        tail=None,
        onwards=False,
        redraw=False,
        reuse=True,
        rerun_tools=rerun_tools,
        to=None if to is None else Path(to),
        overwrite=overwrite,
        match=(),
        mask=mask,
        is_rerun=True,
        before_live=before_live,
    )
    return ForkScope(
        Path(path), Switches(ambient, clock, entropy, subprocesses, boundary, scope), options
    )
