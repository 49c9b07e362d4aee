"""Attach to agents, for sessions that are not ambient."""

from __future__ import annotations

from typing import Any, TypeVar

from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.workflow import BaseNode

from tracefork_core import UsageError
from tracefork_google_adk.clients import ATTACHED
from tracefork_google_adk.instrument import INSTRUMENT

T = TypeVar("T", bound="App | Runner | BaseNode")


def attach(x: T) -> T:
    """Record an app, a runner or an agent with `ambient=False` too, and return it.

    Such a session records the steps and tools of all agents, and what attached ones and their
    sub-agents ask of Gemini, Claude and OpenAI models. Attaching twice has no further effect.
    Outside a session nothing changes.

    Raises:
        UsageError: it is something else.
    """
    ATTACHED.attach(_root_of(x), INSTRUMENT)
    return x


def detach(x: T) -> T:
    """Undo `attach`, and return the app, runner or agent."""
    ATTACHED.detach(_root_of(x), INSTRUMENT)
    return x


def _root_of(x: Any) -> Any:
    if isinstance(x, App):
        return x.root_agent
    if isinstance(x, Runner):
        return x.agent
    if isinstance(x, BaseNode):
        return x
    raise UsageError(
        f"tracefork: cannot attach to {x!r:.80}: it is no App, Runner or agent of google-adk."
    )
