"""A graph is forked at a checkpoint: later nodes run live, earlier ones do not run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START as BEGIN
from langgraph.graph import MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

import tracefork_core as tracefork
from tracefork_langgraph import (
    TapeSaver,
    afork,
    attach,
    fork,
    history,
    rerun,
    resume,
)
from tracefork_testkit import ProviderServer

from .graphs import State, five, threaded
from .program import START, THREAD, Program, Shape

EDIT = {"said": ["edited"]}


@pytest.fixture
def recorded(program: Callable[[Shape], Program]) -> tuple[Program, Any]:
    """A recorded run of five nodes; the provider still runs."""
    made = program(five)
    with tracefork.record(made.tape):
        output = made.run(START)
    return made, output


def _forked(program: Program, at: str, **options: Any) -> Any:
    program.ran.clear()
    if program.loop is not None:
        return program.loop.run(afork(program.tape, program.graph, at, **options))
    return fork(program.tape, program.graph, at, **options)


def test_fork_runs_only_the_nodes_after_its_checkpoint(
    recorded: tuple[Program, Any], server: ProviderServer
) -> None:
    """Three nodes send live requests; the two before them do not even run."""
    program, output = recorded
    asked, before = len(server.requests), program.tape.read_bytes()
    branch = _forked(program, "n3")
    assert program.ran == ["n3", "n4", "n5"]
    assert (branch.live, branch.replayed, len(server.requests) - asked) == (3, 0, 3)
    assert branch.output["said"][:2] == output["said"][:2]
    assert branch.output["said"][2:] != output["said"][2:]
    assert program.tape.read_bytes() == before


def test_branch_replays_and_can_be_resumed(
    recorded: tuple[Program, Any], server: ProviderServer
) -> None:
    """It contains its own exchanges, and continues from its checkpoints like a recorded run."""
    program, _ = recorded
    branch = _forked(program, "n3", update=EDIT)
    server.stop()
    third = next(one for one in history(program.tape) if one.nodes == ("n3",))
    with tracefork.replay(branch.path) as run:
        edited = program.graph.update_state(third.config, EDIT)
        assert program.run(None, edited) == branch.output
    assert run.digest == run.tape.digest
    assert [one.source for one in history(branch.path)].count("update") == 1
    assert [one.exchanges for one in history(branch.path)][-4:] == [(2,), (3,), (4,), ()]
    assert resume(branch.path, program.graph, "n5") == branch.output
    with (
        pytest.raises(tracefork.DivergenceError, match="never asked"),
        tracefork.replay(branch.path),
    ):
        program.graph.update_state(third.config, EDIT)  # The live part of the branch is left over.


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_branch_of_a_branch_resumes_with_its_own_answers(
    recorded: tuple[Program, Any], server: ProviderServer
) -> None:
    """Also from a checkpoint that it shares with its parents."""
    program, _ = recorded
    first = _forked(program, "n2")
    second = fork(first.path, program.graph, "n4")
    third = fork(second.path, program.graph, "n5", update=EDIT)
    server.stop()
    assert third.output["said"][:4] == second.output["said"][:4]
    assert second.output["said"][:3] == first.output["said"][:3]
    for branch, at in ((first, "n1"), (first, "n3"), (second, "n1"), (second, "n5")):
        assert resume(branch.path, program.graph, at) == branch.output
    edited = next(one for one in history(third.path) if one.source == "update")
    assert resume(third.path, program.graph, edited.id) == third.output


def test_a_run_is_forked_at_a_checkpoint_by_its_id(recorded: tuple[Program, Any]) -> None:
    """The program runs again, answered from the tape up to the checkpoint."""
    program, output = recorded
    fourth = next(one for one in history(program.tape) if one.nodes == ("n4",))
    with tracefork.fork(program.tape, fourth.id[-12:]) as branch:
        forked = program.run(START)
    assert (branch.at, branch.replayed, branch.live) == (3, 3, 2)
    assert forked["said"][:3] == output["said"][:3]


def _chat(model: Any, ran: list[str]) -> StateGraph[MessagesState]:
    """A chat that appends messages with ids that LangGraph draws."""

    def chat(state: MessagesState) -> dict[str, Any]:
        ran.append("chat")
        return {"messages": [model.invoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("chat", chat).add_edge(BEGIN, "chat")


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_message_added_by_an_edit_replaces_no_other(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """The first ids of the run are in the state already, so an edit must draw new ones."""
    made = program(_chat)
    with tracefork.record(made.tape):
        made.run({"messages": [("user", "first")]})
    edit = {"messages": [("user", "second")]}
    branch = fork(made.tape, made.graph, "chat", update=edit)
    assert _said(branch.output)[:2] == ["first", "second"]
    ids = [one.id for one in branch.output["messages"]]
    assert len(set(ids)) == 3
    assert b"first" in server.requests[-1].body
    assert b"second" in server.requests[-1].body
    place = next(one for one in history(made.tape) if one.nodes == ("chat",))
    server.stop()
    with tracefork.replay(branch.path) as run:
        edited = made.graph.update_state(place.config, edit)
        again = made.run(None, edited)
        assert _said(again) == _said(branch.output)
        # The id of an answer is not drawn in Python: see limits.
        assert [one.id for one in again["messages"][:2]] == ids[:2]
    assert run.digest == run.tape.digest
    with tracefork.replay(made.tape):
        made.graph.update_state(place.config, edit)
        state = made.graph.get_state(THREAD)
        assert _said(state.values) == ["first", "second"]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
@pytest.mark.parametrize("at", ["n1", "n3", "n5"])
def test_fork_of_a_later_thread_skips_the_earlier_one(
    program: Callable[[Shape], Program], server: ProviderServer, at: str
) -> None:
    """Neither the fork nor its branch sends the requests of the earlier thread again."""
    made = program(five)
    configs = [{"configurable": {"thread_id": name}} for name in ("one", "two")]
    with tracefork.record(made.tape):
        for config in configs:
            made.graph.invoke(START, config)
    asked = len(server.requests)
    branch = fork(made.tape, made.graph, at, thread="two")
    after = 6 - int(at[1:])
    assert (branch.live, len(server.requests) - asked) == (after, after)
    server.stop()
    assert resume(branch.path, made.graph, at, thread="two") == branch.output
    place = next(one for one in history(made.tape, thread="two") if one.nodes == (at,))
    with tracefork.replay(branch.path) as run:
        assert made.run(None, place.config) == branch.output
    assert run.digest == run.tape.digest
    assert run.tape.branch is not None
    assert run.tape.branch.skipped == list(range(5))


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_node_with_its_own_threads_can_be_resumed_and_forked(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """These threads do not know their checkpoint, so the time of their requests decides."""
    made = program(threaded)
    with tracefork.record(made.tape):
        output = made.run(START)
    for at, left in (("first", 4), ("pool", 3), ("last", 1)):
        assert resume(made.tape, made.graph, at) == output
        asked = len(server.requests)
        branch = fork(made.tape, made.graph, at)
        assert (branch.live, len(server.requests) - asked) == (left, left)
        assert resume(branch.path, made.graph, at) == branch.output


def _said(state: Any) -> list[str]:
    return [one.content for one in state["messages"]]


@dataclass
class Asking:
    """The context of a graph's run."""

    who: str


def test_fork_takes_a_context(
    model: Callable[..., Any], tape: Path, loop: asyncio.Runner | None, server: ProviderServer
) -> None:
    """The fork's context replaces that of the recorded run."""
    asked = model(max_retries=0)

    def node(_: State, runtime: Runtime[Asking]) -> dict[str, Any]:
        return {"said": [runtime.context.who, asked.invoke("the same prompt").content]}

    builder = StateGraph(State, context_schema=Asking).add_node("node", node)
    graph = builder.add_edge(BEGIN, "node").compile(checkpointer=TapeSaver(tape))
    made = Program(attach(graph), tape, [], loop)
    with tracefork.record(tape):
        made.run(START, context=Asking("Ann"))
    branch = _forked(made, "node", context=Asking("Bo"))
    assert (branch.output["said"][0], branch.live) == ("Bo", 1)


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_branch_without_live_nodes_can_be_resumed(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """Continuing from an edit at the end of a run adds no checkpoint."""
    made = program(five)
    with tracefork.record(made.tape):
        made.run(START)
        made.graph.update_state(THREAD, EDIT, "n5")
    last = history(made.tape)[-1]
    branch = fork(made.tape, made.graph, at=last.id)
    assert (branch.live, branch.output["said"][-1]) == (0, "edited")
    assert history(branch.path)[-1].id == last.id
    assert resume(branch.path, made.graph, at=last.id) == branch.output


class _Turns:
    """Make the copies of a node send one after another, in a set order."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self.order: list[int] = []

    def ask(self, copy: int, asked: Callable[[], str]) -> str:
        with self._moved:
            self._moved.wait_for(lambda: self.order[0] == copy)
            said = asked()
            self.order.pop(0)
            self._moved.notify_all()
            return said


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_a_fan_out_that_is_forked_in_its_middle_replays(
    program: Callable[[Shape], Program], loop: None
) -> None:
    """Its first copies keep the recorded answers, the others get new ones.

    The first copies ran from the recorded checkpoint, the others from that of the fork.
    """
    turns = _Turns()

    def copies(model: Any, _: Any) -> StateGraph[State]:
        def copy(state: Any) -> dict[str, Any]:
            said = turns.ask(state["i"], lambda: str(model.invoke("the same prompt").content))
            return {"said": [f"{state['i']}: {said}"]}

        sends = [Send("copy", {"i": i}) for i in range(4)]
        builder = StateGraph(State).add_node("copy", copy)
        return builder.add_conditional_edges(BEGIN, lambda _: sends, ["copy"])

    made = program(copies)
    turns.order = [3, 2, 1, 0]
    with tracefork.record(made.tape):
        recorded = made.run(START)["said"]
    turns.order = [3, 2, 1, 0]
    with tracefork.fork(made.tape, 2) as branch:
        forked = rerun(made.graph)["said"]
    assert [now == then for now, then in zip(forked, recorded, strict=True)] == [False] * 2 + [
        True
    ] * 2
    turns.order = [0, 1, 2, 3]
    with tracefork.replay(branch.path):
        assert rerun(made.graph)["said"] == forked
