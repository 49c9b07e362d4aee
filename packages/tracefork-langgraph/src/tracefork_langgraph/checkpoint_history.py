"""List the checkpoints on a tape: the nodes that ran from each, and the exchanges they made.

This reads only the tape. It needs no graph, and deserializes no state.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import SavedCheckpoint, recorded_checkpoints

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_NEXT = "branch:to:"
_NTH = re.compile(r"(.+):(\d+)")

At = str | int
"""Names a checkpoint: its id or the end of it, its step, or a node that ran from it (`name:2`: its
second run)."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint of a recorded graph.

    Attributes:
        id: as in `configurable["checkpoint_id"]`.
        step: the superstep it ends, -1 for the input.
        source: "input", "loop", "update" or "fork".
        nodes: the nodes that ran from it, in the order of their first requests; nodes without
            requests come last.
        exchanges: the numbers of the exchanges that these nodes made.
        made: when it was created.
    """

    thread: str
    id: str
    step: int
    source: str
    nodes: tuple[str, ...]
    exchanges: tuple[int, ...]
    made: datetime

    @property
    def config(self) -> RunnableConfig:
        """The config to run, inspect or update a graph at this checkpoint."""
        place = {"thread_id": self.thread, "checkpoint_ns": "", "checkpoint_id": self.id}
        return {"configurable": place}


def history(tape: str | Path, *, thread: str | None = None) -> list[Checkpoint]:
    """Return the checkpoints that a recorded run saved, in the order they were created.

    Args:
        tape: the tape of the run.
        thread: return only the checkpoints of this thread.

    Raises:
        UsageError: there is no such tape.
        TapeError: the tape is corrupt.
    """
    with Tape.open(tape) as opened:
        return checkpoints_on(opened, thread=thread)


def checkpoints_on(tape: Tape, *, thread: str | None = None) -> list[Checkpoint]:
    """Return the checkpoints on an open tape, as `history` does."""
    # Keyed by thread too: a copy of a thread has the ids of the original.
    asked: dict[tuple[str, str], list[int]] = defaultdict(list)
    names: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for exchange in tape.exchanges:
        if exchange.checkpoint is not None:
            place = exchange.checkpoint
            asked[place].append(exchange.n)
            outermost = (step.name for step in exchange.steps if step.kind == "node")
            names[place] |= dict.fromkeys(islice(outermost, 1))
    outermost_saved = [saved for saved in recorded_checkpoints(tape) if saved.ns == ""]
    return [
        _described(saved, names[saved.thread, saved.id], asked[saved.thread, saved.id])
        for saved in outermost_saved
        if thread is None or saved.thread == thread
    ]


def checkpoint_at(found: list[Checkpoint], at: At) -> Checkpoint:
    """Return the checkpoint that `at` names.

    Raises:
        UsageError: no checkpoint matches, or several do.
    """
    if isinstance(at, int):
        fitting = [one for one in found if one.step == at]
    else:
        fitting = [one for one in found if one.id == at] or list(_ran(found, at))
        fitting = fitting or [one for one in found if len(at) >= 4 and one.id.endswith(at)]
    if len(fitting) == 1 or (fitting and isinstance(at, str)):
        return fitting[0]
    nodes = ", ".join(dict.fromkeys(name for one in found for name in one.nodes)) or "none"
    what = "no checkpoint" if not fitting else f"{len(fitting)} checkpoints"
    raise UsageError(
        f"tracefork: the run has {what} at {at!r}. Name a node that ran ({nodes}; name:2 means the "
        "second time), a step of one thread, or an id. `tracefork show --checkpoints` lists them."
    )


def planned(one: SavedCheckpoint) -> list[str]:
    """Return the nodes that are to run from a checkpoint, except the targets of `Send`."""
    return [name.removeprefix(_NEXT) for name in one.values if name.startswith(_NEXT)]


def _ran(found: Iterable[Checkpoint], name: str) -> Iterator[Checkpoint]:
    """Yield the checkpoint that a node ran from; with `name:2`, the one of its second run."""
    nth = _NTH.fullmatch(name)
    ran = [one for one in found if name in one.nodes]
    if not ran and nth is not None:
        ran = [one for one in found if nth[1] in one.nodes][int(nth[2]) - 1 :]
    yield from ran[:1]


def _described(one: SavedCheckpoint, asked: Iterable[str], n: list[int]) -> Checkpoint:
    return Checkpoint(
        thread=one.thread,
        id=one.id,
        step=_number(one.metadata.get("step")),
        source=str(one.metadata.get("source", "")),
        nodes=tuple(dict.fromkeys([*asked, *planned(one)])),
        exchanges=tuple(n),
        made=datetime.fromtimestamp(one.made / 1e9, UTC),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else -2
