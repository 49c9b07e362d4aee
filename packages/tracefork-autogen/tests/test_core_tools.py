"""Tools and workbenches of programs that use autogen-core alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from autogen_core import AgentId, CancellationToken, SingleThreadedAgentRuntime
from autogen_core.models import UserMessage
from autogen_core.tool_agent import ToolAgent, tool_agent_caller_loop
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)
from pydantic import BaseModel

import tracefork_core as tracefork

Call = Callable[..., Any]
ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


class Order(BaseModel):
    items: list[str]


class Ticket(BaseModel):
    number: int


class Selling(BaseTool[Order, Ticket]):
    """A tool whose result is an object, and that writes its text in its own way."""

    def __init__(self) -> None:
        super().__init__(Order, Ticket, "sell", "Sells.")

    async def run(self, args: Order, cancellation_token: CancellationToken) -> Ticket:
        ran.append(args)
        return Ticket(number=len(ran))

    def return_value_as_string(self, value: Any) -> str:
        return f"ticket {value.number}"


class Talking(Selling):
    """A tool that calls the method of the class it derives from."""

    async def run_json(self, args: Mapping[str, Any], *rest: Any, **options: Any) -> Any:
        return await super().run_json(args, *rest, **options)


@pytest.mark.parametrize("kind", [Selling, Talking])
def test_a_tool_returns_the_recorded_object(twice: Call, paths: Call, kind: Any) -> None:
    """It is of the class that the tool names as its result, and one exchange."""

    def run() -> tuple[Any, str]:
        tool = kind()
        ticket = asyncio.run(tool.run_json({"items": ["tea"]}, CancellationToken()))
        return ticket, tool.return_value_as_string(ticket)

    recorded, again = twice(run)
    assert recorded == again == (Ticket(number=1), "ticket 1")
    assert len(ran) == 1
    assert paths() == ["tool:sell"]


def test_a_fork_says_the_text_of_an_object(tape: Path) -> None:
    """The tool makes no text of the text: it is what a model gets."""

    def run() -> str:
        tool = Selling()
        ticket = asyncio.run(tool.run_json({"items": ["tea"]}, CancellationToken()))
        return tool.return_value_as_string(ticket)

    with tracefork.record(tape):
        run()
    with tracefork.fork(tape, 0, tracefork.Replace(text="sold out")):
        assert run() == "sold out"


def test_a_program_may_give_a_tool_more_than_a_model_can(twice: Call) -> None:
    """A date is compared as JSON; the tool gets the date."""

    def weekday(day: date) -> str:
        ran.append(day)
        return f"{day:%A}"

    def run() -> object:
        tool = FunctionTool(weekday, "Works.")
        return asyncio.run(tool.run_json({"day": date(2026, 1, 1)}, CancellationToken()))

    recorded, again = twice(run)
    assert recorded == again == "Thursday"
    assert ran == [date(2026, 1, 1)]


class Anything:
    """A result that no tape holds."""

    def __str__(self) -> str:
        return "anything"


def test_a_result_that_no_tape_holds_becomes_its_text(twice: Call) -> None:
    """Both runs get the text that a model would get."""

    def anything() -> Any:
        return Anything()

    def run() -> object:
        tool = FunctionTool(anything, "Works.")
        return asyncio.run(tool.run_json({}, CancellationToken()))

    recorded, again = twice(run)
    assert recorded == again == "anything"


def test_the_calls_of_a_tool_agent_are_exchanges(client: Call, twice: Call, paths: Call) -> None:
    """An error of a tool is the recorded one, in a class that AutoGen raises past `Exception`."""

    def failing() -> str:
        ran.append("failing")
        raise LookupError("no such city")

    async def run() -> list[str]:
        runtime = SingleThreadedAgentRuntime()
        tools = [Selling(), FunctionTool(failing, "Fails.")]
        await ToolAgent.register(runtime, "tools", lambda: ToolAgent("Runs tools.", tools))
        runtime.start()
        words = '@call sell {"items": ["tea"]}\n@call failing {}\n@then\n@say Done.'
        messages = await tool_agent_caller_loop(
            runtime,
            AgentId("tools", "default"),
            client(),
            [UserMessage(content=words, source="user")],
            [tool.schema for tool in tools],
        )
        await runtime.stop()
        return [message.model_dump_json() for message in messages]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert "ticket 1" in recorded[1]
    assert '"is_error":true' in recorded[1]
    assert len(ran) == 2
    assert [path.rpartition(" ")[2] for path in paths()][1:3] == ["tool:sell", "tool:failing"]


class Shelf(Workbench):
    """A workbench that does the work itself."""

    async def list_tools(self) -> list[ToolSchema]:
        return [{"name": "pick", "description": "Picks.", "parameters": EMPTY}]

    async def call_tool(self, name: str, *_: Any, **__: Any) -> ToolResult:
        ran.append(name)
        text = TextResultContent(content=f"picked {len(ran)}")
        return ToolResult(name=name, result=[text], is_error=len(ran) > 1)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def reset(self) -> None: ...

    async def save_state(self) -> Mapping[str, Any]:
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None: ...


EMPTY: Any = {"type": "object", "properties": {}, "required": []}


class LowerShelf(Shelf):
    """A workbench that calls the class it derives from."""

    async def call_tool(self, name: str, *rest: Any, **options: Any) -> ToolResult:
        return await super().call_tool(name, *rest, **options)


@pytest.mark.parametrize("kind", [Shelf, LowerShelf])
def test_the_calls_of_a_workbench_are_exchanges(
    agent: Call, twice: Call, paths: Call, kind: Any
) -> None:
    """A result that is an error is one again."""

    def run() -> list[str]:
        words = "@call pick {}\n@call pick {}\n@then\n@say Done."
        done = asyncio.run(agent("helper", words, tools=None, workbench=kind()).run(task="Go on."))
        return [str(message.content) for message in done.messages]

    recorded, again = twice(run)
    assert recorded == again
    assert "is_error=True" in str(recorded)
    assert ran == ["pick", "pick"]
    assert paths().count("agent:helper ▸ tool:pick") == 2


def test_a_fork_says_another_result_of_a_workbench(agent: Call, tape: Path) -> None:
    """The text becomes a `ToolResult`."""

    def run() -> str:
        words = "@call pick {}\n@then\n@say Done."
        return str(asyncio.run(agent("helper", words, tools=None, workbench=Shelf()).run(task="")))

    with tracefork.record(tape):
        run()
    with tracefork.fork(tape, "tool:pick", tracefork.Replace(text="It is empty.")):
        assert "It is empty." in run()


def test_a_divergence_below_a_workbench_is_raised_to_the_program(tape: Path) -> None:
    """A program that calls a tool itself gets the divergence; nothing hangs."""

    def run(item: str) -> None:
        workbench = StaticWorkbench([Selling()])
        asyncio.run(workbench.call_tool("sell", {"items": [item]}))

    with tracefork.record(tape):
        run("tea")
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        run("milk")
    assert len(ran) == 1
