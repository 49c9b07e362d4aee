"""Attach to agents, for sessions that are not ambient."""

from __future__ import annotations

from typing import TypeVar

from strands import Agent
from strands.multiagent.graph import Graph
from strands.multiagent.swarm import Swarm

from tracefork_bedrock.strands.instrument import GRAPHS, INSTRUMENT
from tracefork_core import UsageError

A = TypeVar("A", bound="Agent | Graph | Swarm")

_ALL = (INSTRUMENT, GRAPHS)
_attached: dict[int, object] = {}
"""The attached agents, by id: not all of them are hashable."""


def attach(agent: A) -> A:
    """Record an agent, a graph or a swarm with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and the requests of the clients that
    you bind or attach: `tracefork_bedrock.attach(model.client)` for Bedrock, `tracefork.bind` for
    others. Outside a session nothing changes. Attaching twice has no further effect.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(agent, (Agent, Graph, Swarm)):
        raise UsageError(
            f"tracefork: cannot attach to {agent!r:.80}: it is no Agent, Graph or Swarm of Strands."
        )
    if id(agent) not in _attached:
        _attached[id(agent)] = agent
        for instrument in _ALL:
            instrument.attach()
    return agent


def detach(agent: A) -> A:
    """Undo `attach`, and return the agent."""
    if _attached.pop(id(agent), None) is not None:
        for instrument in _ALL:
            instrument.detach()
    return agent
