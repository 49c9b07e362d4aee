"""A tool runs once: a replay gives the agent the recorded result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crewai import LLM, Agent
from crewai.knowledge.knowledge import Knowledge
from crewai.llms.base_llm import BaseLLM
from crewai.mcp.client import MCPClient
from crewai.mcp.tool_resolver import MCPToolResolver
from crewai.memory.unified_memory import Memory
from crewai.tools import BaseTool, tool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool

import tracefork_core as tracefork

ASK = '@call look_up {"order": 17}'


@pytest.fixture
def look_up(ran: Any) -> Any:
    """A function that becomes a tool of CrewAI."""

    def look_up(order: int) -> str:
        """Look up an order."""
        ran.append(f"look_up {order}")
        return f"order {order} is lost"

    return look_up


def kinds(work: Any, kind: str) -> Any:
    """Return one of the ways to write a tool."""
    if kind == "function":
        return tool(work)
    if kind == "structured":
        return CrewStructuredTool.from_function(work)
    if kind == "async":

        async def look_up(order: int) -> str:
            """Look up an order."""
            return str(work(order))

        return tool(look_up)

    class LookUp(BaseTool):
        name: str = "look up"
        description: str = "Look up an order."

        def _run(self, order: int) -> str:
            return str(work(order))

    return LookUp()


@pytest.mark.parametrize("kind", ["function", "class", "async"])
def test_a_tool_runs_once(
    way: str, kind: str, calling: Any, twice: Any, ran: Any, look_up: Any, exchanges: Any
) -> None:
    """It runs in the recording only, and the replay sends the same requests to models."""
    recorded, replayed = twice(calling(way, ASK, lambda: [kinds(look_up, kind)]))
    assert replayed.raw == recorded.raw
    assert ran.now() == ["look_up 17"]
    assert exchanges() == [("look_up", {"order": 17})]


def test_other_arguments_diverge(tape: Path, look_up: Any) -> None:
    """The control: arguments are compared."""
    made = tool(look_up)
    with tracefork.record(tape):
        made.run(order=17)
    with pytest.raises(tracefork.DivergenceError, match=r"/order"), tracefork.replay(tape):
        made.run(order=18)


def test_outside_a_session_tools_run_each_time(calling: Any, ran: Any, look_up: Any) -> None:
    """The control: without a recording each run calls the tool."""
    run = calling("native", ASK, lambda: [tool(look_up)])
    run()
    run()
    assert ran.now() == ["look_up 17"] * 2


def test_equal_concurrent_calls_get_their_own_results(
    calling: Any, twice: Any, ran: Any, exchanges: Any, prompts: Any
) -> None:
    """Their results differ, and each call gets its own one at replay."""

    def tools() -> list[Any]:
        @tool
        def look_up(order: int) -> str:
            """Look up an order."""
            ran.append("look_up")
            return f"order {order}, visit {len(ran)}"

        return [look_up]

    calls = "\n".join('@call look_up {"order": 17}' for _ in range(4))
    twice(calling("native", calls, tools))
    assert ran.now() == ["look_up"] * 4
    assert exchanges() == [("look_up", {"order": 17})] * 4
    assert all(f"visit {n}" in prompts() for n in range(1, 5))


async def test_a_tool_that_a_program_calls_is_an_exchange(
    tape: Path, ran: Any, look_up: Any
) -> None:
    """In each way to call a tool without an agent."""

    async def run() -> list[Any]:
        awaited = kinds(look_up, "async")
        structured = kinds(look_up, "structured")
        return [
            tool(look_up).run(order=1),
            kinds(look_up, "class").run(2),
            await awaited.arun(order=3),
            structured.invoke({"order": 4}),
            await structured.ainvoke({"order": 5}),
            await awaited.to_structured_tool().ainvoke({"order": 6}),
        ]

    with tracefork.record(tape):
        recorded = await run()
    assert len(ran.now()) == 6
    with tracefork.replay(tape):
        assert await run() == recorded
    assert ran.now() == []


def test_functions_passed_to_a_model_run_once(llm: Any, twice: Any, ran: Any, look_up: Any) -> None:
    """`LLM.call` runs what the model calls: a function of the program, or a tool's `run`."""
    schema = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
    given = [{"type": "function", "function": schema}]

    def run() -> list[Any]:
        functions = [look_up, tool(look_up).run]
        return [
            llm().call(ASK, tools=given, available_functions={"look_up": it}) for it in functions
        ]

    recorded, replayed = twice(run)
    assert recorded == replayed == ["order 17 is lost"] * 2
    assert ran.now() == ["look_up 17"] * 2


async def test_a_lone_agent_and_an_async_crew_replay_their_tools(
    crew: Any, llm: Any, tape: Path, ran: Any, look_up: Any
) -> None:
    """An agent without a crew, and a crew that is awaited, call tools as others do."""

    async def run() -> list[str]:
        task = f"{ASK}\n@then\n@say Done."
        options = {"llm": llm(), "tools": [tool(look_up)]}
        alone = Agent(role="Alone", goal="help", backstory="You help.", **options)
        others = crew(help=task, agents_={"tools": [tool(look_up)]})
        return [str(await alone.kickoff_async(task)), (await others.akickoff()).raw]

    with tracefork.record(tape):
        recorded = await run()
    assert ran.now() == ["look_up 17"] * 2
    with tracefork.replay(tape):
        assert await run() == recorded
    assert ran.now() == []


def test_a_tool_class_that_overrides_run_is_recorded_once(tape: Path, ran: Any) -> None:
    """Whether its `run` does the work itself or calls the `run` of CrewAI."""

    class Named(BaseTool):
        name: str = "named"
        description: str = "Say who."

        def _run(self, who: str = "nobody") -> str:
            ran.append(who)
            return who

    class Own(Named):
        def run(self, *args: Any, **kwargs: Any) -> str:
            return self._run("own")

    with tracefork.record(tape):

        class Going(Named):
            def run(self, *args: Any, **kwargs: Any) -> Any:
                return super().run(who="going")

        recorded = [Own().run(), Going().run()]
    assert ran.now() == ["going", "own"]
    with tracefork.replay(tape):
        going = Going()
        assert [Own().run(), going.run()] == recorded == ["own", "going"]
        assert going.current_usage_count == 1
    assert ran.now() == []


def test_a_session_restores_every_method_of_crewai(tape: Path, look_up: Any) -> None:
    """The table lists every method that a session replaces, and all are restored."""

    class Own(BaseTool):
        name: str = "own"
        description: str = "Do it."

        def _run(self) -> str:
            return "done"

        def run(self, *args: Any, **kwargs: Any) -> str:
            return self._run()

    memory = "recall remember remember_many extract_memories forget update reset reset_all"
    asked = "list_records list_scopes list_categories info tree"
    client = "connect disconnect list_tools list_prompts call_tool_result get_prompt"
    changed = {
        BaseTool: "run arun __init_subclass__",
        Tool: "run arun",
        Own: "run",
        CrewStructuredTool: "invoke ainvoke",
        BaseLLM: "_handle_tool_execution",
        LLM: "_handle_tool_call",
        Memory: f"{memory} {asked}",
        Knowledge: "query aquery add_sources aadd_sources",
        MCPClient: client,
        MCPToolResolver: "_discover_mcp_tools",
    }
    before = {kind: dict(vars(kind)) for kind in changed}
    with tracefork.record(tape):
        for kind, names in changed.items():
            other = {name for name, it in vars(kind).items() if before[kind].get(name) is not it}
            assert other >= set(names.split())
    assert {kind: dict(vars(kind)) for kind in changed} == before
