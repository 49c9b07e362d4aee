"""A tool that runs an agent runs in replays, too: the calls inside are exchanges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.common_tools.image_generation import image_generation_tool
from pydantic_ai.native_tools import ImageGenerationTool
from pydantic_ai.toolsets import FunctionToolset

import tracefork_core as tracefork
from tracefork_pydantic_ai import leave_live
from tracefork_pydantic_ai.agent_references import runs_agents

Call = Callable[..., Any]
WORDS = '@call write {"topic": "tea"}\n@then\n@say Done.'

writer: Any = Agent("test", name="writer")
DESK = {"writer": writer}
ran: list[str] = []


async def names_the_agent(topic: str) -> str:
    return str((await writer.run(topic)).output)


def asks_a_helper(topic: str) -> str:
    return _asked(topic)


def _asked(topic: str) -> str:
    return str(writer.run_sync(topic).output)


async def takes_it_from_a_table(topic: str) -> str:
    return str((await DESK["writer"].run(topic)).output)


async def makes_it(topic: str) -> str:
    return str((await Agent("test", name="own").run(topic)).output)


async def gets_it_with_the_run(ctx: RunContext[Any], topic: str) -> str:
    return str((await ctx.deps.writer.run(topic)).output)


async def hidden(topic: str) -> str:
    return str((await globals()["writer"].run(topic)).output)


def names_it_only(topic: str) -> str:
    return f"{topic} is a matter for {writer.name}"


def runs_something_else(topic: str) -> str:
    import asyncio

    return asyncio.run(_nothing(topic))


async def _nothing(topic: str) -> str:
    return topic


class Team:
    """Has an agent, and a method that is a tool."""

    def __init__(self) -> None:
        self.writer = writer

    async def write(self, topic: str) -> str:
        return await self._written(topic)

    async def _written(self, topic: str) -> str:
        return str((await self.writer.run(topic)).output)


TEAM = Team()


async def asks_an_object(topic: str) -> str:
    return await TEAM.write(topic)


@dataclass
class Deps:
    writer: Any


@pytest.mark.parametrize(
    ("function", "does"),
    [
        (names_the_agent, True),
        (asks_a_helper, True),
        (takes_it_from_a_table, True),
        (makes_it, True),
        (gets_it_with_the_run, True),
        (TEAM.write, True),
        (asks_an_object, True),
        (partial(names_the_agent, topic="tea"), True),
        (image_generation_tool("test", ImageGenerationTool()).function, True),
        (hidden, False),
        (names_it_only, False),
        (runs_something_else, False),
        (print, False),
    ],
)
def test_a_function_says_by_its_names_whether_it_runs_agents(function: Any, does: bool) -> None:
    """Nothing is run for that, and the answer is the same in each process."""
    assert runs_agents(function, Deps(writer)) is does


@pytest.fixture
def desk(agent: Call) -> Callable[..., Any]:
    """Make an agent that delegates to the writer by a function."""

    def make(function: Any, words: str = WORDS) -> Any:
        inner = agent("writer")
        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(function, name="write")
        return partial(_asked_of, agent("desk", words, toolsets=[toolset]), inner)

    return make


def _asked_of(desk: Any, inner: Any, ask: Call) -> str:
    with writer.override(model=inner.model):
        return str(ask(desk, deps=Deps(inner)))


@pytest.mark.parametrize("function", [names_the_agent, gets_it_with_the_run])
def test_the_calls_of_an_inner_agent_are_exchanges_of_its_own(
    desk: Call, ask: Call, twice: Call, paths: Call, function: Any
) -> None:
    """They are in the step of the tool, so a fork may begin there."""
    recorded, again = twice(partial(desk(function), ask))
    assert recorded == again
    (inner,) = [path for path in paths() if "tool:write" in path]
    assert "tool:write ▸ agent:writer" in inner
    assert len(paths()) == 3


def test_a_fork_changes_what_an_inner_agent_is_told(desk: Call, ask: Call, tape: Any) -> None:
    """The tool runs with the other answer, and gives it to the agent around."""
    run = partial(desk(names_the_agent), ask)
    with tracefork.record(tape):
        recorded = run()
    with tracefork.fork(tape, 1, tracefork.Replace(text="All about tea.")):
        forked = run()
    assert "All about tea." not in recorded
    assert "All about tea." in forked


def test_an_agent_that_is_not_seen_is_warned_of(desk: Call, ask: Call, tape: Any) -> None:
    """The tool is one exchange then; a mark makes its calls exchanges."""
    run = partial(desk(hidden), ask)
    with tracefork.record(tape), pytest.warns(UserWarning, match=r"leave_live\(tool\)"):
        run()
    with tracefork.Tape.open(tape) as opened:
        assert not [step for step in opened.steps if step.name == "writer"]
        assert len(opened.exchanges) == 3


@pytest.mark.parametrize("marked", ["function", "tool", "toolset"])
def test_a_marked_tool_runs_in_replays(
    agent: Call, ask: Call, twice: Call, paths: Call, marked: str
) -> None:
    """The mark is on the function, on its tool, or on the toolset for all of its tools."""

    async def write(topic: str) -> str:
        ran.append(topic)
        return await hidden(topic)

    ran.clear()
    inner, tool = agent("writer"), Tool(write)
    toolset: FunctionToolset[Any] = FunctionToolset([tool])
    leave_live({"function": write, "tool": tool, "toolset": toolset}[marked])
    outer = agent("desk", WORDS, toolsets=[toolset])
    recorded, again = twice(lambda: _asked_of(outer, inner, ask))
    assert recorded == again
    assert ran == ["tea", "tea"]
    assert any("tool:write ▸ agent:writer" in path for path in paths())


def test_what_is_no_tool_cannot_be_marked() -> None:
    """The error says what can."""
    with pytest.raises(tracefork.UsageError, match="neither a tool of pydantic-ai nor a function"):
        leave_live(3)


def test_a_function_that_says_its_effect_is_one_exchange(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Names are a guess: `@tracefork.tool` on the function counts more."""

    @tracefork.tool(effect="read")
    async def write(topic: str) -> str:
        ran.append(topic)
        return f"{topic}: {writer.name if topic else await writer.run(topic)}"

    ran.clear()
    desk = agent("desk", WORDS, tools=[write])
    recorded, again = twice(lambda: ask(desk))
    assert recorded == again
    assert ran == ["tea"]
