"""A fork gives an agent another result, or the tool other arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crewai.tools import tool
from crewai.tools.tool_failure import ToolFailure

import tracefork_core as tracefork

ASK = '@call look_up {"order": 17}'


@pytest.fixture
def recorded(way: str, calling: Any, tape: Path, ran: Any) -> Any:
    """Return a function that runs a recorded crew again, whose tool looks up an order."""

    def tools() -> list[Any]:
        @tool
        def look_up(order: int) -> str | ToolFailure:
            """Look up an order."""
            ran.append(f"look_up {order}")
            return f"order {order} is lost"

        return [look_up]

    run = calling(way, ASK, tools)
    with tracefork.record(tape):
        run()
    ran.clear()
    return run


@pytest.fixture
def at(recorded: Any, tape: Path) -> int:
    """The number of the tool's exchange."""
    with tracefork.Tape.open(tape) as opened:
        return next(n for n, call in enumerate(opened.exchanges) if call.method == "CALL")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("order 17 is found", "order 17 is found"),
        ({"crewai": "ToolFailure", "fields": {"message": "gone", "code": "404"}}, "(code: 404)"),
    ],
)
def test_fork_gives_the_agent_another_result(
    document: Any, said: str, recorded: Any, at: int, tape: Path, ran: Any, prompts: Any
) -> None:
    """The agent receives it, and the tool does not run."""
    before = prompts()
    with tracefork.fork(tape, at, tracefork.Replace(document=document), to=tape.with_name("f")):
        recorded()
    assert said in prompts().removeprefix(before)
    assert ran.now() == []


def test_fork_runs_the_tool_with_other_arguments(
    recorded: Any, at: int, tape: Path, ran: Any, prompts: Any
) -> None:
    """The control: the tool runs with them, if the fork allows writes."""
    change = tracefork.Edit(values={"/order": 18})
    with pytest.raises(tracefork.TraceforkError, match="look_up"):
        with tracefork.fork(tape, at, change, to=tape.with_name("refused")):
            recorded()
    with tracefork.fork(tape, at, change, writes="allow", to=tape.with_name("f")):
        recorded()
    assert ran.now() == ["look_up 18"]
    assert "order 18 is lost" in prompts()
