"""What a recorded run was resumed with, for a run that waits where that one did."""

from __future__ import annotations

from collections import deque
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Command

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import checkpoints, recorded_checkpoints, recorded_resumes
from tracefork_langgraph.checkpoint_history import Checkpoint, planned
from tracefork_langgraph.saver import TapeSaver

_NO_TASK = "00000000-0000-0000-0000-000000000000"


class Answers:
    """The answers on a tape, of what a thread was resumed with from one of its checkpoints on."""

    def __init__(self, tape: Tape, saver: TapeSaver, place: Checkpoint) -> None:
        self._tape = tape
        self._saver = saver
        self._thread = place.thread
        self._left = deque(recorded_resumes(tape, place.thread, place.id))
        self._recorded = {
            one.id: set(planned(one))
            for one in recorded_checkpoints(tape)
            if (one.thread, one.ns) == (place.thread, "")
        }

    def next(self) -> Command[Any] | None:
        """Return what the recorded run was resumed with where this one waits.

        None where this one does not wait, or waits where that one was not resumed.

        Raises:
            UsageError: that was more than one answer.
        """
        store = checkpoints(self._saver.path)
        latest = store.find(self._thread, "")
        if latest is None or not self._left:
            return None
        if set(planned(latest)) != self._recorded.get(self._left[0][0]):
            return None
        if all(one.channel != INTERRUPT for one in store.writes(self._thread, "", latest.id)):
            return None
        place, written = self._left.popleft()
        given = [one for one in written if one.task == _NO_TASK]
        if [one.channel for one in given] != [RESUME]:
            raise UsageError(
                f"tracefork: the recorded run was resumed here (checkpoint {place}) with more than "
                "one answer: an update, a goto, or answers to several interrupts. `rerun` cannot; "
                "invoke the graph yourself, with what it was given."
            )
        value = given[0].value
        body = self._tape.blob(value.sha)
        return Command(resume=self._saver.serde.loads_typed((value.tag, body)))
