"""Tools of LangGraph that a recording names: `--tool MODULE:NAME`, with the adapter and without."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import tracefork_core as tracefork

SHOP = '''
from langchain_core.tools import tool

ran = []


def look_up(order: int) -> str:
    """Look up an order."""
    ran.append(order)
    return f"order {order} is lost"


@tool
def refund(order: int) -> str:
    """Pay back."""
    ran.append(order)
    return f"order {order} is paid back"
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import a module with a plain function and a tool of LangChain."""
    (tmp_path / "lang_shop.py").write_text(SHOP)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lang_shop")
    del sys.modules["lang_shop"]


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream"])
@pytest.mark.parametrize("name", ["look_up", "refund"])
@pytest.mark.parametrize("is_attached", [False, True])
def test_a_named_tool_of_a_graph_runs_once(
    how: str,
    name: str,
    is_attached: bool,
    shop: ModuleType,
    tape: Path,
    calls: Callable[..., Any],
    said: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    """One exchange in a ToolNode; a replay and a fork with a stub do not run it."""
    node = StateGraph(MessagesState).add_node("tools", ToolNode([getattr(shop, name)]))
    graph: Any = node.add_edge(START, "tools").compile()
    if is_attached:
        graph = request.getfixturevalue("attached")(graph)
    state = calls((name, {"order": 17}))
    with tracefork.record(tape, tools=[f"lang_shop:{name}=write"]) as run:
        recorded = [message.content for message in said(graph, state, how)]
    assert run.receipt is not None
    assert (run.receipt.exchanges, run.receipt.unused_tools) == (1, [])
    with tracefork.replay(tape) as again:
        assert [message.content for message in said(graph, state, how)] == recorded
    assert again.digest == run.digest
    with tracefork.fork(tape, at=0, writes="stub"):
        assert [message.content for message in said(graph, state, how)] == recorded
    assert shop.ran == [17]
