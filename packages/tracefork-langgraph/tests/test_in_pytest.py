"""Tests of a graph with the mark `tape`: recorded once, replayed without a key and a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.suites import ASYNCIO, recorded_and_replayed

pytestmark = pytest.mark.many_processes

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


def test_a_graph_is_recorded_once_and_replayed_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another prompt fails with the card, which names the step."""
    suite, replayed = recorded_and_replayed(TESTS, tmp_path, monkeypatch)
    assert replayed.outcomes == {"test_sync": "passed", "test_async": "passed"}, replayed.text
    suite.edit('desk.invoke({"messages": TASK', 'desk.invoke({"messages": TASK + "!"')
    different = suite.here(*ASYNCIO)
    assert different.failed == {"test_sync"}
    assert "▸ model" in different.text
