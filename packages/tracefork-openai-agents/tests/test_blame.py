"""Blame names the agent, the turn or the tool at fault, and loses no fork."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.models import openai_provider

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

Call = Callable[..., Any]


class Model:
    """Hands off and calls a tool; at one of these it errs in the recording only."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        done = [result.text for result in request.tool_results]
        if "Triage" in request.system:
            return Reply(tool_calls=[ToolCall("transfer_to_billing", {})])
        if len(done) < 2:
            order = 71 if self._errs("turn 2") else 17
            return Reply(tool_calls=[ToolCall("look_up", {"order": order})])
        return Reply("71" if self._errs("turn 3") else done[-1])

    def _errs(self, turn: str) -> bool:
        self._times += turn == self._fault
        return turn == self._fault and self._times == 1


@function_tool
@tracefork.tool(effect="read")
def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order}"


# The agents of a module use the pool of connections that the SDK keeps for the process.
billing = Agent(name="Billing", instructions="You are Billing.", tools=[look_up])
triage = Agent(name="Triage", instructions="You are Triage.", handoffs=[billing])


def answer() -> str:
    return str(asyncio.run(Runner.run(triage, "Where is order 17?")).final_output)


def is_right(said: object) -> bool:
    return "17" in str(said)


@pytest.fixture(autouse=True)
def pool() -> Iterator[None]:
    """Drop the pool of connections of this test: their event loops are gone."""
    openai_provider._http_client = None
    yield
    openai_provider._http_client = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.many_processes
@pytest.mark.parametrize(
    ("fault", "by", "named"),
    [
        ("turn 2", "agent", "Billing"),
        ("turn 3", "turn", "turn 3"),
    ],
)
def test_blame_names_the_part_at_fault(
    monkeypatch: pytest.MonkeyPatch, tape: Path, fault: str, by: str, named: str
) -> None:
    """Each fork runs on an event loop of its own, with the pool of the one before it."""
    with ProviderServer(Model(fault), nondeterministic=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with tracefork.record(tape):
            assert "17" not in answer()
        report = tracefork.blame(tape, answer, is_right, by=by, budget="200 calls")
    assert report.parts[0].part.step[-1] == named
    assert report.parts[0].is_named
    assert not [draw.undefined for draw in report.draws if "Error" in (draw.undefined or "")]
