"""Tests of OpenAI Agents with the mark `tape`: recorded once, replayed without a key or a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.suites import recorded_and_replayed

pytestmark = pytest.mark.many_processes

TESTS = """
import os, pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI

TASK = '@call lookup_order {"order": 17}\\n@then\\n@say It was delivered.'
RAN = []

@function_tool
def lookup_order(order: int) -> str:
    "Look up an order."
    RAN.append(order)
    return f"order {order} was delivered"

CLIENT = AsyncOpenAI(base_url=os.environ["PROVIDER"] + "/v1")  # wants a key
MODEL = OpenAIChatCompletionsModel("gpt-5-mini", CLIENT)
desk = Agent(name="Desk", model=MODEL, tools=[lookup_order])

@pytest.mark.asyncio
async def test_async(tape):
    assert "It was delivered." in (await Runner.run(desk, TASK)).final_output
    (call,) = tape.tools
    assert call.name == "lookup_order" and call.arguments == {"order": 17}
    assert len(tape.calls) == 2
    assert bool(RAN) == tape.is_live
"""


def test_an_agent_is_recorded_once_and_replayed_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tool runs once, as it is recorded."""
    _, replayed = recorded_and_replayed(TESTS, tmp_path, monkeypatch)
    assert replayed.outcomes == {"test_async": "passed"}, replayed.text
