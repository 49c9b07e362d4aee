"""Tests of a graph with the mark `tape`: recorded once, replayed without a key and a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.suites import Suite, quiet

from tracefork_testkit import ProviderServer

TESTS = """
import os, pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from tracefork_langgraph import attach

URL = os.environ["PROVIDER"] + "/v1"
TASK = '@call lookup_order {"order": 17}\\n@then\\n@say It was delivered.'

def lookup_order(order: int) -> str:
    "Look up an order."
    return f"order {order} was delivered"

MODEL = ChatOpenAI(model="gpt-5-mini", base_url=URL)  # wants a key
desk = attach(create_agent(MODEL, [lookup_order]))

def said(state):
    return state["messages"][-1].content

@pytest.mark.tape
def test_sync(tape):
    assert "It was delivered." in said(desk.invoke({"messages": TASK}))
    (call,) = tape.tools
    assert call.name == "lookup_order" and call.arguments == {"order": 17}
    assert "was delivered" in str(call.result)
    assert len(tape.calls) == 2

@pytest.mark.tape
@pytest.mark.asyncio
async def test_async():
    assert "It was delivered." in said(await desk.ainvoke({"messages": TASK}))
"""
PLUGINS = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")


def test_a_graph_is_recorded_once_and_replayed_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another prompt fails with the card, which names the step."""
    quiet(monkeypatch)
    with ProviderServer(nondeterministic=True) as server:
        monkeypatch.setenv("PROVIDER", server.url)
        suite = Suite(tmp_path, server)
        (tmp_path / "test_agent.py").write_text(TESTS)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijkl")
        recorded = suite.here(*PLUGINS, "--tape-mode=once")
        assert recorded.outcomes == {"test_sync": "passed", "test_async": "passed"}, recorded.text
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = suite.here(*PLUGINS)
    assert replayed.outcomes == recorded.outcomes, replayed.text
    suite.edit('desk.invoke({"messages": TASK', 'desk.invoke({"messages": TASK + "!"')
    different = suite.here(*PLUGINS)
    assert different.failed == {"test_sync"}
    assert "▸ model" in different.text
