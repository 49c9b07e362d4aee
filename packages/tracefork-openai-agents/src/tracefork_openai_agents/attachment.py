"""Attach to agents, for sessions that are not ambient."""

from __future__ import annotations

from typing import TypeVar

from agents import Agent

from tracefork_core import UsageError
from tracefork_openai_agents.instrument import INSTRUMENT
from tracefork_openai_agents.models import ATTACHED

A = TypeVar("A", bound="Agent[object]")


def attach(agent: A) -> A:
    """Record an agent with `ambient=False` too, and return it. Outside a session nothing changes.

    Such a session records the steps and tools of all agents, and the requests of the models that
    attached agents use. Attach each agent of a hand-off. Attaching twice has no further effect.

    Raises:
        UsageError: it is no agent.
    """
    if not isinstance(agent, Agent):
        raise UsageError(
            f"tracefork: cannot attach to {agent!r:.80}: it is no Agent of openai-agents."
        )
    ATTACHED.attach(agent, INSTRUMENT)
    return agent


def detach(agent: A) -> A:
    """Undo `attach`, and return the agent."""
    ATTACHED.detach(agent, INSTRUMENT)
    return agent
