"""Which recorded checkpoint follows which, whatever their ids and step numbers."""

from __future__ import annotations

from tracefork_core.checkpoints.lineage import Lineage, exchanges_after, stand_in
from tracefork_core.tape.checkpoint import (
    Called,
    Checkpoint,
    CheckpointEvent,
    Saved,
    Value,
    Write,
    Written,
)

HEAD = Value("msgpack", "00")
T = "T"


def put(name: str, after: str | None, source: str = "loop") -> Saved:
    """Record that a checkpoint of the thread was put."""
    return Saved(Checkpoint(T, "", name, HEAD, {}, {"source": source}, after))


def wrote(name: str, task: str) -> Written:
    """Record that a task wrote after a checkpoint."""
    return Written([Write(T, "", name, task, 0, "said", HEAD)])


def run(found: str | None, asked: int, call: str = "run", at: str | None = None) -> Called:
    """Record that the thread was run or resumed."""
    return Called(call, T, at, found, asked)


STRAIGHT: list[CheckpointEvent] = [run(None, 0), put("a", None, "input"), put("b", "a")]
STRAIGHT += [put("c", "b"), put("d", "c")]
FORKED: list[CheckpointEvent] = [
    *STRAIGHT,
    run("b", 3, at="b"),
    put("f", "b", "fork"),
    put("g", "f"),
]


def test_a_line_leads_to_the_end_of_the_run() -> None:
    """From each checkpoint on, one follows another."""
    assert Lineage(STRAIGHT).line(T, "b") == ["b", "c", "d"]
    assert Lineage(STRAIGHT).line(T, "d") == ["d"]


def test_the_line_of_a_checkpoint_resumed_twice_is_the_first_run() -> None:
    """The second run began with a fork, which has a line of its own."""
    assert Lineage(FORKED).line(T, "a") == ["a", "b", "c", "d"]
    assert Lineage(FORKED).line(T, "f") == ["f", "g"]


def test_an_update_of_a_waiting_run_is_on_its_line() -> None:
    """The user edited the state of a run that waited, and the run continued from there."""
    events = [*STRAIGHT, put("u", "d", "update"), put("e", "u")]
    assert Lineage(events).line(T, "c") == ["c", "d", "u", "e"]


def test_a_branch_has_its_own_line_after_the_fork() -> None:
    """Its inherited checkpoints lead to the fork, where its own line begins."""
    branch = Lineage([put("f", "b", "fork"), put("g", "f")], STRAIGHT)
    assert branch.line(T, "a") == ["a", "b", "f", "g"]


def test_a_replayed_checkpoint_maps_to_a_recorded_one() -> None:
    """A fork maps to its parent, and each step to the next one on the line."""
    lineage = Lineage(STRAIGHT)
    fork = Checkpoint(T, "", "x", HEAD, {}, {"source": "fork"}, "b")
    first = Checkpoint(T, "", "y", HEAD, {}, {"source": "loop"}, "x")
    recorded = next(one for one in lineage.checkpoints if one.id == "b")
    assert stand_in(lineage, [fork, recorded]) == "b"
    assert stand_in(lineage, [first, fork, recorded]) == "c"
    assert stand_in(lineage, [first, fork]) is None


def test_exchanges_after_a_checkpoint_are_those_of_its_line() -> None:
    """Other threads do not count. Exchanges outside any graph are before or after by position."""
    asked = [(0, None), (1, (T, "a")), (2, (T, "b")), (3, (T, "f")), (4, ("other", "z")), (5, None)]
    assert exchanges_after(Lineage(FORKED), asked, T, "b", resumed=False) == ([2, 5], [1, 3, 0])
    assert exchanges_after(Lineage(FORKED), asked, T, None, resumed=False) == ([], [1, 2, 3])


def test_a_resumed_run_gets_the_answers_of_the_resumed_recording() -> None:
    """The node runs again from its start and asks again, and gets the second answer."""
    events = [*STRAIGHT[:3], run("b", 2, "resume"), put("c", "b")]
    asked = [(0, (T, "a")), (1, (T, "b")), (2, (T, "b")), (3, (T, "c"))]
    assert exchanges_after(Lineage(events), asked, T, "b", resumed=False)[0] == [1, 2, 3]
    assert exchanges_after(Lineage(events), asked, T, "b", resumed=True)[0] == [2, 3, 1]


def test_a_checkpoint_has_only_the_writes_of_its_own_run() -> None:
    """Writes of a later run belong to its future, and would finish its tasks."""
    events = [*STRAIGHT[:3], wrote("b", "first"), run("b", 2, "resume"), wrote("b", "second")]
    shown = [one for one in Lineage(events).put(T) if not isinstance(one, Checkpoint)]
    assert [write.task for writes in shown for write in writes] == ["first"]


def test_checkpoints_read_from_before_the_recording_are_known() -> None:
    """The recorded run began at such a checkpoint, but did not save it."""
    earlier = Saved(Checkpoint(T, "", "old", HEAD, {}), known=True)
    lineage = Lineage([earlier, *STRAIGHT])
    assert list(lineage.known()) == [earlier.checkpoint]
    assert "old" not in [one.id for one in lineage.checkpoints]
