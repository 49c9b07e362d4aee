"""`rerun` runs a recorded graph again, past the questions that people answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START as BEGIN
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from openai import APIConnectionError, InternalServerError

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, arerun, attach, history, rerun
from tracefork_testkit import ProviderServer

from .graphs import Node, Ran, State, approval, five
from .program import START, THREAD, Program, Shape

Recorded = Callable[..., tuple[Program, Any]]


def _again(program: Program, **options: Any) -> Any:
    program.ran.clear()
    if program.loop is not None:
        return program.loop.run(arerun(program.graph, **options))
    return rerun(program.graph, **options)


def _replays(program: Program, output: Any, **options: Any) -> None:
    """Check that a rerun has the output and the digest of the recorded run."""
    with tracefork.replay(program.tape) as run:
        assert _again(program, **options) == output
    assert run.digest == run.tape.digest


def _answered(program: Program) -> Any:
    program.run(START)
    return program.run(Command(resume="yes"))


def _answered_twice(program: Program) -> Any:
    program.run(START)
    program.run(Command(resume="yes"))
    return program.run(Command(resume={"size": 2}))


def _twice(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that asks a person two things, and a node after it."""
    ask = Node("ask", model, ran)

    def asking(_: State) -> dict[str, Any]:
        said = [interrupt("sure?"), str(interrupt("how many?"))]
        return {"said": [*said, *ask({})["said"]]}

    builder = StateGraph(State).add_node("ask", asking)
    builder.add_node("act", Node("act", model, ran))
    return builder.add_edge(BEGIN, "ask").add_edge("ask", "act")


def test_rerun_resumes_with_the_recorded_answer(recorded: Recorded) -> None:
    """The graph asks again, and the tape answers in the place of the person."""
    program, output = recorded(approval, _answered)
    _replays(program, output)
    assert program.ran == ["ask", "ask", "act"]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_a_node_that_asks_two_things_gets_both_answers(recorded: Recorded) -> None:
    """One at a time, each as it was given."""
    program, output = recorded(_twice, _answered_twice)
    assert output["said"][:2] == ["yes", "{'size': 2}"]
    with tracefork.replay(program.tape):
        assert _again(program) == output


def test_fork_continues_past_an_interrupt(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """From every fork point; its branch replays the same way."""
    made = program(approval)
    with tracefork.record(made.tape):
        _answered(made)
    for at, ran in ((0, ["ask", "ask", "act"]), (2, ["act"])):
        with tracefork.fork(made.tape, at) as branch:
            output = _again(made)
        assert (made.ran, branch.live) == (ran, len(ran))
        assert "yes" in output["said"]
        with tracefork.replay(branch.path):
            assert _again(made) == output
        assert "__interrupt__" not in output


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_stops_at_an_unanswered_interrupt(recorded: Recorded) -> None:
    """The tape has no answer to give, so the question stays open."""
    program, output = recorded(approval)
    with tracefork.replay(program.tape):
        again = _again(program)
    assert [one.value for one in again["__interrupt__"]] == [
        one.value for one in output["__interrupt__"]
    ]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_refuses_a_resume_with_an_update(recorded: Recorded) -> None:
    """The tape does not tell what else the run was given."""

    def changed(program: Program) -> Any:
        program.run(START)
        return program.run(Command(resume="yes", update={"said": ["more"]}))

    program, _ = recorded(approval, changed)
    with (
        pytest.raises(tracefork.UsageError, match="more than an answer"),
        tracefork.replay(program.tape),
    ):
        _again(program)


def _three_turns(program: Program) -> Any:
    program.run(START)
    program.run(Command(resume="yes"))
    program.run({"said": ["second"]})
    program.run(Command(resume="no"))
    return program.run({"said": ["third"]})


def test_rerun_repeats_each_turn_of_a_thread(recorded: Recorded) -> None:
    """Inputs and answers are on the tape; the last question stays open."""
    program, output = recorded(approval, _three_turns)
    with tracefork.replay(program.tape) as run:
        again = _again(program)
    assert again["said"] == output["said"]
    assert [one.value for one in again["__interrupt__"]] == [
        one.value for one in output["__interrupt__"]
    ]
    assert run.digest == run.tape.digest


def _left_unanswered(program: Program) -> Any:
    program.run(START)
    program.run({"said": ["something else"]})
    program.run(Command(resume="yes"))
    program.run({"said": ["more"]})
    return program.run(Command(resume="no"))


def _answered_too_often(program: Program) -> Any:
    program.run(START)
    for _ in range(2):
        program.run(Command(resume="yes"))
    program.run({"said": ["more"]})
    return program.run(Command(resume="no"))


@pytest.mark.parametrize("does", [_left_unanswered, _answered_too_often])
@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_repeats_inputs_in_the_recorded_order(
    does: Callable[[Program], Any],
    program: Callable[[Shape], Program],
    server: ProviderServer,
    loop: None,
) -> None:
    """Also if a question was left for another input, or an answer was given without a question."""
    made = program(approval)
    with tracefork.record(made.tape):
        output = does(made)
    with tracefork.Tape.open(made.tape) as tape:
        asked = len(tape.exchanges)
    for at in range(asked):
        with tracefork.fork(made.tape, at) as branch:
            forked = _again(made)
        assert len(forked["said"]) == len(output["said"])
        with tracefork.replay(branch.path):
            assert _again(made) == forked
    server.stop()
    _replays(made, output)


HALTS = {"interrupt_before": ["n3", "n5"]}


def _halted(program: Program) -> Any:
    program.run(START, **HALTS)
    program.run(Command(resume=True), **HALTS)
    program.run(None, **HALTS)
    program.run({"said": ["second"]}, **HALTS)
    return program.run(None, **HALTS)


def test_rerun_continues_a_halted_graph_as_often_as_recorded(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """The second turn stays halted before its last node."""
    made = program(five)
    with tracefork.record(made.tape):
        output = _halted(made)
    for at in (0, 2, 5):
        with tracefork.fork(made.tape, at) as branch:
            forked = _again(made, **HALTS)
        assert branch.live == 9 - at
        with tracefork.replay(branch.path):
            assert _again(made, **HALTS) == forked
    server.stop()
    _replays(made, output, **HALTS)


def _failed(program: Program) -> Any:
    with pytest.raises(InternalServerError):
        program.run(START)
    program.run(None)
    return program.run({"said": ["second"]})


def _unlucky(model: Any, ran: Ran) -> StateGraph[State]:
    """A graph whose third node fails once with an error of the provider."""
    return five(model, ran, n3="@fail 500")


def test_rerun_continues_after_a_recorded_failure(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """It suppresses the error that the recorded program caught; any other error is raised."""
    made = program(_unlucky)
    with tracefork.record(made.tape):
        output = _failed(made)
    for at, live in ((1, 9), (2, 8), (3, 8)):
        with tracefork.fork(made.tape, at) as branch:
            forked = _again(made)
        assert len(forked["said"]) == len(output["said"])
        assert branch.live == live
        with tracefork.replay(branch.path):
            assert _again(made) == forked
    server.stop()
    _replays(made, output)
    with pytest.raises(APIConnectionError), tracefork.fork(made.tape, 0):
        _again(made)


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_warns_if_a_fork_is_at_another_node(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """A tape does not record options of a call besides its input: here, where to halt."""
    made = program(five)
    with tracefork.record(made.tape):
        made.run(START, interrupt_before=["n3"])
        made.run({"said": ["second"]})
    with (
        pytest.warns(UserWarning, match="`rerun` ends before"),
        tracefork.fork(made.tape, 0) as branch,
    ):
        assert "second" not in _again(made)["said"]
    assert branch.live == 5


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_reports_missing_calls(recorded: Recorded) -> None:
    """Run again from the start, a thread has to send all its recorded requests."""
    program, _ = recorded(five, _halted)
    with (
        pytest.raises(tracefork.DivergenceError, match="6 recorded exchanges were never asked"),
        tracefork.replay(program.tape),
    ):
        _again(program, interrupt_before=["n3", "n4", "n5"])


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_later_turns_continue_from_the_state_of_the_fork(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """After a fork in the first turn, the second turn adds to the changed state."""
    made = program(five)
    with tracefork.record(made.tape):
        made.run(START)
        made.run({"said": ["second"]})
    with tracefork.fork(made.tape, 4, "n5 said otherwise") as branch:
        output = _again(made)
    assert (made.ran, branch.live) == (["n5", "n1", "n2", "n3", "n4", "n5"], 5)
    assert output["said"].index("n5: n5 said otherwise") < output["said"].index("second")
    with tracefork.replay(branch.path):
        assert _again(made) == output


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_refuses_a_state_edited_between_turns(recorded: Recorded) -> None:
    """The edit is on the tape, but not the arguments that made it."""

    def edited(program: Program) -> Any:
        program.run(START)
        program.graph.update_state(THREAD, {"said": ["edited"]}, "n5")
        return program.run({"said": ["second"]})

    program, _ = recorded(five, edited)
    with (
        pytest.raises(tracefork.UsageError, match="edited by hand"),
        tracefork.replay(program.tape),
    ):
        _again(program)


def _edited_while_it_waits(program: Program) -> Any:
    program.run(START)
    program.graph.update_state(THREAD, {"said": ["edited"]}, "ask")
    return program.run(None)


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_refuses_a_state_edited_during_an_interrupt(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """In a replay, and in a fork, which would end at the edit."""
    made = program(approval)
    with tracefork.record(made.tape):
        _edited_while_it_waits(made)
    for again in (tracefork.replay(made.tape), tracefork.fork(made.tape, 0)):
        with pytest.raises(tracefork.UsageError, match="edited by hand"), again:
            _again(made)


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_refuses_a_program_that_travelled(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """The tape does not tell which way is meant. Naming the latest checkpoint is allowed."""

    def travelled(place: int) -> None:
        made.run(START)
        made.run({"said": ["second"]}, made.states()[place].config)
        made.run({"said": ["third"]})

    made = program(five)
    with tracefork.record(made.tape):
        travelled(3)
    for again in (tracefork.replay(made.tape), tracefork.fork(made.tape, 0)):
        with pytest.raises(tracefork.UsageError, match="sent back"), again:
            _again(made)
    made.tape.unlink()
    with tracefork.record(made.tape):
        travelled(-1)
    with tracefork.replay(made.tape):
        assert "third" in _again(made)["said"]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_does_not_repeat_turns_before_the_recording(
    model: Callable[..., Any], server: ProviderServer, tmp_path: Path, loop: None
) -> None:
    """The recorded run started from their state."""
    ran: list[str] = []
    saver = TapeSaver(tmp_path / "threads.tape")
    graph = attach(five(model(max_retries=0), ran).compile(checkpointer=saver))
    graph.invoke(START, THREAD)
    with tracefork.record(tmp_path / "turn.tape"):
        output = graph.invoke({"said": ["next"]}, THREAD)
    server.stop()
    ran.clear()
    with tracefork.replay(tmp_path / "turn.tape"):
        assert rerun(graph) == output
    assert ran == ["n1", "n2", "n3", "n4", "n5"]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_copy_of_a_thread_has_its_own_exchanges(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """Its checkpoints have the ids of the original thread, but not its exchanges."""
    made = program(five)
    other = {"configurable": {"thread_id": "copy"}}
    with tracefork.record(made.tape):
        made.run(START, interrupt_before=["n5"])
        made.graph.checkpointer.copy_thread("T", "copy")
        made.run(None)
        made.run(None, other)
    found = [(one.thread, one.exchanges) for one in history(made.tape) if "n5" in one.nodes]
    assert ("T", (4,)) in found
    assert ("T", (4, 5)) not in found
    assert all(exchanges == (5,) for thread, exchanges in found if thread == "copy")
