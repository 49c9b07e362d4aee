"""Blame names the agent, the tool or the node at fault, and loses no fork."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.workflow import START, JoinNode, Workflow, node

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

Call = Callable[..., Any]
_FEW = Settings(grades=1, least=2, samples=50, batch=2)
"""Enough to find the place of the fault; the proof takes three times as many forks."""


class Desk:
    """A model and a tool; at one place something is wrong in the recording only."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._times = 0

    def errs(self, place: str) -> bool:
        self._times += place == self._fault
        return place == self._fault and self._times == 1

    def __call__(self, request: ModelRequest) -> Reply:
        if "You count" in request.last_user_text:
            return Reply("3 parcels" if self.errs("count") else "2 parcels")
        done = [result.text for result in request.tool_results]
        if "You search" in request.system:
            if not done:
                order = 71 if self.errs("finder") else 17
                return Reply(tool_calls=[ToolCall("look_up", {"order": order})])
            return Reply(f"It is {done[-1]}.")
        return Reply(request.last_user_text)

    def flow(self, agent: Call, url: str) -> Any:
        @tracefork.tool(effect="read")
        def look_up(order: int) -> str:
            """Look an order up."""
            return "order 71" if self.errs("look_up") else f"order {order}"

        @node
        async def count(node_input: Any) -> str:
            contents = [{"role": "user", "parts": [{"text": "You count the parcels of order 17."}]}]
            path = "/v1beta/models/gemini-2.5-flash:generateContent"
            async with httpx.AsyncClient() as client:
                answer = await client.post(url + path, json={"contents": contents})
            return str(answer.json()["candidates"][0]["content"]["parts"][0]["text"])

        finder = agent("finder", "You search.", tools=[look_up])
        edges: Any = [(START, (finder, count), JoinNode(name="join"), agent("writer", "Repeat."))]
        return Workflow(name="desk", edges=edges)


def is_right(said: object) -> bool:
    return "order 17" in str(said) and "2 parcels" in str(said)


@pytest.mark.many_processes
@pytest.mark.parametrize(
    ("fault", "by"), [("finder", "agent"), ("look_up", "tool"), ("count", "node")]
)
def test_blame_names_the_part_at_fault(
    agent_at: Call, ask: Call, tape: Path, fault: str, by: str
) -> None:
    """In a workflow with a join; each fork runs on an event loop of its own."""
    desk = Desk(fault)
    with ProviderServer(desk, nondeterministic=True) as server:
        flow = desk.flow(agent_at(server.url), server.url)

        def answer() -> str:
            return str(ask(flow).events[-1].content)

        with tracefork.record(tape):
            assert not is_right(answer())
        report = tracefork.blame(tape, answer, is_right, by=by, settings=_FEW, budget="24 calls")
    assert report.result.decisive is not None
    assert report.parts[0].part.step[-1] == fault
    assert report.result.decisive.unit in report.parts[0].part.units
    assert [draw.undefined for draw in report.draws if draw.undefined] == []
