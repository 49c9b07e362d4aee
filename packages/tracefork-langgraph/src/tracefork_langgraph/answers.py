"""What a recorded run was given on its way, for a run that stands where that one did."""

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
    "tracefork: the recorded run was {what}. `rerun` cannot; invoke the graph yourself, with what "
    "it was given."
)


class Answers:
    """What a thread was given from one of its checkpoints on: answers, inputs, or to go on."""

    def __init__(self, tape: Tape, saver: TapeSaver, place: Checkpoint) -> None:
        self._tape = tape
        self._saver = saver
        self._place = place
        self._left = deque(recorded_runs(tape, place.thread, place.id))
        self._recorded = {
            one.id: one
            for one in recorded_checkpoints(tape)
            if (one.thread, one.ns) == (place.thread, "")
        }

    def __iter__(self) -> Iterator[tuple[object, RunnableConfig]]:
        """Yield what the recorded run was given, and where, while this one stands where that did.

        An answer, the input of a turn, or None, to go on; first at the checkpoint to begin at. What
        is yielded has to be run before the next is asked for.

        Raises:
            UsageError: that was more than answers, a state that was edited, or an earlier state.
            DivergenceError: nothing is forked, and not all was asked that the thread asked.
        """
        self._refuse_travel()
        mark_as_recorded(self._place.thread)
        left, given = self._left, None
        if left and left[0].place == self._place.id and not left[0].before:
            given = self._given(left.popleft())  # Nothing had been run there: it begins with this.
        yield given, self._place.config
        while left:
            run = left.popleft()
            self._refuse_edit(run)
            if not self._stands_at(run):
                if run.travelled or self._goes_on(run):
                    continue  # It is on the way of this run.
                self._say_ended(run)
                break
            if run.travelled and not self._is_halted():
                continue  # Who travelled there asks, fails, or is at an end, by itself.
            yield self._given(run), {"configurable": {"thread_id": self._place.thread}}
        check_asked(self._place.thread)

    @contextmanager
    def failing_as_recorded(self) -> Iterator[None]:
        """Suppress what is raised where the recorded run failed, and was run on all the same."""
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
            what = f"edited by hand (checkpoint {before.id}) before it was run on"
            raise UsageError(_BY_HAND.format(what=what))

    def _say_ended(self, run: RecordedRun) -> None:
        if fork_point() is not None:
            warnings.warn(
                f"`rerun` ends before the recorded run did: that was run on from checkpoint "
                f"{run.place}, and this one stands at another node.",
                stacklevel=4,
            )

    def _stands_at(self, run: RecordedRun) -> bool:
        """Return whether the same nodes are to run next as there."""
        latest, there = self._latest(), self._recorded.get(run.place)
        if latest is None or there is None:
            return False
        return set(planned(latest)) == set(planned(there))

    def _is_halted(self) -> bool:
        """Return whether something is left to run that has not begun."""
        latest = self._latest()
        if latest is None or not planned(latest):
            return False
        written = checkpoints(self._saver.path).writes(self._place.thread, "", latest.id)
        return not _had(INTERRUPT, written) and not _had(ERROR, written)

    def _latest(self) -> SavedCheckpoint | None:
        return checkpoints(self._saver.path).find(self._place.thread, "")

    def _goes_on(self, run: RecordedRun) -> bool:
        """Return whether a run was given nothing at all."""
        return not (run.resumed or _turn(run) or _by_nobody(run.written))

    def _given(self, run: RecordedRun) -> object:
        """Return what to invoke the graph with."""
        if self._goes_on(run):
            return None
        if (begun := _turn(run)) is not None:
            return self._input(begun)
        given = _by_nobody(run.written)
        if not given and (answered := answered_by_id(run, self._made)):
            return self._by_id(answered)
        if not given:
            what = f"resumed here (checkpoint {run.place}) with an answer that is not on the tape"
            raise UsageError(_BY_HAND.format(what=what))
        if [one.channel for one in given] != [RESUME]:
            what = (
                f"resumed here (checkpoint {run.place}) with more than an answer: an update, or a "
                "goto"
            )
            raise UsageError(_BY_HAND.format(what=what))
        return Command(resume=self._made(given[0].value))

    def _by_id(self, answered: dict[str, object]) -> object:
        """Return the answers to what is asked here, by the ids that the questions have here."""
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
    """Return the checkpoint of the input that a run was given; None where it was given none."""
    led_to = run.led_to
    return led_to if led_to is not None and led_to.metadata.get("source") == "input" else None


def _had(channel: str, written: Iterable[SavedWrite]) -> bool:
    return any(one.channel == channel for one in written)


def _by_nobody(written: list[SavedWrite]) -> list[SavedWrite]:
    """Return what no task wrote: a person did."""
    return [one for one in written if one.task == _NO_TASK]
