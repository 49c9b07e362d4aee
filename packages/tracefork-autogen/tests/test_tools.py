"""Tools of agents run once: a replay answers their calls from the tape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_core import CancellationToken
from autogen_core.tools import BaseStreamTool, FunctionTool
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_autogen import leave_live

Call = Callable[..., Any]
CALL = "@call work {}\n@then\n@say Done."
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


class Weather(BaseModel):
    city: str
    degrees: float


@dataclass
class Cart:
    items: list[str]


class OutOfStockError(Exception):
    """An exception that no tape holds."""


def text() -> str:
    ran.append("text")
    return "sunny"


async def number() -> float:
    ran.append("number")
    return 21.5


def nothing() -> None:
    ran.append("nothing")


def model() -> Weather:
    ran.append("model")
    return Weather(city="Rome", degrees=21.5)


def data():  # type: ignore[no-untyped-def] # a function as users write it
    ran.append("data")
    return Cart(["tea"])


def failing() -> str:
    ran.append("failing")
    raise LookupError("no such city")


def failing_in_its_own_way() -> str:
    ran.append("failing_in_its_own_way")
    raise OutOfStockError("no tea")


FUNCTIONS = [text, number, nothing, model, data, failing, failing_in_its_own_way]


def results(agent: Any) -> list[str]:
    """Run an agent and return its messages, without the ids of calls."""
    done = asyncio.run(agent.run(task="Go on."))
    return [
        str([(one.content, one.is_error) for one in message.content])
        if message.type == "ToolCallExecutionEvent"
        else message.type
        for message in done.messages
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_model_reads_of_a_tool_what_it_reads_without_a_session(
    agent: Call, twice: Call, paths: Call, function: Any
) -> None:
    """Its result is that text, whether the tool returned it or raised; and it runs once."""

    def run() -> list[str]:
        tool = FunctionTool(function, "Works.", name="work")
        return results(agent("helper", CALL, tools=[tool], reflect_on_tool_use=True))

    plain = run()
    ran.clear()
    recorded, again = twice(run)
    assert plain == recorded == again
    assert ran == [function.__name__]
    assert "agent:helper ▸ tool:work" in paths()


class Words(BaseModel):
    pass


class Counting(BaseStreamTool[Words, TextMessage, Weather]):
    """A tool that yields messages before its result."""

    def __init__(self) -> None:
        super().__init__(Words, Weather, "work", "Counts.")

    async def run(self, args: Words, cancellation_token: CancellationToken) -> Weather:
        raise NotImplementedError

    async def run_stream(
        self, args: Words, cancellation_token: CancellationToken
    ) -> AsyncGenerator[TextMessage | Weather, None]:
        for n in range(2):
            ran.append(str(n))
            yield TextMessage(content=f"Looked {n}.", source="work")
        yield Weather(city="Rome", degrees=21.5)


def test_what_a_tool_yields_is_yielded_again(agent: Call, twice: Call) -> None:
    """Messages of a tool are events of its agent; each keeps its class and its id."""

    def run() -> list[str]:
        done = asyncio.run(agent("helper", CALL, tools=[Counting()]).run(task="Go on."))
        return [message.model_dump_json() for message in done.messages]

    recorded, again = twice(run)
    assert recorded == again
    assert any("Looked 1." in message for message in recorded)
    assert ran == ["0", "1"]


def lookup(city: str) -> str:
    ran.append(city)
    return f"{city}: {len(ran)}"


BOTH = '@call lookup {"city": "Rome"}\n@call lookup {"city": "Oslo"}\n@then\n@say Done.'


def test_calls_made_at_once_have_lanes_named_after_their_tools(
    agent: Call, twice: Call, tape: Path
) -> None:
    """The lanes are named in the order of the calls, whichever call comes first."""
    tool = FunctionTool(lookup, "Looks.")
    recorded, again = twice(lambda: results(agent("helper", BOTH, tools=[tool])))
    assert recorded == again
    assert sorted(ran) == ["Oslo", "Rome"]
    with tracefork.Tape.open(tape) as opened:
        lanes = [one.lane.split("/") for one in opened.exchanges if one.aside.seam == "tool"]
    assert sorted(name for lane in lanes for name in lane if "lookup" in name) == [
        "_execute_tool_calls.1.lookup.1",
        "_execute_tool_calls.1.lookup.2",
    ]


def test_a_fork_says_another_result_of_a_tool(agent: Call, tape: Path) -> None:
    """Its text is what the model gets, also where the tool returns objects."""

    def run() -> str:
        tools = [FunctionTool(model, "Works.", name="work")]
        return str(results(agent("helper", CALL, tools=tools)))

    with tracefork.record(tape):
        run()
    ran.clear()
    with tracefork.fork(tape, "tool:work", tracefork.Replace(text="It snows.")):
        assert "('It snows.', False)" in run()
    assert ran == []


@pytest.mark.parametrize("effect", ["read", None])
def test_a_fork_runs_a_tool_that_only_reads(agent: Call, tape: Path, effect: Any) -> None:
    """`@tracefork.tool` on the function says it; a fork refuses a tool of which nothing is known.

    The refusal ends the run, although agents tell models about the errors of tools.
    """
    function = tracefork.tool(effect=effect)(text)

    def run() -> list[str]:
        return results(agent("helper", CALL, tools=[FunctionTool(function, "Works.", "work")]))

    with tracefork.record(tape):
        run()
    ran.clear()
    if effect == "read":
        with tracefork.fork(tape, 0):
            run()
    else:
        with pytest.raises(tracefork.TraceforkError), tracefork.fork(tape, 0):
            run()
    assert ran == (["text"] if effect == "read" else [])


def test_a_hand_off_is_a_step_that_any_fork_may_make(agent: Call, tape: Path, paths: Call) -> None:
    """It is named after the agent that gets the work, and has no side effect."""

    def run() -> list[str]:
        return results(agent("triage", "@call transfer_to_billing {}", handoffs=["billing"]))

    with tracefork.record(tape):
        recorded = run()
    assert paths() == ["agent:triage ▸ model:gpt-4o", "agent:triage ▸ handoff:billing"]
    with tracefork.fork(tape, "handoff:billing"):
        assert run() == recorded


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("kind", ["agent", "team"])
def test_an_agent_that_serves_as_a_tool_runs_again(
    agent: Call, twice: Call, paths: Call, kind: str, streamed: bool
) -> None:
    """What it asks is on the tape, in steps of its own, and so are its tools."""

    def run() -> list[str]:
        inner = agent("inner", CALL, tools=[FunctionTool(text, "Works.", name="work")])
        tool: Any = AgentTool(inner)
        if kind == "team":
            tool = TeamTool(RoundRobinGroupChat([inner], max_turns=1), "inner", "Works.")
        words = '@call inner {"task": "Go."}\n@then\n@say Done.'
        outer = agent("outer", words, tools=[tool], reflect_on_tool_use=True)
        if not streamed:
            return results(outer)
        return [type(event).__name__ for event in asyncio.run(_events(outer))]

    recorded, again = twice(run)
    assert recorded == again
    assert ran == ["text"]
    inside = "agent:outer ▸ tool:inner ▸ "
    assert [path for path in paths() if path.startswith(inside) and path.endswith("tool:work")]


async def _events(agent: Any) -> list[Any]:
    return [event async for event in agent.run_stream(task="Go.")]


def test_a_function_that_asks_over_http_is_one_exchange(
    agent: Call, twice: Call, url: str, tape: Path
) -> None:
    """AutoGen runs it in a thread without a context; what it asks still belongs to its call."""

    def work() -> str:
        return httpx.get(f"{url}/echo/hi").text

    def run() -> list[str]:
        return results(agent("helper", CALL, tools=[FunctionTool(work, "Asks.")]))

    recorded, again = twice(run)
    assert recorded == again
    with tracefork.Tape.open(tape) as opened:
        assert [one.aside.seam == "tool" for one in opened.exchanges].count(True) == 1
        assert not [one for one in opened.exchanges if "echo" in one.url]


@pytest.mark.parametrize("marked", ["tool", "function"])
def test_a_tool_that_is_left_live_runs_again(
    agent: Call, twice: Call, url: str, paths: Call, marked: str
) -> None:
    """Each of its requests is an exchange in its step, though it runs in a thread."""

    def work() -> str:
        ran.append("work")
        return httpx.get(f"{url}/echo/hi").text

    def run() -> list[str]:
        tool = FunctionTool(leave_live(work) if marked == "function" else work, "Asks.")
        return results(
            agent("helper", CALL, tools=[leave_live(tool) if marked == "tool" else tool])
        )

    recorded, again = twice(run)
    assert recorded == again
    assert ran == ["work", "work"]
    assert paths()[1] == "agent:helper ▸ tool:work"


def test_only_tools_and_functions_are_left_live() -> None:
    """A name is neither."""
    with pytest.raises(tracefork.UsageError, match="neither a tool of AutoGen nor a function"):
        leave_live("work")


def test_agents_in_a_function_are_part_of_its_call(agent: Call, twice: Call, tape: Path) -> None:
    """A replay does not run them, so they make no steps."""

    async def work() -> str:
        done = await agent("inner", "@say Hi.").run(task="Go.")
        return str(done.messages[-1].to_text())

    recorded, again = twice(
        lambda: results(agent("helper", CALL, tools=[FunctionTool(work, "Asks.")]))
    )
    assert recorded == again
    with tracefork.Tape.open(tape) as opened:
        assert not [step for step in opened.steps if step.name == "inner"]
