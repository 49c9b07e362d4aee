"""Attach to agents, for sessions that are not ambient."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from acme_agents import Agent

from tracefork_acme.instrument import INSTRUMENT
from tracefork_core import UsageError, bind

_clients: WeakKeyDictionary[Agent, tuple[object, object]] = WeakKeyDictionary()
"""The own clients of each agent that is attached."""


def attach(agent: Agent) -> Agent:
    """Record an agent with `ambient=False` too, and return it. Outside a session nothing changes.

    Raises:
        UsageError: it is no agent.
    """
    if not isinstance(agent, Agent):
        raise UsageError(f"tracefork: cannot attach to {agent!r}: it is no Agent of acme-agents.")
    if agent not in _clients:
        _clients[agent] = agent.client, agent.async_client
        agent.client, agent.async_client = bind(agent.client), bind(agent.async_client)
        INSTRUMENT.attach()
    return agent


def detach(agent: Agent) -> Agent:
    """Undo `attach`, and return the agent."""
    if agent in _clients:
        agent.client, agent.async_client = _clients.pop(agent)
        INSTRUMENT.detach()
    return agent
