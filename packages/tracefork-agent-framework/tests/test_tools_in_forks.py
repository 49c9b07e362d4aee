"""A fork refuses a tool that writes; a tool that runs an agent makes no exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import tool

import tracefork_core as tracefork
from tracefork_agent_framework import leave_live

from .conftest import answers_of

Call = Callable[..., Any]
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def text() -> str:
    """Say how the weather is."""
    ran.append("text")
    return "sunny"


def test_a_fork_gives_a_text_or_runs_a_read_again(agent: Call, ask: Call, tape: Path) -> None:
    """The side effect is declared at the function; a write is refused."""

    @tracefork.tool(effect="read")
    def look() -> str:
        ran.append("look")
        return "found"

    def charge() -> str:
        ran.append("charge")
        return "charged"

    words = "@call look {}\n@then\n@call charge {}\n@then\n@say Done."

    def run() -> Any:
        return answers_of(ask(agent("helper", words, tools=[look, charge])))

    with tracefork.record(tape):
        run()
    with tracefork.Tape.open(tape) as opened:
        effects = [(one.aside.seam, one.aside.effect) for one in opened.exchanges]
    assert effects[1::2] == [("tool", "read"), ("tool", None)]
    with pytest.raises(tracefork.WriteError, match="charge"), tracefork.fork(tape, "tool:look"):
        run()
    assert ran == ["look", "charge", "look"]
    with tracefork.fork(tape, "tool:charge", tracefork.Replace(text="refused")):
        answers = run()
    assert ran == ["look", "charge", "look"]
    assert "refused" in str(answers[-1])


def test_a_tool_that_runs_an_agent_is_left_live(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """What it asks is an exchange of its own then."""

    async def research(question: str) -> str:
        ran.append("research")
        return str((await agent("inner", "@say Hm.").run(question)).text)

    leave_live(research)
    words = '@call research {"question": "Hm?"}\n@then\n@say Done.'
    recorded, again = twice(lambda: answers_of(ask(agent("helper", words, tools=[research]))))
    assert recorded == again
    assert ran == ["research"] * 2
    with tracefork.Tape.open(tape) as opened:
        assert [one.aside.seam == "tool" for one in opened.exchanges] == [False] * 3


def test_a_tool_that_the_program_calls_is_no_exchange(tape: Path) -> None:
    """The program calls it as a function, or asks the framework to."""
    plain = tool(text)

    async def run() -> Any:
        return plain(), await plain.invoke(arguments={})

    with tracefork.record(tape):
        assert asyncio.run(run())[0] == "sunny"
    with tracefork.Tape.open(tape) as opened:
        assert [one.aside.seam for one in opened.exchanges] == ["tool"]
    assert ran == ["text", "text"]
