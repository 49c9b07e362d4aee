"""A graph resumes from a recorded checkpoint: it runs only later nodes, as recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START as BEGIN
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, aresume, history, rerun, resume
from tracefork_testkit import ProviderServer

from .graphs import SHAPES, Ran, State, approval, drafts, five, loop, sends, talking
from .program import START, THREAD, Program, Shape

Recorded = Callable[..., tuple[Program, Any]]


_TIMES = range(int(os.environ.get("TRACEFORK_REPEAT", "1")))


@pytest.mark.parametrize("time", _TIMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_run_resumes_from_each_checkpoint(recorded: Recorded, shape: str, time: int) -> None:
    """From every checkpoint, it runs only the remaining nodes and ends like the recorded run."""
    program, output = recorded(SHAPES[shape])
    whole, before = len(program.ran), program.tape.read_bytes()
    counts = []
    for place in history(program.tape):
        if place.nodes or place.source == "input":
            with tracefork.replay(program.tape):
                assert program.run(None, place.config) == output
            counts.append(len(program.ran))
    assert counts[0] == whole
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < whole
    assert program.tape.read_bytes() == before


@pytest.mark.parametrize("shape", [five, drafts])
def test_one_session_can_resume_repeatedly(recorded: Recorded, shape: Shape) -> None:
    """An answer that was used is given again, from earlier and from later checkpoints."""
    program, output = recorded(shape)
    whole = list(program.ran)
    with tracefork.replay(program.tape):
        places = [state for state in program.states() if state.next]
        for state in [*places, *reversed(places)]:
            assert program.run(None, state.config) == output
            assert program.ran == whole[-len(program.ran) :]


def test_run_resumes_from_a_checkpoint_of_a_resumed_run(recorded: Recorded) -> None:
    """A checkpoint saved during travel stands for the recorded one."""
    program, output = recorded(loop)
    with tracefork.replay(program.tape):
        third = [state for state in program.states() if state.next][3]
        assert program.run(None, third.config) == output
        made = [state for state in program.states() if state.next][-1]
        assert made.config != third.config
        assert program.run(None, made.config) == output
        assert len(program.ran) == 1


def test_changed_prompt_after_the_checkpoint_diverges_there(
    recorded: Recorded, program: Callable[[Shape], Program]
) -> None:
    """The node before it is answered, and the error names the changed one."""
    edited = program(partial(five, n4="another question"))
    made, _ = recorded(five)
    third = next(one.config for one in history(made.tape) if one.nodes == ("n3",))
    with pytest.raises(tracefork.DivergenceError, match="n4"), tracefork.replay(made.tape):
        edited.run(None, third)
    assert edited.ran == ["n3", "n4"]


def _asked_and_answered(program: Program) -> Any:
    stopped = program.run(START)
    return stopped["__interrupt__"][0].value, program.run(Command(resume="yes"))


def test_run_that_waited_for_a_person_resumes(recorded: Recorded) -> None:
    """The node runs again from its top, as it did when recorded, with the given answer."""
    program, (question, output) = recorded(approval, _asked_and_answered)
    with tracefork.replay(program.tape):
        assert _asked_and_answered(program) == (question, output)
    with tracefork.replay(program.tape):
        waiting = program.state("ask")
        assert waiting.tasks[0].interrupts[0].value == question
        assert program.run(None, waiting.config)["__interrupt__"][0].value == question
        assert program.run(Command(resume="yes")) == output
    with tracefork.replay(program.tape):
        assert program.run(Command(resume="yes"), waiting.config) == output
        assert program.ran == ["ask", "act"]


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_functional_workflow_resumes(
    model: Callable[..., Any], server: ProviderServer, tape: Path, loop: None
) -> None:
    """Tasks whose results were known may run again: they get the recorded answers."""
    asked = model()
    one = task(lambda: asked.invoke("one").content, name="one")
    two = task(lambda: asked.invoke("two").content, name="two")

    @entrypoint(checkpointer=TapeSaver(tape))
    def workflow(_: str) -> list[str]:
        return [one().result(), interrupt("sure?"), two().result()]

    with tracefork.record(tape):
        workflow.invoke("go", THREAD)
        output = workflow.invoke(Command(resume="yes"), THREAD)
    server.stop()
    place = history(tape)[0]
    with tracefork.replay(tape):
        assert workflow.invoke(Command(resume="yes"), place.config) == output
    with tracefork.replay(tape):
        workflow.invoke(None, place.config)
        assert workflow.invoke(Command(resume="yes"), THREAD) == output


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_streamed_run_resumes_as_a_stream(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """The words of the remaining nodes arrive one by one, as recorded."""
    made = program(five)

    def words(given: Any, config: Any = THREAD) -> list[Any]:
        return [part for part, _ in made.graph.stream(given, config, stream_mode="messages")]

    with tracefork.record(made.tape):
        whole = [word.content for word in words(START)]
    server.stop()
    third = next(one for one in history(made.tape) if one.nodes == ("n3",))
    with tracefork.replay(made.tape):
        rest = [word.content for word in words(None, third.config)]
    assert len(whole) > len(rest) > 3
    assert rest == whole[-len(rest) :]


def test_other_answer_of_a_person_changes_the_state(recorded: Recorded) -> None:
    """The rest of the state is as recorded."""
    program, (_, output) = recorded(approval, _asked_and_answered)
    waiting = next(one for one in history(program.tape) if "ask" in one.nodes)
    with tracefork.replay(program.tape):
        other = program.run(Command(resume="no"), waiting.config)
    assert "no" in other["said"]
    assert [one for one in other["said"] if one != "no"] == [
        one for one in output["said"] if one != "yes"
    ]


def test_resumed_run_draws_new_message_ids(recorded: Recorded) -> None:
    """A message with the id of an earlier one would replace it in the state."""
    program, output = recorded(talking, lambda one: one.run({"messages": ["go"]}))
    said = [message.content for message in output["messages"]]
    places = [place for place in history(program.tape) if place.nodes]
    assert len(places) == 3
    for place in places:
        with tracefork.replay(program.tape):
            again = program.run(None, place.config)["messages"]
        assert [message.content for message in again] == said
        assert len({message.id for message in again}) == len(said)


def test_clock_continues_from_the_checkpoint(recorded: Recorded) -> None:
    """A prompt with the time has the time that the node read when it was recorded."""
    program, output = recorded(_telling_the_time)
    assert [place.nodes for place in history(program.tape)].count(()) == 2
    for place in history(program.tape):
        if place.nodes:
            with tracefork.replay(program.tape):
                assert program.run(None, place.config) == output


def _telling_the_time(model: Any, ran: Ran) -> StateGraph[State]:
    def node(name: str) -> Callable[[State], dict[str, Any]]:
        def tell(_: State) -> dict[str, Any]:
            ran.append(name)
            return {"said": [model.invoke(f"{name} at {datetime.now(UTC)}").content]}

        return tell

    builder = StateGraph(State)
    return builder.add_sequence([(f"n{i}", node(f"n{i}")) for i in range(3)]).add_edge(BEGIN, "n0")


@pytest.mark.parametrize(("durability", "at_once"), [("sync", 1), ("async", 2)])
def test_run_resumes_with_each_durability(
    recorded: Recorded, durability: str, at_once: int
) -> None:
    """Checkpoints written in the background equal those written before the next step."""
    program, output = recorded(
        sends,
        lambda one: one.run(START, {**THREAD, "max_concurrency": at_once}, durability=durability),
    )
    for place in history(program.tape):
        if place.nodes:
            with tracefork.replay(program.tape):
                assert program.run(None, place.config, durability=durability) == output


def test_run_with_exit_durability_can_only_replay_whole(recorded: Recorded) -> None:
    """Its only checkpoint is the last one."""
    program, output = recorded(five, lambda one: one.run(START, durability="exit"))
    assert [place.nodes for place in history(program.tape)] == [()]
    with tracefork.replay(program.tape):
        assert program.run(START, durability="exit") == output
    program.ran.clear()
    with (
        pytest.raises(tracefork.UsageError, match="durability='exit'"),
        tracefork.replay(program.tape),
    ):
        rerun(program.graph)  # It would resume from the end and verify nothing.
    assert program.ran == []


def test_resume_takes_a_node_a_step_or_an_id(recorded: Recorded) -> None:
    """The end of an id is enough. The error for an unknown name lists the nodes."""
    program, output = recorded(five)
    third = next(one for one in history(program.tape) if one.nodes == ("n3",))
    for at in ("n3", third.step, third.id, third.id[-8:]):
        program.ran.clear()
        if program.loop is not None:
            assert program.loop.run(aresume(program.tape, program.graph, at)) == output
        else:
            assert resume(program.tape, program.graph, at) == output
        assert program.ran == ["n3", "n4", "n5"]
    with pytest.raises(tracefork.UsageError, match="n1, n2, n3, n4, n5"):
        resume(program.tape, program.graph, "n6")


def _asking_under_an_id(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that waits for a person."""
    builder = StateGraph(State)
    builder.add_node("ask", lambda _: {"said": [interrupt("sure?")]})
    return builder.add_edge(BEGIN, "ask")


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_each_replay_of_a_process_generates_the_recorded_ids(
    program: Callable[[Shape], Program],
) -> None:
    """Ids of interrupts go out to people and come back; meanwhile the process made other ids."""
    made = program(_asking_under_an_id)

    def asks() -> tuple[str, Any]:
        waiting = made.run(START)["__interrupt__"][0].id
        return waiting, made.run(Command(resume={waiting: "yes"}))

    with tracefork.record(made.tape):
        recorded = asks()
    for _ in range(2):
        with tracefork.replay(made.tape):
            assert asks() == recorded


def _inner(model: Any, ran: Ran) -> StateGraph[State]:
    """A subgraph, whose lane has another name if it is streamed."""
    return StateGraph(State).add_node("agent", five(model, ran).compile()).add_edge(BEGIN, "agent")


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_each_turn_gets_its_own_answers(
    program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """Two turns send the same prompts. The first was streamed, so its lanes have other names."""
    made = program(_inner)
    with tracefork.record(made.tape):
        list(made.graph.stream(START, THREAD, subgraphs=True))
        first = made.graph.get_state(THREAD).values
        made.run(START)
    server.stop()
    place = next(one for one in history(made.tape) if one.nodes)
    assert resume(made.tape, made.graph, at=place.id) == first


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_missing_call_after_a_checkpoint_is_not_reported(recorded: Recorded) -> None:
    """A documented limit: the remaining exchanges may belong to a later turn."""
    program, output = recorded(five)
    said = resume(program.tape, program.graph, at="n3", interrupt_before=["n5"])["said"]
    assert said == output["said"][:4]
    assert len(output["said"]) == 5
