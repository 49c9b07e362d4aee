"""States of flows: what an earlier run left is read from the tape, and no replay saves one."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence import FlowPersistence, SQLiteFlowPersistence

import tracefork_core as tracefork


class Shelf(FlowPersistence):
    """A storage of the user's own, which counts what it is asked to do."""

    name: str = "shelf"

    def init_db(self) -> None:
        """Do nothing."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        """Save a state."""
        STATES[flow_uuid] = dict(state_data)

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """Return a state."""
        return STATES.get(flow_uuid)


STATES: dict[str, dict[str, Any]] = {}


@pytest.mark.parametrize("kind", [SQLiteFlowPersistence, Shelf])
def test_a_state_is_read_as_recorded_and_then_as_saved(
    kind: Any, tape: Path, tmp_path: Path
) -> None:
    """In a class of CrewAI's and in one of the user's, whose database is another one by then."""
    STATES.clear()

    def made() -> Any:
        return kind() if kind is Shelf else kind(str(tmp_path / "states.db"))

    def run() -> list[Any]:
        states = made()
        read = [states.load_state("a"), states.load_state("b")]
        states.save_state("b", "method", {"z": 2, "a": [1, (2, 3)]})
        return [*read, states.load_state("b") is not None, made().load_state("a")]

    made().save_state("a", "method", {"z": 1, "a": None})
    with tracefork.record(tape):
        recorded = run()
    assert recorded == [{"z": 1, "a": None}, None, True, {"z": 1, "a": None}]
    for replayed in (tracefork.replay(tape), tracefork.fork(tape, at=0)):
        STATES.clear()
        (tmp_path / "states.db").unlink(missing_ok=True)
        with replayed:
            again = run()
        assert again == recorded
        assert list(again[0]) == ["z", "a"]
        assert STATES == {}
        assert not (tmp_path / "states.db").exists()


def test_a_state_that_a_replay_saved_is_read_as_a_database_returns_it(tape: Path) -> None:
    """As data, which later changes of the state do not reach."""

    def run() -> tuple[Any, Any]:
        states, state = SQLiteFlowPersistence(str(tape.with_name("s.db"))), {"n": (1, 2)}
        states.save_state("a", "method", state)
        state["n"] = (3, 4)
        return states.load_state("a"), states.load_state("none")

    with tracefork.record(tape):
        recorded = run()
    assert recorded == ({"n": [1, 2]}, None)
    with tracefork.replay(tape):
        assert run() == recorded


def test_a_flow_that_waits_for_feedback_is_read_as_recorded(tape: Path, tmp_path: Path) -> None:
    """The recording resumes it, as the database says. A replay finds it waiting all the same."""
    path = str(tmp_path / "states.db")
    context = PendingFeedbackContext(
        flow_id="a", flow_class="shop.Orders", method_name="take", method_output="?", message="Ok?"
    )
    SQLiteFlowPersistence(path).save_pending_feedback("a", context, {"n": 1})

    def run() -> list[Any]:
        states = SQLiteFlowPersistence(path)
        waiting = states.load_pending_feedback("a")
        states.clear_pending_feedback("a")
        read = [waiting, states.load_pending_feedback("a")]
        states.save_pending_feedback("b", context, {"n": 2})
        return [*read, states.load_pending_feedback("b"), states.load_state("b")]

    with tracefork.record(tape):
        recorded = run()
    (state, waiting), cleared, (_, other), saved = recorded
    assert (state, cleared, saved) == ({"n": 1}, None, {"n": 2})
    assert waiting.to_dict() == other.to_dict() == context.to_dict()
    gc.collect()  # Early versions of CrewAI leave closing their databases to it.
    before = Path(path).read_bytes()
    with tracefork.replay(tape):
        assert run() == recorded
    assert Path(path).read_bytes() == before


def test_a_replay_leaves_states_alone_in_its_session_only(tape: Path, tmp_path: Path) -> None:
    """The control: outside it the same object saves again."""
    states = SQLiteFlowPersistence(str(tmp_path / "states.db"))
    with tracefork.record(tape):
        states.save_state("a", "method", {"n": 1})
    with tracefork.replay(tape):
        states.save_state("a", "method", {"n": 2})
    assert states.load_state("a") == {"n": 1}
    states.save_state("a", "method", {"n": 3})
    assert states.load_state("a") == {"n": 3}
