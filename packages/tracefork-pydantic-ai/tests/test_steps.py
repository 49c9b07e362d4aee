"""The steps of a tape are agents, their nodes, model calls, tools and validators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]


def test_a_run_is_an_agent_with_nodes_and_model_calls(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Each exchange belongs to a model call, in a node, in an agent."""
    helper = agent("helper", "@say Hello.")
    recorded, again = twice(lambda: ask(helper))
    assert recorded == again
    assert paths() == ["agent:helper ▸ node:ModelRequestNode 1 ▸ model:gpt-5-mini"]
