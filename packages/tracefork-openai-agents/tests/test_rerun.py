"""After an edit of one agent's instructions, only that agent asks the model again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import function_tool

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

looked_up: list[int] = []


@function_tool
def look_up(order: int) -> str:
    """Look an order up."""
    looked_up.append(order)
    return f"order {order}"


def reply(request: ModelRequest) -> Reply:
    """Hand off, look the order up, and answer in the words of the instructions."""
    if "Triage" in request.system:
        return Reply(tool_calls=[ToolCall("transfer_to_billing", {})])
    if len(request.tool_results) < 2:
        return Reply(tool_calls=[ToolCall("look_up", {"order": 17})])
    return Reply(f"{request.system} {request.tool_results[-1].text}")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider with the model of this file."""
    with ProviderServer(reply) as server:
        yield server


def test_an_edited_agent_asks_again_and_the_others_do_not(
    tape: Path, agent: Callable[..., Any], ask: Callable[..., Any]
) -> None:
    """Triage's answer, the hand-off and the result of the tool are the recorded ones."""
    looked_up.clear()

    def run(instructions: str) -> str:
        billing = agent("Billing", instructions, tools=[look_up])
        triage = agent("Triage", "You are Triage.", handoffs=[billing])
        return str(ask(triage, "Where is order 17?").final_output)

    with tracefork.record(tape):
        assert run("Be brief:") == "Be brief: order 17"
    asked: list[str] = []

    def note(_: object, place: Any) -> None:
        asked.append(" ▸ ".join(place.step_path[1:2]))

    with tracefork.rerun(tape, before_live=note) as again:
        assert run("Be kind:") == "Be kind: order 17"
    assert asked == ["Billing", "Billing"]
    assert (again.live, again.replayed) == (2, 3)
    assert looked_up == [17]
    with tracefork.replay(again.path):
        assert run("Be kind:") == "Be kind: order 17"
