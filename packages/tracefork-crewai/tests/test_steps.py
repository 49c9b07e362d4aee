"""The steps of a tape are the crew's own, and each exchange belongs to the step that made it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_crewai import steps
from tracefork_testkit import ProviderServer

from . import modes
from .modes import MODES, contrary


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that never repeats an answer."""
    with ProviderServer(contrary()) as server:
        yield server


def kinds_on(tape: Path) -> Counter[str]:
    """Count the exchanges by the kinds of the steps above them."""
    with tracefork.Tape.open(tape) as opened:
        return Counter(" ".join(step.kind for step in one.steps) for one in opened.exchanges)


def steps_on(tape: Path) -> list[tuple[str, tuple[str, ...], str | None]]:
    """Read the kind, the path and the error of each step, in the order they began."""
    with tracefork.Tape.open(tape) as opened:
        return [(step.kind, opened.step_path(step.id), step.error) for step in opened.steps]


@pytest.mark.parametrize("way", MODES)
def test_a_crew_replays_however_it_is_run(
    way: str, llm: Any, tape: Path, server: ProviderServer
) -> None:
    """Each exchange has a step, all steps end, and the replay without a provider returns the same.

    The results of all branches differ, so none is right with the answer of another branch.
    """
    with tracefork.record(tape):
        recorded = MODES[way].run(llm)
    server.stop()
    with tracefork.replay(tape) as run:
        assert MODES[way].run(llm) == recorded
    assert run.digest == run.tape.digest
    assert len(set(recorded)) == len(recorded)
    assert kinds_on(tape) == MODES[way].asked
    assert {(step.ended is None, step.error) for step in run.tape.steps} == {(False, None)}


@pytest.mark.many_processes
def test_a_crew_replays_in_another_process(
    llm: Any, tmp_path: Path, server: ProviderServer
) -> None:
    """Branches find their answers there too, although tools have other memory addresses."""
    recorded = []
    for way in MODES:
        with tracefork.record(tmp_path / way):
            recorded.append([MODES[way].run(llm), True])
    url = server.url
    server.stop()
    program = [sys.executable, modes.__file__, ",".join(MODES), url, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("[[")]
    assert [json.loads(line) for line in said] == recorded


def test_nothing_but_the_event_scope_makes_steps(
    llm: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the tests above: without it no exchange has a step."""
    monkeypatch.setattr(steps, "put_in", lambda _: None)
    with tracefork.record(tape):
        MODES["sequential"].run(llm)
    assert kinds_on(tape) == {"": 2}


def test_steps_have_the_same_names_in_every_run(llm: Any, tmp_path: Path) -> None:
    """A task has its name, or else its key; equal keys get the task's position in front."""
    for tape in (tmp_path / "one", tmp_path / "two"):
        with tracefork.record(tape):
            writer = modes.agent(llm(), " Head\nwriter ")
            tasks = [modes.task(writer), modes.task(writer), modes.task(writer, name="last")]
            modes.crew(*tasks).kickoff()
    first = steps_on(tmp_path / "one")
    key = tasks[0].key[:8]
    assert [path for kind, path, _ in first if kind == "agent"] == [
        ("desk", f"0:{key}", "Head writer"),
        ("desk", f"1:{key}", "Head writer"),
        ("desk", "last", "Head writer"),
    ]
    assert steps_on(tmp_path / "two") == first
    with tracefork.Tape.open(tmp_path / "one") as opened:
        assert [s.detail for s in opened.steps if s.kind == "task"] == [
            {"index": n} for n in (0, 1, 2)
        ]


def test_a_guardrail_is_a_step_of_its_task(llm: Any, tape: Path) -> None:
    """A function has its name, a model its kind, and each attempt its number."""

    def no_doubt(output: Any):  # type: ignore[no-untyped-def] # CrewAI reads the annotation.
        return "?" not in output.raw, output.raw

    writer = modes.agent(llm())
    with tracefork.record(tape):
        guarded = [
            modes.task(writer, name=name, guardrail=guard)
            for name, guard in (("draft", no_doubt), ("review", "It rhymes."))
        ]
        modes.crew(*guarded).kickoff()
    with tracefork.Tape.open(tape) as opened:
        checks = [
            (*opened.step_path(step.id), step.detail["retry"])
            for step in opened.steps
            if step.kind == "guardrail"
        ]
    assert checks == [
        ("desk", "draft", "no_doubt", 0),
        ("desk", "review", "llm", 0),
        ("desk", "review", "llm", 1),
    ]


def test_a_failed_step_keeps_its_error(llm: Any, tape: Path) -> None:
    """So do all steps around it, and no step stays open."""

    def refuse(_: Any) -> None:
        raise LookupError("no shelf")

    made = modes.pair(llm)
    made.tasks[0].callback = refuse
    with pytest.raises(LookupError), tracefork.record(tape):
        made.kickoff()
    assert {(kind, error) for kind, _, error in steps_on(tape)} == {
        ("crew", "no shelf"),
        ("task", "no shelf"),
        ("agent", None),
        ("model", None),
    }
    with tracefork.Tape.open(tape) as opened:
        assert all(step.ended for step in opened.steps)


def test_a_busy_agent_refuses_the_same_task_in_every_replay(
    llm: Any, tape: Path, server: ProviderServer
) -> None:
    """Of two concurrent delegations to one co-worker, chance decides which is refused."""
    from crewai import Crew, Process

    piece = json.dumps({"task": "Draft it.", "context": "c", "coworker": "Writer"})
    work = f"@call delegate_work_to_coworker {piece}\n" * 2 + "@then\n@then\n@say Done."

    def run() -> str:
        desk = Crew(
            name="desk",
            agents=[modes.agent(llm())],
            tasks=[modes.task(None, work)],
            process=Process.hierarchical,
            manager_llm=llm("openai/gpt-4o"),
        )
        return str(desk.kickoff().raw)

    with tracefork.record(tape):
        recorded = run()
    server.stop()
    for _ in range(4):
        with tracefork.replay(tape) as replayed:
            assert run() == recorded
        assert replayed.digest == replayed.tape.digest
    refused = [error for kind, _, error in steps_on(tape) if kind == "agent" and error]
    assert len(refused) <= 3  # Fewer if the first one had ended by then.
    assert {error[:27] for error in refused} <= {"Executor is already running"}
    assert all(step.ended for step in replayed.tape.steps)


def test_a_repeated_end_event_ends_no_outer_step(llm: Any, tape: Path) -> None:
    """CrewAI emits two events for a failed call. The second looks like the end of the method."""
    from crewai.events.event_context import _event_id_stack
    from crewai.flow import Flow, start
    from pydantic import BaseModel

    class Plan(BaseModel):
        steps: int

    class Press(Flow[dict[str, Any]]):
        _skip_auto_memory = True

        @start()
        def begin(self) -> list[str]:
            with pytest.raises(ValueError, match="Invalid JSON"):
                llm().call("@say none", response_model=Plan)
            llm().call("Write.")
            return [kind for _, kind in _event_id_stack.get()]

    with tracefork.record(tape):
        assert "method_execution_started" not in Press().kickoff()
    assert kinds_on(tape) == {"flow method model": 2}
    assert [error is None for _, _, error in steps_on(tape)] == [True, True, False, True]


def test_a_flow_that_suppresses_its_events_has_steps(llm: Any, tape: Path) -> None:
    """Its methods are steps, too."""
    from crewai.flow import Flow, start

    class Press(Flow[dict[str, Any]]):
        _skip_auto_memory = True

        @start()
        def begin(self) -> str:
            return str(llm().call("Write."))

    with tracefork.record(tape):
        Press(suppress_flow_events=True).kickoff()
    assert kinds_on(tape) == {"flow method model": 1}
    assert steps_on(tape)[-1][1] == ("Press", "begin", "gpt-4o-mini")


class _Stopped(BaseException):
    """An exception that no part of CrewAI catches, as for a cancelled task or Ctrl-C."""


def _stop(*_: Any, **__: Any) -> None:
    raise _Stopped


@pytest.mark.parametrize("way", ["kickoff", "akickoff"])
def test_later_steps_are_not_inside_a_cancelled_crew(way: str, llm: Any, tape: Path) -> None:
    """CrewAI emits no end event for a cancelled crew; the next crew is a step of its own."""
    stopped, whole = modes.pair(llm), modes.pair(llm)
    stopped.tasks[0].callback = _stop

    async def run() -> None:
        with pytest.raises(_Stopped):
            await stopped.akickoff()
        await whole.akickoff()

    with tracefork.record(tape):
        if way == "akickoff":
            asyncio.run(run())
        else:
            with pytest.raises(_Stopped):
                stopped.kickoff()
            whole.kickoff()
    paths = [path for kind, path, _ in steps_on(tape) if kind == "task"]
    assert paths == [("desk", "draft"), ("desk", "draft"), ("desk", "review")]
    errors = [error for kind, _, error in steps_on(tape) if kind == "crew"]
    assert errors == ["_Stopped()", None]
    with tracefork.Tape.open(tape) as opened:
        assert all(step.ended for step in opened.steps)


def test_later_steps_are_not_inside_a_cancelled_agent_or_flow(llm: Any, tape: Path) -> None:
    """A lone agent and a flow end like a crew."""
    from crewai.flow import Flow, start
    from crewai.tools import tool

    class Press(Flow[dict[str, Any]]):
        _skip_auto_memory = True

        @start()
        def begin(self) -> None:
            _stop()

    @tool("fetch")
    def fetch() -> str:
        """Fetch it."""
        raise _Stopped

    async def run() -> None:
        asked = modes.agent(llm(), tools=[fetch])
        for left in (Press().kickoff_async, partial(asked.kickoff_async, "@call fetch {}")):
            with pytest.raises(_Stopped):
                await left()
        await modes.agent(llm(), "Reader").kickoff_async("Write.")

    with tracefork.record(tape):
        asyncio.run(run())
    assert [(path, error) for _, path, error in steps_on(tape) if len(path) == 1] == [
        (("Press",), "_Stopped()"),
        (("Writer",), "_Stopped()"),
        (("Reader",), None),
    ]
