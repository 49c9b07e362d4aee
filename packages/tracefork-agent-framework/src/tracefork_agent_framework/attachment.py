"""Attach to agents, workflows and chat clients, for sessions that are not ambient."""

from __future__ import annotations

from typing import Any, TypeVar

from agent_framework import BaseAgent, BaseChatClient, Workflow

from tracefork_agent_framework.clients import ATTACHED
from tracefork_agent_framework.instrument import INSTRUMENT
from tracefork_core import UsageError

T = TypeVar("T")


def attach(x: T) -> T:
    """Record an agent, a workflow or a chat client with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and what attached ones ask of OpenAI
    and Anthropic models. The agents of an attached workflow count as attached. Attaching twice has
    no further effect. Outside a session nothing changes.

    Raises:
        UsageError: it is something else.
    """
    _check(x)
    ATTACHED.attach(x, INSTRUMENT)
    return x


def detach(x: T) -> T:
    """Undo `attach`, and return the agent, workflow or chat client."""
    _check(x)
    ATTACHED.detach(x, INSTRUMENT)
    return x


def _check(x: Any) -> None:
    if not isinstance(x, BaseAgent | Workflow | BaseChatClient):
        raise UsageError(
            f"tracefork: cannot attach to {x!r:.80}: it is no agent, workflow or chat client of "
            "agent-framework."
        )
