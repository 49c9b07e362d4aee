"""With TapeToolMiddleware, tools that appear while an agent runs are exchanges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import BaseTool, tool

import tracefork_core as tracefork
from tracefork_langgraph import TapeToolMiddleware, bind_tools

TICKET = '@call weather {"city": "Oslo"}\n@then\n@say Take an umbrella.'


class Brought(AgentMiddleware):
    """Add a tool that is created again for each call."""

    def __init__(self, make: Callable[[], BaseTool]) -> None:
        super().__init__()
        self.make = make

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[*request.tools, self.make()]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tools=[*request.tools, self.make()]))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tool=self.make()))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tool=self.make()))


def weather(done: list[str]) -> BaseTool:
    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        done.append(city)
        return f"{city}: rain"

    return weather


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages"])
def test_tool_added_by_another_middleware_is_an_exchange(
    model: Any,
    attached: Any,
    drive: Any,
    twice: Any,
    exchanges: Any,
    paths: Any,
    done: Any,
    how: str,
) -> None:
    """The last middleware sees the tool that another one added, and its step is recorded."""
    middleware = [Brought(lambda: weather(done)), TapeToolMiddleware()]
    graph = attached(create_agent(model(), [], middleware=middleware, name="support"))
    recorded, replayed = twice(lambda: (drive(graph, how, TICKET), done.now()))
    assert recorded[1] == ["Oslo"]
    assert replayed == (recorded[0], [])
    assert exchanges() == [("weather", {"city": "Oslo"})]
    assert ("support", "tools", "weather") in paths()


def test_without_the_middleware_such_a_tool_runs_again(
    model: Any, attached: Any, drive: Any, twice: Any, exchanges: Any, done: Any
) -> None:
    """The control: nothing else puts it on the tape, even if all found tools are bound."""
    middleware = [Brought(lambda: weather(done))]
    graph = bind_tools(attached(create_agent(model(), [], middleware=middleware)))
    recorded, replayed = twice(lambda: (drive(graph, "invoke", TICKET), done.now()))
    assert recorded[1] == replayed[1] == ["Oslo"]
    assert exchanges() == []


def test_tool_keeps_its_own_state(
    model: Any, attached: Any, drive: Any, tape: Any, exchanges: Any
) -> None:
    """The tool itself does the work, so its attributes are still there at the next call."""

    class Counter(BaseTool):
        name: str = "weather"
        description: str = "Count."
        count: int = 0

        def _run(self, city: str) -> str:
            self.count += 1
            return f"{city}: {self.count}"

    counter = Counter()
    graph = attached(create_agent(model(), [counter], middleware=[TapeToolMiddleware()]))
    with tracefork.record(tape):
        drive(graph, "invoke", TICKET.replace("@then", '@then\n@call weather {"city": "x"}\n@then'))
    assert counter.count == 2
    assert len(exchanges()) == 2
