"""A tool that failed fails again with the same exception, and is handled the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.tools import BaseTool, ToolException, tool

import tracefork_core as tracefork
from tracefork_langgraph import bind_tool, bind_tools


class OutOfStock(Exception):
    """A failure of the shop."""


class Hidden(Exception):
    """A failure that no tool names: the tool finds it in a table."""


class Bank:
    class Closed(Exception):
        """It is Sunday."""


class Shop:
    class Closed(Exception):
        """Another class of this name."""


ELSEWHERE = {"hidden": Hidden}


@tool
def order(why: str) -> str:
    """Fail."""
    match why:
        case "stock":
            raise OutOfStock("no turntables")
        case "tool":
            raise ToolException("closed")
        case "value":
            raise ValueError("no such order")
        case "bank":
            raise Bank.Closed("on Sundays")
        case "shop":
            raise Shop.Closed("on Mondays")
    raise ELSEWHERE[why]("nobody knows")


def copy(**options: object) -> BaseTool:
    """Return the tool, bound, with other settings for its errors."""
    made = order.model_copy(update=options)
    return bind_tool(made)


@pytest.mark.parametrize(
    ("why", "comes"),
    [
        ("stock", OutOfStock),
        ("tool", ToolException),
        ("value", ValueError),
        ("bank", Bank.Closed),
        ("shop", tracefork.ToolError),
        ("hidden", tracefork.ToolError),
    ],
)
def test_failure_comes_back_as_a_known_class(tape: Path, why: str, comes: type[Exception]) -> None:
    """The same class if it is builtin or the tool's code names it, else ToolError; in both runs.

    Of two classes with one name, a tape can only restore the first.
    """
    bound = copy()
    with tracefork.record(tape), pytest.raises(comes) as recorded:
        bound.invoke({"why": why})
    with tracefork.replay(tape), pytest.raises(comes) as replayed:
        bound.invoke({"why": why})
    assert type(replayed.value) is type(recorded.value) is comes
    assert str(replayed.value) == str(recorded.value)


def test_listed_failure_comes_back_as_its_class(tape: Path) -> None:
    """It is listed in `bind_tool(raises=…)`, and the code does not name it."""
    bound = bind_tool(order.model_copy(), raises=[Hidden])
    with tracefork.record(tape), pytest.raises(Hidden):
        bound.invoke({"why": "hidden"})
    with tracefork.replay(tape), pytest.raises(Hidden, match="nobody knows"):
        bound.invoke({"why": "hidden"})


@pytest.mark.parametrize("handled", [True, "sorry", (OutOfStock,), lambda error: f"no: {error}"])
def test_node_handles_a_replayed_failure_like_the_recorded_one(
    calling: Any, calls: Any, said: Any, twice: Any, handled: object
) -> None:
    """With each form of `handle_tool_errors`."""
    graph = calling(copy(), handle_tool_errors=handled)
    recorded, replayed = twice(
        lambda: [(m.content, m.status) for m in said(graph, calls(("order", {"why": "stock"})))]
    )
    assert replayed == recorded
    assert recorded[0][1] == "error"


def test_a_tool_handles_its_own_replayed_failure(
    calling: Any, calls: Any, said: Any, twice: Any
) -> None:
    """`handle_tool_error` of the tool is used in a replay too."""
    graph = calling(copy(handle_tool_error="we are closed"))
    recorded, replayed = twice(
        lambda: said(graph, calls(("order", {"why": "tool"})), "ainvoke")[0].content
    )
    assert replayed == recorded == "we are closed"


def test_each_attempt_of_a_retry_is_an_exchange(
    model: Any, attached: Any, drive: Any, twice: Any, exchanges: Any
) -> None:
    """A middleware that retries gets the same failures, and then the same result."""
    tries: list[str] = []

    @tool
    def flaky(city: str) -> str:
        """Fail twice."""
        tries.append(city)
        if len(tries) < 3:
            raise OutOfStock(f"attempt {len(tries)}")
        return f"{city}: rain"

    retry = ToolRetryMiddleware(
        max_retries=2, retry_on=(OutOfStock,), initial_delay=0, jitter=False
    )
    graph = bind_tools(attached(create_agent(model(), [flaky], middleware=[retry])))
    ticket = '@call flaky {"city": "Oslo"}\n@then\n@say Rain.'
    recorded, replayed = twice(lambda: drive(graph, "invoke", ticket))
    assert replayed == recorded
    assert "Oslo: rain" in str(recorded)
    assert exchanges() == [("flaky", {"city": "Oslo"})] * 3
    assert tries == ["Oslo"] * 3
