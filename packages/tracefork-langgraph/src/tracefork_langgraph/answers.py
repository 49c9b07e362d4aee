"""What a recorded run was given on its way, for a run that stands where that one did."""

from __future__ import annotations

from collections import deque
from itertools import dropwhile
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Command

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import (
    SavedCheckpoint,
    SavedValue,
    SavedWrite,
    checkpoints,
    recorded_checkpoints,
    recorded_resumes,
)
from tracefork_langgraph.checkpoint_history import Checkpoint, planned
from tracefork_langgraph.saver import TapeSaver

_NO_TASK = "00000000-0000-0000-0000-000000000000"
_INPUT = "__start__"
_BY_HAND = (
    "tracefork: the recorded run was {what}. `rerun` cannot; invoke the graph yourself, with what "
    "it was given."
)


class Answers:
    """What a thread was given from one of its checkpoints on: answers, and later turns."""

    def __init__(self, tape: Tape, saver: TapeSaver, place: Checkpoint) -> None:
        self._tape = tape
        self._saver = saver
        self._thread = place.thread
        self._left = deque(recorded_resumes(tape, place.thread, place.id))
        self._recorded = {
            one.id: one
            for one in recorded_checkpoints(tape)
            if (one.thread, one.ns) == (place.thread, "")
        }
        later = list(dropwhile(lambda one: one.id != place.id, self._recorded.values()))[1:]
        self._turns = deque(one for one in later if one.metadata.get("source") == "input")

    def next(self) -> object:
        """Return what the recorded run was given where this one stands, an answer or an input.

        None where this one stands elsewhere, or that one was given nothing more.

        Raises:
            UsageError: that was more than one answer, or a state that was edited.
        """
        store = checkpoints(self._saver.path)
        latest = store.find(self._thread, "")
        if latest is None:
            return None
        if self._left and self._stands_at(latest, self._left[0][0]):
            waits = store.writes(self._thread, "", latest.id)
            if any(one.channel == INTERRUPT for one in waits):
                return self._answer(*self._left.popleft())
        if self._turns and self._stands_at(latest, self._turns[0].parent):
            return self._turn(self._turns.popleft())
        return None

    def _stands_at(self, latest: SavedCheckpoint, recorded: str | None) -> bool:
        """Return whether the same nodes are to run next as in a recorded checkpoint."""
        there = self._recorded.get(recorded) if recorded else None
        return there is not None and set(planned(latest)) == set(planned(there))

    def _answer(self, place: str, written: list[SavedWrite]) -> Command[Any]:
        given = [one for one in written if one.task == _NO_TASK]
        if [one.channel for one in given] != [RESUME]:
            what = (
                f"resumed here (checkpoint {place}) with more than one answer: an update, a goto, "
                "or answers to several interrupts"
            )
            raise UsageError(_BY_HAND.format(what=what))
        return Command(resume=self._made(given[0].value))

    def _turn(self, begun: SavedCheckpoint) -> object:
        before = self._recorded[begun.parent or ""]
        if before.metadata.get("source") == "update":
            what = f"edited by hand (checkpoint {before.id}) before its next turn"
            raise UsageError(_BY_HAND.format(what=what))
        if (given := begun.values.get(_INPUT)) is None:
            what = f"given an input that is not on the tape (checkpoint {begun.id})"
            raise UsageError(_BY_HAND.format(what=what))
        return self._made(given)

    def _made(self, value: SavedValue) -> Any:
        return self._saver.serde.loads_typed((value.tag, self._tape.blob(value.sha)))
