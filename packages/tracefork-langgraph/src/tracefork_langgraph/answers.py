"""Give a run the inputs of the recorded run, as long as both are at the same node."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import Command

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import (
    RecordedRun,
    SavedCheckpoint,
    SavedValue,
    SavedWrite,
    check_asked,
    check_session,
    checkpoints,
    fork_point,
    mark_as_recorded,
    recorded_checkpoints,
    recorded_runs,
    revisited_checkpoint,
)
from tracefork_langgraph.answers_by_id import answered_by_id, asked_by_id
from tracefork_langgraph.checkpoint_history import Checkpoint, planned
from tracefork_langgraph.records import loaded
from tracefork_langgraph.saver import TapeSaver

_NO_TASK = "00000000-0000-0000-0000-000000000000"
_INPUT = "__start__"
_BY_HAND = (
    "tracefork: the recorded run was {what}. `rerun` cannot repeat that. Invoke the graph "
    "yourself, with the recorded inputs."
)


class Answers:
    """The inputs that a thread got after one of its checkpoints: answers, new turns, or None."""

    def __init__(self, tape: Tape, saver: TapeSaver, place: Checkpoint) -> None:
        self._tape = tape
        self._saver = saver
        self._place = place
        self._left = deque(recorded_runs(tape, place.thread, place.id))
        self._recorded = {
            checkpoint.id: checkpoint
            for checkpoint in recorded_checkpoints(tape)
            if (checkpoint.thread, checkpoint.ns) == (place.thread, "")
        }

    def __iter__(self) -> Iterator[tuple[object, RunnableConfig]]:
        """Yield the recorded inputs with the config to run them in, while both runs match.

        An input is an answer, the input of a turn, or None to continue. The first one belongs to
        the checkpoint to start at. The caller must run each input before it takes the next.

        Raises:
            UsageError: the recorded run was resumed with more than an answer, had its state edited,
                or went back to an earlier checkpoint.
            DivergenceError: this is a replay, and a recorded request of the thread was not sent.
        """
        self._refuse_travel()
        mark_as_recorded(self._place.thread)
        left, given = self._left, None
        if left and left[0].place == self._place.id and not left[0].before:
            given = self._given(left.popleft())  # Nothing had run there: the first input.
        yield given, self._place.config
        while left:
            run = left.popleft()
            self._refuse_edit(run)
            if not self._stands_at(run):
                if run.travelled or self._goes_on(run):
                    continue  # This run passes that checkpoint without an input.
                self._say_ended(run)
                break
            if run.travelled and not self._is_halted():
                continue  # A run that travelled there waits, fails or ends by itself.
            yield self._given(run), {"configurable": {"thread_id": self._place.thread}}
        check_asked(self._place.thread)

    @contextmanager
    def failing_as_recorded(self) -> Iterator[None]:
        """Suppress an exception where the recorded run failed too and was continued."""
        try:
            yield
        except Exception:
            check_session()
            run = next((run for run in self._left if not run.travelled), None)
            if run is None or not (_had(ERROR, run.before) and self._stands_at(run)):
                raise

    def _refuse_travel(self) -> None:
        if (back := revisited_checkpoint(self._tape, self._place.thread)) is not None:
            raise UsageError(_BY_HAND.format(what=f"sent back to checkpoint {back} by its program"))

    def _refuse_edit(self, run: RecordedRun) -> None:
        before = self._recorded.get(run.place)
        if before is not None and before.metadata.get("source") == "update":
            what = f"edited by hand (checkpoint {before.id}) before it continued"
            raise UsageError(_BY_HAND.format(what=what))

    def _say_ended(self, run: RecordedRun) -> None:
        if fork_point() is not None:
            warnings.warn(
                f"`rerun` ends before the recorded run did. The recorded run continued from "
                f"checkpoint {run.place}, and this run is at another node.",
                stacklevel=4,
            )

    def _stands_at(self, run: RecordedRun) -> bool:
        """Return whether this run is about to run the same nodes as the recorded run was."""
        latest, there = self._latest(), self._recorded.get(run.place)
        if latest is None or there is None:
            return False
        return set(planned(latest)) == set(planned(there))

    def _is_halted(self) -> bool:
        """Return whether nodes are left to run and none of them waits or has failed."""
        latest = self._latest()
        if latest is None or not planned(latest):
            return False
        written = checkpoints(self._saver.path).writes(self._place.thread, "", latest.id)
        return not _had(INTERRUPT, written) and not _had(ERROR, written)

    def _latest(self) -> SavedCheckpoint | None:
        return checkpoints(self._saver.path).find(self._place.thread, "")

    def _goes_on(self, run: RecordedRun) -> bool:
        """Return whether a run was continued without any input."""
        return not (run.resumed or _turn(run) or _by_nobody(run.written))

    def _given(self, run: RecordedRun) -> object:
        """Return the input for the graph that repeats a recorded run."""
        if self._goes_on(run):
            return None
        if (begun := _turn(run)) is not None:
            return self._input(begun)
        given = _by_nobody(run.written)
        if not given and (answered := answered_by_id(run, self._made)):
            return self._by_id(answered)
        if not given:
            what = f"resumed at checkpoint {run.place} with an answer that is not on the tape"
            raise UsageError(_BY_HAND.format(what=what))
        if [write.channel for write in given] != [RESUME]:
            what = (
                f"resumed at checkpoint {run.place} with more than an answer: an update or a goto"
            )
            raise UsageError(_BY_HAND.format(what=what))
        return Command(resume=self._made(given[0].value))

    def _by_id(self, answered: dict[str, object]) -> object:
        """Return a command with the recorded answers, under the interrupts' ids in this run."""
        latest, thread = self._latest(), self._place.thread
        store = checkpoints(self._saver.path)

        def made(value: SavedValue) -> Any:
            return loaded(self._saver.serde, store, thread, value)

        asked = asked_by_id(store, thread, latest.id, made) if latest is not None else {}
        resume = {asked[place]: answer for place, answer in answered.items() if place in asked}
        return Command(resume=resume) if resume else None

    def _input(self, begun: SavedCheckpoint) -> object:
        if (given := begun.values.get(_INPUT)) is None:
            what = f"given an input that is not on the tape (checkpoint {begun.id})"
            raise UsageError(_BY_HAND.format(what=what))
        return self._made(given)

    def _made(self, value: SavedValue) -> Any:
        return self._saver.serde.loads_typed((value.tag, self._tape.blob(value.sha)))


def _turn(run: RecordedRun) -> SavedCheckpoint | None:
    """Return the checkpoint of a run's input; None if it had no input."""
    led_to = run.led_to
    return led_to if led_to is not None and led_to.metadata.get("source") == "input" else None


def _had(channel: str, written: Iterable[SavedWrite]) -> bool:
    return any(write.channel == channel for write in written)


def _by_nobody(written: list[SavedWrite]) -> list[SavedWrite]:
    """Return the writes that no task made: those of a person."""
    return [write for write in written if write.task == _NO_TASK]
