"""An attached agent is recorded with ambient=False: its steps, its tools and its model's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from openai import AsyncOpenAI
from strands import Agent
from strands.models import BedrockModel
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder

import tracefork_core as tracefork
from tracefork_bedrock.strands import attach, detach
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


def _bedrock(url: str) -> Any:
    session = boto3.Session("AKIAEXAMPLEOFTRACE4", "secret", region_name="us-east-1")
    return BedrockModel(boto_session=session, endpoint_url=url, model_id="amazon.nova-lite")


def _openai(url: str) -> Any:
    return OpenAIModel(client=AsyncOpenAI(base_url=f"{url}/v1", api_key="none"), model_id="gpt")


@pytest.mark.parametrize("model", [None, _bedrock, _openai], ids=["anthropic", "bedrock", "openai"])
def test_the_client_of_an_attached_agents_model_is_recorded(
    agent: Call, server: ProviderServer, twice: Call, paths: Call, model: Any
) -> None:
    """Another agent's client is not, and after `detach` the model has its own client again."""
    given = {} if model is None else {"model": model(server.url)}
    helper, other = agent("Helper", "Help.", **given), agent("Other")
    before = vars(helper.model).copy()

    def run() -> str:
        helper.messages.clear()
        return str(helper("Hello."))

    attach(attach(helper))
    recorded, again = twice(run, ambient=False)
    assert recorded == again
    assert paths() == [
        f"agent:Helper ▸ turn:turn 1 ▸ model:{helper.model.get_config()['model_id']}"
    ]
    assert other.model.client is not None
    detach(helper)
    assert vars(helper.model) == before


def test_the_agents_of_an_attached_graph_are_recorded(
    agent: Call, twice: Call, paths: Call, tape: Any
) -> None:
    """Two of its agents have one model, whose client is bound once."""
    first = agent("First")
    second = Agent(name="Second", model=first.model, callback_handler=None)

    def run() -> list[str]:
        first.messages.clear()
        second.messages.clear()
        builder = GraphBuilder()
        builder.add_edge(builder.add_node(first, "one"), builder.add_node(second, "two"))
        graph = attach(builder.set_max_node_executions(5).build())
        result = graph("Hello.")
        detach(graph)
        return [str(result.results[name].result) for name in ("one", "two")]

    client = first.model.client
    recorded, again = twice(run, ambient=False)
    assert recorded == again
    assert len(paths()) == 2
    assert first.model.client is client


def test_a_client_that_cannot_be_bound_is_named(agent: Call) -> None:
    """The session would not record its requests, and that would be found late."""
    helper = agent("Helper")
    helper.model.client = object()
    with pytest.raises(tracefork.UsageError, match=r"cannot bind builtins\.object"):
        attach(helper)
