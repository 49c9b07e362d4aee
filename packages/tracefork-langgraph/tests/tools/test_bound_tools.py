"""The tools of a graph are exchanges: they run while recording, and not in a replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_langgraph import attach, bind_tool, bind_tools, detach, unbind_tool

TICKET = """\
@call weather {"city": "Oslo"}
@call weather {"city": "Rome"}
@then
@say Take an umbrella."""


class Place(BaseModel):
    city: str
    days: int = 1


class Weather(BaseTool):
    """A tool defined by a class, which works in async code too."""

    name: str = "weather"
    description: str = "Tell the weather."
    args_schema: type[BaseModel] = Place
    done: Any

    def _run(self, city: str, days: int, **_: object) -> str:
        self.done.append(city)
        return f"{city}: {days} of rain"


class AsyncWeather(Weather):
    """The same, with its own async method."""

    async def _arun(self, city: str, days: int) -> str:
        return self._run(city, days)


def by_decorator(done: list[str]) -> BaseTool:
    @tool
    def weather(city: str, days: int = 1) -> str:
        """Tell the weather."""
        done.append(city)
        return f"{city}: {days} of rain"

    return weather


def by_coroutine(done: list[str]) -> BaseTool:
    async def weather(city: str, days: int = 1) -> str:
        """Tell the weather."""
        done.append(city)
        return f"{city}: {days} of rain"

    return StructuredTool.from_function(coroutine=weather)


def by_schema(done: list[str]) -> BaseTool:
    async def weather(**told: Any) -> str:
        done.append(told["city"])
        return f"{told['city']}: {told.get('days', 1)} of rain"

    names = {"city": {"type": "string"}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": names}
    return StructuredTool(
        name="weather", description="Tell it.", args_schema=schema, coroutine=weather
    )


KINDS: dict[str, Any] = {
    "decorated": by_decorator,
    "a coroutine": by_coroutine,
    "a schema": by_schema,
    "a class": lambda done: Weather(done=done),
    "an async class": lambda done: AsyncWeather(done=done),
}


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "astream", "messages", "events"])
def test_agent_replays_without_running_its_tools(
    model: Any, attached: Any, drive: Any, twice: Any, done: Any, how: str
) -> None:
    """Two parallel tools run while recording; the replay returns their results from the tape."""
    graph = bind_tools(attached(create_agent(model(), [by_decorator(done)], name="support")))
    recorded, replayed = twice(lambda: (drive(graph, how, TICKET), done.now()))
    assert replayed == (recorded[0], [])
    assert recorded[1] == ["Oslo", "Rome"]
    assert "Oslo: 1 of rain" in str(recorded[0])


@pytest.mark.parametrize(
    ("made", "how"),
    [
        ("decorated", "invoke"),
        ("decorated", "ainvoke"),
        ("decorated", "stream"),
        ("a coroutine", "ainvoke"),
        ("a schema", "ainvoke"),
        ("a class", "invoke"),
        ("a class", "ainvoke"),
        ("an async class", "invoke"),
        ("an async class", "ainvoke"),
    ],
)
def test_each_kind_of_tool_is_an_exchange(
    calling: Any, calls: Any, said: Any, twice: Any, done: Any, exchanges: Any, made: str, how: str
) -> None:
    """However a tool is defined, its call is on the tape by name and arguments, and replays."""
    graph, state = calling(KINDS[made](done)), calls(("weather", {"city": "Oslo", "days": 2}))
    recorded, replayed = twice(lambda: (said(graph, state, how), done.now()))
    assert recorded[0][0].content == "Oslo: 2 of rain"
    assert (recorded[1], replayed[1]) == (["Oslo"], [])
    assert [m.content for m in replayed[0]] == [m.content for m in recorded[0]]
    assert exchanges() == [("weather", {"city": "Oslo", "days": 2})]


def test_another_argument_is_a_divergence(
    calling: Any, calls: Any, said: Any, tape: Path, done: Any
) -> None:
    """The control of all replays here: the error names the argument, and the tool does not run."""
    graph = calling(by_decorator(done), handle_tool_errors=True)
    with tracefork.record(tape):
        said(graph, calls(("weather", {"city": "Oslo"})))
    done.now()
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        said(graph, calls(("weather", {"city": "Rome"})))
    found = caught.value.divergence
    assert (found.pointer, found.recorded, found.actual) == ("/city", "Oslo", "Rome")
    assert done == []


def test_tools_called_by_a_node_itself_are_exchanges(tape: Path, attached: Any, done: Any) -> None:
    """That covers tools in closures, and plain `Tool` objects."""
    weather = by_decorator(done)
    lookup = Tool("look up", lambda text: done.append(text) or text.upper(), "Look up.")

    def node(_: object) -> dict[str, Any]:
        return {"messages": [weather.invoke({"city": "Oslo"}), lookup.invoke("rain")]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()
    bind_tools(attached(graph))
    with tracefork.record(tape):
        recorded = graph.invoke({"messages": []})["messages"]
    assert done.now() == ["Oslo", "rain"]
    with tracefork.replay(tape):
        replayed = graph.invoke({"messages": []})["messages"]
    assert [m.content for m in replayed] == [m.content for m in recorded]
    assert [m.content for m in replayed] == ["Oslo: 1 of rain", "RAIN"]
    assert done == []


def test_replayed_tool_calls_its_callbacks_and_validates_arguments(
    calling: Any, calls: Any, said: Any, twice: Any, done: Any
) -> None:
    """One call succeeds; the other has an unknown argument and is refused."""
    heard: list[str] = []

    class Ear(BaseCallbackHandler):
        def on_tool_start(self, *_: object, inputs: object = None, **__: object) -> None:
            heard.append(f"start {inputs}")

        def on_tool_end(self, output: Any, **_: object) -> None:
            heard.append(f"end {output.content}")

        def on_tool_error(self, error: BaseException, **_: object) -> None:
            heard.append(f"error {type(error).__name__}")

    graph = calling(by_decorator(done)).with_config(callbacks=[Ear()])
    state = calls(("weather", {"city": "Oslo"}), ("weather", {"town": "Rome"}))

    def run() -> tuple[list[str], list[str]]:
        contents = [m.content for m in said(graph, state)]
        told = sorted(heard)
        heard.clear()
        return contents, told

    recorded, replayed = twice(run)
    assert replayed == recorded
    assert recorded[1] == [
        "end Oslo: 1 of rain",
        "error ValidationError",
        "start {'city': 'Oslo'}",
        "start {'town': 'Rome'}",
    ]


def test_an_exchange_has_the_step_of_its_tool(
    calling: Any, calls: Any, said: Any, tape: Path, done: Any, paths: Any
) -> None:
    """Two tools of one node have a step each."""
    graph = calling(by_decorator(done), Weather(name="rain", done=done))
    state = calls(("weather", {"city": "Oslo"}), ("rain", {"city": "Oslo"}))
    with tracefork.record(tape):
        said(graph, state)
    assert sorted(paths()) == [
        ("LangGraph", "tools", "rain"),
        ("LangGraph", "tools", "weather"),
    ]


def test_tool_that_calls_a_model_stays_live(
    model: Any, calling: Any, calls: Any, said: Any, twice: Any, paths: Any, done: Any
) -> None:
    """Its model calls are on the tape one by one; the tool itself runs again."""
    asked = model()

    @tool
    def expert(topic: str) -> str:
        """Ask an expert."""
        done.append(topic)
        return str(asked.invoke(topic).content)

    graph, state = calling(expert), calls(("expert", {"topic": "tapes"}))
    recorded, replayed = twice(lambda: ([m.content for m in said(graph, state)], done.now()))
    assert replayed == recorded
    assert recorded[1] == ["tapes"]
    assert paths() == [("LangGraph", "tools", "expert", "ChatOpenAI")]


def test_requests_inside_a_tool_are_not_recorded_again(
    calling: Any, calls: Any, said: Any, twice: Any, server: Any, exchanges: Any, done: Any
) -> None:
    """Requests, chains and tools inside a recorded tool are part of its exchange."""
    weather = bind_tool(by_decorator(done))
    shout = RunnableLambda(str.upper)

    @tool
    def fetch(path: str) -> str:
        """Fetch a page."""
        page = httpx.get(f"{server.url}/echo?{path}").text
        return shout.invoke(page + weather.invoke({"city": "Oslo"}))

    graph = calling(fetch)
    recorded, replayed = twice(lambda: said(graph, calls(("fetch", {"path": "a"})))[0].content)
    assert replayed == recorded
    assert "OSLO: 1 OF RAIN" in recorded
    assert (exchanges(), done) == ([("fetch", {"path": "a"})], ["Oslo"])


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_equal_parallel_calls_keep_their_own_results(
    calling: Any, calls: Any, said: Any, twice: Any, done: Any, how: str
) -> None:
    """Of four parallel calls with one argument, each id gets its own result again."""

    @tool
    def draw(deck: str) -> str:
        """Draw a card."""
        done.append(deck)
        return f"card {len(done)}"

    graph, asked = calling(draw), calls(*[("draw", {"deck": "a"})] * 4)

    def run() -> tuple[dict[str, str], list[str]]:
        return {m.tool_call_id: m.content for m in said(graph, asked, how)}, done.now()

    recorded, replayed = twice(run)
    assert replayed == (recorded[0], [])
    assert recorded[1] == ["a"] * 4


def test_tool_with_live_metadata_is_not_bound(
    calling: Any, calls: Any, said: Any, twice: Any, done: Any, exchanges: Any
) -> None:
    """The metadata wins over a declared effect. `bind_tool` still binds the tool."""
    left = by_decorator(done)
    left.metadata = {"tracefork": "live", "effect": "read"}
    graph, state = calling(left), calls(("weather", {"city": "Oslo"}))
    recorded, replayed = twice(lambda: (len(said(graph, state)), done.now()))
    assert recorded == replayed == (1, ["Oslo"])
    assert exchanges() == []
    assert bind_tool(left) is left
    unbind_tool(left)


def test_detach_restores_the_tool(
    calling: Any, calls: Any, said: Any, tape: Path, done: Any, exchanges: Any
) -> None:
    """Attached twice and detached once, the tool runs and is not on the tape."""
    weather = by_decorator(done)
    before = dict(vars(weather))
    graph = calling(weather)
    assert vars(weather) != before
    detach(attach(graph))
    assert vars(weather) == before
    with tracefork.record(tape):
        said(graph, calls(("weather", {"city": "Oslo"})))
    assert (exchanges(), done) == ([], ["Oslo"])


def test_shared_tool_stays_bound_until_both_graphs_are_detached(
    calling: Any, calls: Any, said: Any, tape: Path, done: Any
) -> None:
    """Then it has its own methods again."""
    weather = by_decorator(done)
    one, other = calling(weather), calling(weather)
    state = calls(("weather", {"city": "Oslo"}))
    with tracefork.record(tape):
        said(other, state)
    detach(one)
    assert done.now() == ["Oslo"]
    with tracefork.replay(tape):
        said(other, state)
    assert done.now() == []
    detach(other)
    assert weather.invoke({"city": "Rome"}) == "Rome: 1 of rain"
    assert not {"_run", "_arun"} & vars(weather).keys()


def test_bound_tool_runs_normally_outside_a_session(done: Any) -> None:
    """Sync and async."""
    weather = bind_tool(by_decorator(done))
    assert weather.invoke({"city": "Oslo"}) == "Oslo: 1 of rain"
    assert asyncio.run(weather.ainvoke({"city": "Rome", "days": 2})) == "Rome: 2 of rain"
    assert done == ["Oslo", "Rome"]


def test_bind_tool_refuses_a_function() -> None:
    """The error names the type of the object."""
    with pytest.raises(tracefork.UsageError, match=r"cannot bind builtins\.function"):
        bind_tool(lambda: None)
