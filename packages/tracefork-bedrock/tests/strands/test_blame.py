"""Blame names the node of a graph in which a fault was planted, by forks of one recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import boto3
import pytest
from strands import Agent, tool
from strands.models import BedrockModel
from strands.multiagent import GraphBuilder

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

NODES = ("intake", "price", "stock", "answer")
RIGHT = {
    "intake": "The order is for seven lamps.",
    "price": "Seven lamps cost 70 EUR.",
    "stock": "There are twelve lamps.",
    "answer": "You get seven lamps for 70 EUR.",
}
WRONG = {
    "intake": "The order is for nine lamps.",
    "price": "Seven lamps cost 7 EUR.",
    "stock": "There are no lamps.",
    "answer": "You get seven ladders.",
}
IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FAULTS = NODES if IS_NIGHT else ("price",)
"""One fault in CI with few trials, and one after another at night with a proof."""


class Desk:
    """The models of a desk. One of them makes one mistake, and each passes mistakes on."""

    def __init__(self, fault: str) -> None:
        self._fault: str | None = fault

    def __call__(self, request: ModelRequest) -> Reply:
        (node,) = (name for name in NODES if f"You are {name}." in request.system)
        if node == "stock" and not request.tool_results:
            return Reply(tool_calls=[ToolCall("count", {"thing": "lamp"})])
        if node == self._fault:
            self._fault = None
            return Reply(WRONG[node])
        mistakes = [text for text in WRONG.values() if text in str(request)]
        return Reply(" ".join([RIGHT[node], *mistakes]))


@tool
def count(thing: str) -> str:
    """Count what is in stock."""
    return f"12 {thing}s"


def run(url: str) -> str:
    """Run the desk: intake, then price and stock at once, then the answer."""
    session = boto3.Session("AKIAEXAMPLEOFTRACE4", "secret", region_name="us-east-1")
    builder = GraphBuilder().set_graph_id("desk").set_max_node_executions(9)
    for name in NODES:
        model = BedrockModel(boto_session=session, endpoint_url=url, model_id="amazon.nova-lite")
        prompt = f"You are {name}."
        used = [count] if name == "stock" else []
        agent = Agent(model=model, system_prompt=prompt, tools=used, callback_handler=None)
        builder.add_node(agent, name)
    for name in ("price", "stock"):
        builder.add_edge("intake", name)
        builder.add_edge(name, "answer")
    return str(builder.build()("Seven lamps, please.").results["answer"].result)


def is_right(answer: Any) -> bool:
    """Grade an answer of the desk."""
    return not any(text in str(answer) for text in WRONG.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_node_at_fault(fault: str, tmp_path: Path) -> None:
    """All later nodes repeat the mistake; only another answer of this one makes the run right."""
    with ProviderServer(Desk(fault)) as server:
        url = server.url
        with tracefork.record(tmp_path / "run.tape"):
            assert not is_right(run(url))
        report = tracefork.blame(
            tmp_path / "run.tape",
            lambda: run(url),
            is_right,
            by="node",
            settings=None if IS_NIGHT else Settings(grades=1, least=2, samples=50, batch=2),
            budget="400 calls" if IS_NIGHT else "24 calls",
            writes="allow",
        )
    assert [fork.undefined for fork in report.draws if fork.undefined] == []
    assert report.parts[0].part.step[-1] == fault
    assert report.parts[0].is_named or not IS_NIGHT
