"""Return what a recorded team, or agent, had in mind: a new one can go on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tracefork_core import Tape, UsageError

KIND = "autogen states"
"""What the tape calls the states that `states` notes."""


def fork_state(
    tape: str | Path | Tape, *, at: int | None = None, of: str | None = None
) -> dict[str, Any]:
    """Return the state of a recorded team, or agent, at the end of one of its runs.

    Give it to `load_state` of a new team of the same agents, and ask that something else. Secrets
    in it are placeholders.

    Args:
        tape: a recorded run, or a fork of one.
        at: how many runs of the team the state follows; all by default.
        of: the name of the team or the agent; needed only if the run used several.

    Raises:
        UsageError: the tape has no such state.
    """
    if not isinstance(tape, Tape):
        with Tape.open(tape) as opened:
            return fork_state(opened, at=at, of=of)
    states: dict[str, list[str]] = {}
    for read in tape.states:
        if isinstance(read.answer, dict) and read.store.startswith(KIND):
            states.setdefault(read.answer["of"], []).append(read.values[0].sha)
    if not states:
        raise UsageError(
            f"tracefork: {tape.path} has no state of a team or an agent of AutoGen. Record a run "
            "that ends, with tracefork-autogen installed."
        )
    if of is None and len(states) == 1:
        (of,) = states
    if of not in states:
        which = "several teams and agents" if of is None else f"no team or agent {of}"
        raise UsageError(
            f"tracefork: {tape.path} has {which}. Pass of= with one of {', '.join(states)}."
        )
    shas = states[of]
    if at is not None and not 1 <= at <= len(shas):
        raise UsageError(
            f"tracefork: at must be between 1 and {len(shas)} (got {at}): {of} ran {len(shas)} "
            "times on this tape."
        )
    text = msgspec.msgpack.decode(tape.blob(shas[(at or len(shas)) - 1]), type=str)
    state: dict[str, Any] = json.loads(text)
    return state
