"""A program that travels, edits and looks back is recorded and replayed like any other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach, history
from tracefork_testkit import ProviderServer

from .graphs import approval, five
from .program import START, THREAD, Program, Shape

Recorded = Callable[..., tuple[Program, Any]]


def _travelling(program: Program) -> list[Any]:
    first = program.run(START)
    third = program.state("n3").config
    second = program.run(None, third)
    edited = program.graph.update_state(third, {"said": ["edited"]})
    jumped = program.graph.update_state(third, {"said": ["jumped"]}, as_node="n4")
    return [first, second, program.run(None, edited), program.run(None, jumped)]


def test_a_program_that_travels_replays(recorded: Recorded) -> None:
    """Each of its runs gets its own recorded answers, not those of the first run."""
    program, outputs = recorded(five, _travelling)
    assert outputs[0] != outputs[1]
    with tracefork.replay(program.tape):
        assert _travelling(program) == outputs
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(program.tape):
        program.run(START)  # The exchanges of its other runs are left over.


def test_each_run_of_a_travelling_program_can_be_resumed(recorded: Recorded) -> None:
    """A checkpoint that several runs started from resumes the first; the others have their own."""
    program, outputs = recorded(five, _travelling)
    with tracefork.replay(program.tape):
        states = program.states()
        third = next(state for state in states if state.next == ("n3",))
        assert program.run(None, third.config) == outputs[0]
        forked = next(state for state in states if state.metadata["source"] == "fork")
        assert program.run(None, forked.config) == outputs[1]
        edited, jumped = (s for s in states if s.metadata["source"] == "update")
        assert program.run(None, edited.config) == outputs[2]
        assert program.run(None, jumped.config) == outputs[3]


def test_reading_states_during_a_replay_keeps_the_digest(recorded: Recorded) -> None:
    """The replay is still compared with the whole tape."""
    program, output = recorded(five)
    with tracefork.replay(program.tape) as run:
        assert program.run(START) == output
        assert len(program.states()) == 7
    assert run.digest == run.tape.digest


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_later_turn_replays_from_its_recorded_state(
    model: Callable[..., Any], server: ProviderServer, tmp_path: Path, loop: None
) -> None:
    """The threads in their file continue; the tape holds the state that its run started from."""
    ran: list[str] = []
    threads, tape = tmp_path / "threads.tape", tmp_path / "second.tape"
    graph = attach(approval(model(), ran).compile(checkpointer=TapeSaver(threads)))
    graph.invoke(START, THREAD)
    with tracefork.record(tape):
        output = graph.invoke(Command(resume="yes"), THREAD)
    graph.invoke(START, THREAD)  # The thread has continued since.
    server.stop()
    kept = threads.read_bytes()
    with tracefork.replay(tape) as run:
        assert graph.invoke(Command(resume="yes"), THREAD) == output
    assert run.digest == run.tape.digest
    with tracefork.replay(tape):
        waiting = next(one for one in graph.get_state_history(THREAD) if one.next == ("ask",))
        assert graph.invoke(Command(resume="yes"), waiting.config) == output
    with tracefork.replay(tape):
        assert "no" in graph.invoke(Command(resume="no"), waiting.config)["said"]
    assert threads.read_bytes() == kept


@pytest.mark.parametrize("loop", ["async"], indirect=True)
def test_parallel_threads_keep_their_answers_when_resumed(
    program: Callable[[Shape], Program], server: ProviderServer, loop: asyncio.Runner
) -> None:
    """They send the same prompts, in tasks with other numbers than recorded."""
    made = program(five)
    on = [{"configurable": {"thread_id": name}} for name in ("a", "b")]

    async def both(given: Any, configs: Any) -> list[Any]:
        return await asyncio.gather(*(made.graph.ainvoke(given, one) for one in configs))

    with tracefork.record(made.tape):
        outputs = loop.run(both(START, on))
    server.stop()
    third = [one.config for one in history(made.tape) if one.nodes == ("n3",)]
    third.sort(key=lambda config: config["configurable"]["thread_id"])
    assert outputs[0] != outputs[1]
    for _ in range(3):
        with tracefork.replay(made.tape):
            assert loop.run(both(None, third)) == outputs


_AGENT = """
import sys
from travel.graphs import approval
from langchain.chat_models import init_chat_model
from langgraph.types import Command
from tracefork_langgraph import TapeSaver, attach

import tracefork_core as tracefork

thread = {"configurable": {"thread_id": "T"}}
model = init_chat_model("some-model", model_provider="openai", base_url=sys.argv[2], api_key="none")
graph = attach(approval(model, []).compile(checkpointer=TapeSaver(sys.argv[1])))
if sys.argv[3] == "record":
    with tracefork.record(sys.argv[1]):
        graph.invoke({"said": []}, thread)
        print(graph.invoke(Command(resume="yes"), thread)["said"])
else:
    with tracefork.replay(sys.argv[1]):
        waiting = next(one for one in graph.get_state_history(thread) if one.next == ("ask",))
        graph.invoke(None, waiting.config)
        print(graph.invoke(Command(resume="yes"), thread)["said"])
"""


@pytest.mark.many_processes
@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_another_process_can_travel_in_the_recording(
    server: ProviderServer, tape: Path, loop: None
) -> None:
    """It has the clock of the recording, but its checkpoints sort after the recorded ones."""
    said, url = [], f"{server.url}/v1"
    for what in ("record", "travel"):
        done = subprocess.run(
            [sys.executable, "-c", _AGENT, str(tape), url, what],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[1],
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        server.stop()
    assert said[0] == said[1]
    assert "yes" in said[0]
