"""The steps of a tape are the crew's own, and each exchange belongs to the one that made it."""

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
    """A provider that answers nothing twice alike."""
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
    """Each exchange has its step, all steps end, and without a provider the same comes out.

    No two branches heard the same, so that none came out right with another one's answers.
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
    """Branches find their answers there too, and a planner is told of tools that lie elsewhere."""
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
    """The checks above look at the right place: without it no exchange has a step."""
    monkeypatch.setattr(steps, "instrument", lambda: lambda: None)
    with tracefork.record(tape):
        MODES["sequential"].run(llm)
    assert kinds_on(tape) == {"": 2}


def test_steps_are_called_alike_in_every_run(llm: Any, tmp_path: Path) -> None:
    """A task is called by its name; one without by its key, with its place where keys are alike."""
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
    """A function is called by its name, a model by its kind, and each try by its number."""

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
        found = [
            (*opened.step_path(step.id), step.detail["retry"])
            for step in opened.steps
            if step.kind == "guardrail"
        ]
    assert found == [
        ("desk", "draft", "no_doubt", 0),
        ("desk", "review", "llm", 0),
        ("desk", "review", "llm", 1),
    ]


def test_a_failed_step_says_so(llm: Any, tape: Path) -> None:
    """What failed, and all that it was in, say why; nothing is left open."""

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


def test_who_refuses_refuses_again(llm: Any, tape: Path, server: ProviderServer) -> None:
    """Of two delegations to one co-worker at once one is refused, by chance, and the same later."""
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
    assert len(refused) <= 3  # Fewer, if the first was done meanwhile.
    assert {error[:27] for error in refused} <= {"Executor is already running"}
    assert all(step.ended for step in replayed.tape.steps)


def test_an_end_that_is_told_twice_ends_nothing_more(llm: Any, tape: Path) -> None:
    """CrewAI tells twice that a call failed, and takes the second for the end of the method."""
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


def test_a_flow_that_is_quiet_has_its_steps(llm: Any, tape: Path) -> None:
    """With its events suppressed a method is a step all the same."""
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
    """What no part of CrewAI catches, as with a cancelled task or Ctrl-C."""


def _stop(*_: Any, **__: Any) -> None:
    raise _Stopped


@pytest.mark.parametrize("way", ["kickoff", "akickoff"])
def test_a_crew_that_was_stopped_holds_nothing_that_comes_after(
    way: str, llm: Any, tape: Path
) -> None:
    """CrewAI tells of no end where a crew is cancelled; the next one is a crew of its own."""
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


def test_an_agent_and_a_flow_that_were_stopped_hold_nothing_that_comes_after(
    llm: Any, tape: Path
) -> None:
    """An agent that is asked by itself, and a flow, are left as a crew is."""
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
