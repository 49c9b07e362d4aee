"""A checkpointer of the user's own outlives the run, and no replay or fork touches it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import tracefork_core as tracefork
from tracefork_core import SurroundingsWarning
from tracefork_langgraph import checkpointers

from ..saver.test_graphs import delta_graph, with_deltas
from . import chatbot
from .chatbot import ASYNC, SYNC
from .conftest import Run

NIGHT = "TRACEFORK_REPEAT" in os.environ
FIRST, SECOND, THIRD = "Where is order 17?", "And where is it now?", "Sure?"


@pytest.fixture
def recorded(record: Callable[..., Run], place_of: Callable[[str], str]) -> Callable[[str], Run]:
    """Record two questions on a thread that has one already, with a kind of checkpointer."""

    def recorded(saver: str) -> Run:
        run = record(chatbot, saver, place_of(saver), FIRST, [SECOND, THIRD])
        assert run.said[:2] == [FIRST, ""]
        return run

    return recorded


@pytest.mark.many_processes
def test_ten_replays_in_other_processes_leave_each_database_as_it_was(
    recorded: Callable[[str], Run], replayed_elsewhere: Callable[[list[Run]], None]
) -> None:
    """Each continues the thread as the recording did, with the same ids of checkpoints."""
    replayed_elsewhere([recorded(saver) for saver in (*SYNC, *ASYNC)])


@pytest.mark.parametrize("saver", ["sqlite", "postgres"])
def test_a_fork_leaves_the_database_as_it_was(recorded: Callable[[str], Run], saver: str) -> None:
    """It continues from what it wrote itself, and its branch replays."""
    run = recorded(saver)
    before = run.content
    with tracefork.fork(run.tape, 0) as branch:
        forked = run()
    assert branch.live == 6  # Four requests and two calls of the tool.
    assert "order 17 was delivered, 11 messages" in forked  # With those that the fork wrote.
    with tracefork.replay(branch.path):
        assert run() == forked
    assert run.content == before


@pytest.mark.many_processes
@pytest.mark.parametrize("saver", ["sqlite", *(["postgres"] if NIGHT else [])])
def test_fifty_forks_of_a_blame_leave_the_database_as_it_was(
    recorded: Callable[[str], Run], saver: str
) -> None:
    """Blame names the lookup of the wrong order. One database by day, the other too at night."""
    run = recorded(saver)
    before = run.content
    forks: list[object] = []

    def agent() -> list[str]:
        forks.append(None)
        return run()

    report = tracefork.blame(run.tape, agent, lambda said: not _is_wrong(said), budget="400 calls")
    assert report.result.verdict.units == (0,)
    assert len(forks) >= 50
    assert run.content == before


def _is_wrong(said: Any) -> bool:
    return any(text.startswith("order 18") for text in said)


@pytest.mark.parametrize("saver", ["sqlite", "async sqlite", "postgres", "memory"])
def test_without_stand_ins_a_replay_diverges_and_writes_into_the_database(
    recorded: Callable[[str], Run], saver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: this is what an adapter without them does."""
    run = recorded(saver)
    monkeypatch.setattr(checkpointers.SAVERS, "apply", lambda _: lambda: None)
    before = run.content
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(run.tape):
        run()
    assert run.content != before


@pytest.mark.parametrize("saver", ["sqlite", "async sqlite"])
def test_database_that_is_gone_is_not_created_again(
    recorded: Callable[[str], Run], saver: str
) -> None:
    """The tape holds what the recording read of it."""
    run = recorded(saver)
    folder = Path(run.arguments[2]).parent
    shutil.rmtree(folder)
    with tracefork.replay(run.tape):
        assert run() == run.said
    assert not folder.exists()


@pytest.mark.parametrize("saver", ["postgres", "async postgres"])
def test_server_that_is_gone_is_not_needed(
    recorded: Callable[[str], Run], saver: str, postgres: Any
) -> None:
    """A replay opens no connection to it, not to create its tables either."""
    run = recorded(saver)
    postgres.psql(f"DROP DATABASE {run.arguments[2].rpartition('/')[2].partition('?')[0]};")
    with tracefork.replay(run.tape):
        assert run() == run.said


def test_work_outside_the_session_uses_the_database(
    recorded: Callable[[str], Run],
) -> None:
    """The thread continues where the recording left it."""
    run = recorded("sqlite")
    before = run.content
    with tracefork.replay(run.tape):
        run()
    said = chatbot.run(*run.arguments[:3], "Thanks.")
    assert [text for text in said if text in (FIRST, SECOND, THIRD)] == [FIRST, SECOND, THIRD]
    assert run.content != before


def test_connection_of_your_own_is_opened_and_not_used(recorded: Callable[[str], Run]) -> None:
    """SQLite creates the file of a connection, and nothing is written into it.

    That the file of the recording is gone is no warning: the run reads nothing of it.
    """
    run = recorded("by hand")
    file = Path(run.arguments[2])
    file.unlink()
    with tracefork.replay(run.tape):
        assert run() == run.said
    assert file.read_bytes() == b""


@dataclass
class Order:
    """A class of the program, in its states."""

    number: int


class Orders(TypedDict, total=False):
    order: Order


class Anything(TypedDict, total=False):
    order: object


def test_type_of_yours_in_an_earlier_state_is_named_by_a_schema(tape: Path) -> None:
    """A tape of a stranger must not create whatever it names."""
    seen: list[object] = []

    def graph_of(state: Any) -> Any:
        builder = StateGraph(state)
        builder.add_node("note", lambda state: seen.append(state["order"])).add_edge(START, "note")
        return builder.compile(checkpointer=InMemorySaver())

    graph = graph_of(Anything)
    graph.invoke({"order": Order(17)}, chatbot.THREAD)
    with tracefork.record(tape):
        graph.invoke({}, chatbot.THREAD)
    with pytest.raises(tracefork.UsageError, match="Order"), tracefork.replay(tape):
        graph.invoke({}, chatbot.THREAD)
    with tracefork.replay(tape):
        graph_of(Orders).invoke({}, chatbot.THREAD)
    assert seen == [Order(17)] * 3


class Number(TypedDict):
    """A state of one number."""

    n: int


def test_a_database_that_the_recording_made_is_no_changed_input(tmp_path: Path, tape: Path) -> None:
    """The tutorials connect it themselves. It is not read, so nothing has to be restored."""
    builder = StateGraph(Number)
    builder.add_node("note", lambda state: state).add_edge(START, "note")
    database = tmp_path / "made.sqlite"

    def run(*, reads: bool = False) -> None:
        with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
            builder.compile(checkpointer=SqliteSaver(connection)).invoke({"n": 1}, chatbot.THREAD)
        if reads:
            (tmp_path / "made.txt").write_text((tmp_path / "made.txt").read_text() + "more")

    (tmp_path / "made.txt").write_text("")
    with tracefork.record(tape):
        run(reads=True)
    with tracefork.replay(tape) as replayed:
        run()
    assert replayed.differences == []
    with pytest.warns(SurroundingsWarning, match=r"made\.txt"), tracefork.replay(tape) as replayed:
        run(reads=True)
    assert len(replayed.differences) == 1  # Another file that the run has changed is named.


@with_deltas
def test_state_that_is_spread_over_earlier_checkpoints_is_on_the_tape(
    tmp_path: Path, tape: Path
) -> None:
    """A `DeltaChannel` is built from what was written after its last snapshot."""
    database = tmp_path / "chat.sqlite"

    def run() -> object:
        with SqliteSaver.from_conn_string(str(database)) as saver:
            graph = delta_graph(saver)
            graph.invoke({"n": 1, "log": ["in"]}, chatbot.THREAD)
            return graph.get_state(chatbot.THREAD).values

    run()
    with tracefork.record(tape):
        recorded = run()
    database.unlink()
    with tracefork.replay(tape):
        assert run() == recorded
    assert not database.exists()
