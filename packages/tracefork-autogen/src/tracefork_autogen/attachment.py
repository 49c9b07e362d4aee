"""Attach to teams, agents and clients, for sessions that are not ambient."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from autogen_core.models import ChatCompletionClient

from tracefork_autogen.clients import ATTACHED
from tracefork_autogen.instrument import AGENTCHAT, INSTRUMENT
from tracefork_core import UsageError

T = TypeVar("T")


def attach(x: T) -> T:
    """Record a team, an agent or a model client with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and what attached ones ask of OpenAI
    and Anthropic models. A team brings its agents along. Attaching twice has no further effect.
    Outside a session nothing changes.

    Raises:
        UsageError: it is something else.
    """
    _check(x)
    ATTACHED.attach(x, INSTRUMENT, AGENTCHAT)
    return x


def detach(x: T) -> T:
    """Undo `attach`, and return the team, agent or client."""
    ATTACHED.detach(x, INSTRUMENT, AGENTCHAT)
    return x


def _check(x: Any) -> None:
    kinds: tuple[type, ...] = (ChatCompletionClient,)
    if (base := sys.modules.get("autogen_agentchat.base")) is not None:
        kinds = (*kinds, base.ChatAgent, base.Team)
    if not isinstance(x, kinds):
        raise UsageError(
            f"tracefork: cannot attach to {x!r:.80}: it is no team, agent or model client of "
            "AutoGen. Agents of autogen-core are recorded by their clients: attach those."
        )
