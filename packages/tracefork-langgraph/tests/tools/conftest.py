"""Records of what tools did, and graphs that call tools."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from openai import Timeout

import tracefork_core as tracefork
from tracefork_langgraph import bind_tools


class Done(list[str]):
    """The real work that tools did. It has no order: some tools run in parallel."""

    def now(self) -> list[str]:
        """Return what was done since the last call."""
        done = sorted(self)
        self.clear()
        return done


@pytest.fixture
def done() -> Done:
    """The list in which the tools of a test note each real run."""
    return Done()


@pytest.fixture
def model(model: Callable[..., Any]) -> Callable[..., Any]:
    """Make a chat model that closes its connections: LangChain caches no client with this timeout.

    LangChain caches 128 clients. More models would evict one that another test left open.
    """
    return partial(model, timeout=Timeout(60), default_headers={"Connection": "close"})


@pytest.fixture
def calling(attached: Callable[[Any], Any]) -> Callable[..., Any]:
    """Make a graph of one ToolNode, attach to it, and bind its tools."""

    def make(*tools: Any, state: type = MessagesState, **options: Any) -> Any:
        saver = options.pop("checkpointer", None)
        builder = StateGraph(state).add_node("tools", ToolNode(list(tools), **options))
        return bind_tools(attached(builder.add_edge(START, "tools").compile(checkpointer=saver)))

    return make


@pytest.fixture
def calls() -> Callable[..., dict[str, Any]]:
    """Make a state in which a model has called tools, from names and arguments."""

    def state(*told: tuple[str, dict[str, Any]], **more: object) -> dict[str, Any]:
        named = enumerate(told)
        asked = [{"name": name, "args": args, "id": f"call_{n}"} for n, (name, args) in named]
        return {"messages": [AIMessage("", tool_calls=asked)], **more}

    return state


@pytest.fixture
def said() -> Callable[..., list[Any]]:
    """Run a graph of tools in one of the ways, and return the tool messages."""
    return _said


def _said(graph: Any, state: Any, way: str = "invoke") -> list[Any]:
    state = {**state, "messages": copy.deepcopy(state["messages"])}  # A run adds ids to them.
    match way:
        case "invoke":
            messages = graph.invoke(state)["messages"]
        case "ainvoke":
            messages = asyncio.run(graph.ainvoke(state))["messages"]
        case "stream":
            messages = [m for chunk in graph.stream(state) for m in chunk["tools"]["messages"]]
        case _:
            raise AssertionError(way)
    return [message for message in messages if message.type == "tool"]


@pytest.fixture
def exchanges(tape: Path) -> Callable[[], list[tuple[str, Any]]]:
    """Read the tool calls on the tape: their names and requests."""

    def read() -> list[tuple[str, Any]]:
        with tracefork.Tape.open(tape) as opened:
            return [
                (one.url.removeprefix("tool:"), json.loads(one.request_body))
                for one in opened.exchanges
                if one.method == "CALL"
            ]

    return read
