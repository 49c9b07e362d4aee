"""Some tools run in replays too, because the requests they make are on the tape."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any

import pytest
from crewai.tools import BaseTool, tool

import tracefork_core as tracefork
from tracefork_crewai.live_tools import is_live, leave_live


def test_delegation_stays_live(
    way: str, crew: Any, llm: Any, twice: Any, exchanges: Any, paths: Any
) -> None:
    """The co-worker's exchanges are on the tape, below the tool of the agent that delegated."""

    def run() -> Any:
        model = llm()
        if way == "react":
            object.__setattr__(model, "supports_function_calling", lambda: False)
        ask = (
            "@call delegate_work_to_coworker "
            '{"task": "@say Found.", "context": "none", "coworker": "Work"}'
        )
        first = crew(
            help=f"{ask}\n@then\n@say Done.",
            work="@say Worked.",
            llm_=model,
            agents_={"allow_delegation": True},
        )
        return first.kickoff()

    recorded, replayed = twice(run)
    assert replayed.raw == recorded.raw
    assert exchanges() == []
    assert any("delegate_work_to_coworker" in " ".join(path) for path in paths())


def asking(llm: Any, ran: Any) -> Any:
    """Return a function that calls a model."""

    def ask(what: str) -> str:
        """Ask somebody."""
        ran.append("ask")
        return str(llm().call(f"@say {what}!"))

    return ask


def test_a_tools_own_requests_are_part_of_its_exchange(
    tape: Path, llm: Any, ran: Any, exchanges: Any, server: Any
) -> None:
    """A tool is one exchange, whatever it requests meanwhile."""
    with tracefork.record(tape):
        tool(asking(llm, ran)).run(what="hello")
    with tracefork.replay(tape) as run:
        tool(asking(llm, ran)).run(what="hello")
    assert ran.now() == ["ask"]
    assert run.exchanges == len(exchanges()) == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["function", "tool", "class"])
def test_a_tool_left_live_runs_in_a_replay(
    tape: Path, llm: Any, ran: Any, exchanges: Any, server: Any, how: str
) -> None:
    """The control: it runs twice, and the model's answer is on the tape."""
    ask = asking(llm, ran)

    @leave_live
    class Ask(BaseTool):
        name: str = "ask"
        description: str = "Ask somebody."

        def _run(self, what: str) -> str:
            return ask(what)

    ways: dict[str, Callable[[], Any]] = {
        "function": lambda: tool(leave_live(ask)),
        "tool": lambda: leave_live(tool(ask)).model_copy(),
        "class": Ask,
    }
    made = ways[how]()
    with tracefork.record(tape):
        recorded = made.run(what="hello")
    with tracefork.replay(tape):
        assert made.to_structured_tool().invoke({"what": "hello"}) == recorded
    assert ran.now() == ["ask"] * 2
    assert exchanges() == []
    assert len(server.requests) == 1


def test_leave_live_refuses_other_types() -> None:
    """Text is not callable, and a function of C has no attributes to mark."""
    with pytest.raises(tracefork.UsageError, match="'ask' is neither"):
        leave_live("ask")
    with pytest.raises(tracefork.UsageError, match="cannot be marked"):
        leave_live(print)


def test_a_function_by_tracefork_tool_is_one_exchange(
    way: str, calling: Any, twice: Any, ran: Any, exchanges: Any, tape: Path
) -> None:
    """It keeps its own seam, with the effect that it declares."""

    def tools() -> list[Any]:
        @tool
        @tracefork.tool(effect="read", name="Shop.look_up")
        def look_up(order: int) -> str:
            """Look up an order."""
            ran.append("look_up")
            return f"order {order} is lost"

        return [look_up]

    twice(calling(way, '@call look_up {"order": 17}', tools))
    assert ran.now() == ["look_up"]
    assert exchanges() == [("Shop.look_up", {"order": 17})]
    with tracefork.Tape.open(tape) as opened:
        assert [it.aside.effect for it in opened.exchanges if it.method == "CALL"] == ["read"]


def test_a_method_by_tracefork_tool_is_one_exchange(tape: Path, ran: Any, exchanges: Any) -> None:
    """In this way a class of tools declares its side effect."""

    class LookUp(BaseTool):
        name: str = "look up"
        description: str = "Look up an order."

        @tracefork.tool(effect="pure", name="LookUp")
        def _run(self, order: int) -> str:
            ran.append("look_up")
            return f"order {order} is lost"

    for session in (tracefork.record, tracefork.replay):
        with session(tape):
            assert LookUp().run(order=17) == "order 17 is lost"
            assert LookUp().to_structured_tool().invoke({"order": 18}) == "order 18 is lost"
    assert ran.now() == ["look_up"] * 2
    assert exchanges() == [("LookUp", {"order": 17}), ("LookUp", {"order": 18})]


def test_crewais_tools_are_live_except_those_that_call_servers() -> None:
    """The test fails when a version of CrewAI adds a class that needs a decision."""
    for name in ("agent_tools.read_file_tool", "memory_tools", "mcp_native_tool"):
        import_module(f"crewai.tools.{name}")
    import_module("crewai.tools.mcp_tool_wrapper")
    import_module("crewai.skills.tool")
    classes = [
        kind
        for kind in kinds_below(BaseTool)
        if kind.__module__.startswith("crewai.") and not isabstract(kind)
    ]
    left = {
        kind.__name__.partition("[")[0]
        for kind in classes
        if not is_live(kind.model_construct(), kind._run)
    }
    assert left == {"MCPNativeTool", "MCPToolWrapper", "Tool"}
    assert len(classes) >= 8


def kinds_below(kind: Any) -> list[Any]:
    """Return all subclasses, each once."""
    below = kind.__subclasses__()
    return [*below, *(it for kind in below for it in kinds_below(kind))]
