"""`shrink` on a graph: of many model calls and tool results, those that the failure needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

import tracefork_langgraph
from tracefork_core import Tape, record, replay, tool
from tracefork_core.blaming.shrinking.shrink import shrink
from tracefork_core.blaming.trials.budget import Budget
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

pytestmark = pytest.mark.many_processes

TURNS, BAD = 20, 13


class Clerk:
    """Reads one claim after another; one claim makes it refuse all of them."""

    def __init__(self, *, steady: bool = True) -> None:
        self.asked = 0
        self.steady = steady

    def __call__(self, request: ModelRequest) -> Reply:
        self.asked += 1
        if self.asked <= TURNS:
            return Reply(tool_calls=[ToolCall("read_claim", {"number": self.asked})])
        if not self.steady and self.asked > TURNS + 1 and self.asked % 2:
            return Reply("paid")
        bad = any("forged" in result.text for result in request.tool_results)
        return Reply("refused" if bad else "paid")


@tool
def read_claim(number: int) -> str:
    """Read a claim."""
    return f"claim {number} is {'forged' if number == BAD else 'fine'}"


def agent_of(url: str) -> Any:
    """Return an agent that makes a graph with two tools, and runs it."""

    def agent() -> str:
        model = ChatOpenAI(model="gpt-5-mini", base_url=f"{url}/v1", api_key="none")
        graph = tracefork_langgraph.attach(create_agent(model, [read_claim]))
        config = {"recursion_limit": 100}
        said = graph.invoke({"messages": [("user", "Check all claims.")]}, config)
        return str(said["messages"][-1].content)

    return agent


def is_paid(answer: object) -> bool:
    return answer == "paid"


def test_a_graph_is_shrunk_to_the_claim_that_it_refuses(tmp_path: Path) -> None:
    """The smallest tape replays bit for bit, without the model."""
    tape, small = tmp_path / "run.tape", tmp_path / "small.tape"
    with ProviderServer(clerk := Clerk()) as server:
        agent = agent_of(server.url)
        with record(tape):
            assert agent() == "refused"
        limits = Budget(calls=200)
        found = shrink(tape, agent, is_paid, small, budget=limits, confirm=1)
        assert clerk.asked == TURNS + 1 + found.calls
    assert (found.doubt, found.stopped) == (None, None)
    parts = {part.kind: (part.before, part.kept) for part in found.parts}
    assert parts["model calls"] == (TURNS + 1, 2)
    assert parts["messages"][1] == 1
    assert parts["tools"] == (1, 0)
    with replay(small) as replayed:
        assert agent() == "refused"
    assert replayed.digest == replayed.tape.digest
    with Tape.open(small) as opened:
        assert b"forged" in opened.exchanges[-1].request_body


def test_a_model_that_fails_by_chance_is_reported_as_undecided(tmp_path: Path) -> None:
    """It fails each second time, so no candidate can be trusted, and none is written."""
    tape, small = tmp_path / "run.tape", tmp_path / "small.tape"
    with ProviderServer(Clerk(steady=False)) as server:
        agent = agent_of(server.url)
        with record(tape):
            agent()
        found = shrink(tape, agent, is_paid, small, budget=Budget(calls=20))
    assert found.branch is None
    assert found.doubt == f"asked again live, exchange {2 * TURNS} does not make the run fail"
    assert found.reasons == ("a candidate failed 1 of 2 times",)
    assert not small.exists()
