"""Attach to agents and models, for sessions that are not ambient."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.models import Model

from tracefork_core import UsageError
from tracefork_pydantic_ai.clients import ATTACHED
from tracefork_pydantic_ai.instrument import INSTRUMENT

T = TypeVar("T", bound="AbstractAgent[Any, Any] | Model[Any]")


def attach(x: T) -> T:
    """Record an agent or a model with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and what attached models are asked, by
    any agent, or attached agents and the agents that they run ask of any model. Attaching twice has
    no further effect. Outside a session nothing changes.

    Raises:
        UsageError: it is neither.
    """
    ATTACHED.attach(_held(x), INSTRUMENT)
    return x


def detach(x: T) -> T:
    """Undo `attach`, and return the agent or the model."""
    ATTACHED.detach(_held(x), INSTRUMENT)
    return x


def _held(x: Any) -> Any:
    while isinstance(x, WrapperAgent):
        x = x.wrapped
    if isinstance(x, (AbstractAgent, Model)):
        return x
    raise UsageError(
        f"tracefork: cannot attach to {x!r:.80}: it is no agent and no model of pydantic-ai."
    )
