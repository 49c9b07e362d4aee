"""Record the steps of a crew, from CrewAI's own event scope."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from crewai import Agent, Crew
from crewai.events.event_bus import CrewAIEventsBus
from crewai.events.event_context import SCOPE_STARTING_EVENTS, VALID_EVENT_PAIRS
from crewai.flow.runtime import Flow

from tracefork_core.adapters import Patches
from tracefork_crewai.event_scope import (
    METHOD,
    EventScope,
    begin,
    end,
    is_on_tape,
    leaving_nothing_open,
)
from tracefork_crewai.labels import is_internal, method_label

_ENTRIES: tuple[tuple[type, tuple[str, ...]], ...] = (
    (Crew, ("kickoff", "akickoff")),
    (Flow, ("kickoff", "kickoff_async")),
    (Agent, ("kickoff", "kickoff_async")),
)
"""The methods by which programs enter CrewAI, and which an exception may leave."""


def put_in(patches: Patches) -> None:
    """Put the steps of CrewAI on the tape of the open session."""
    scope = EventScope(SCOPE_STARTING_EVENTS, VALID_EVENT_PAIRS)
    patches.wrap(CrewAIEventsBus, "_prepare_event", scope.follow)
    patches.wrap(Flow, "_execute_method", _with_step)
    for owner, names in _ENTRIES:
        for name in names:
            patches.wrap(owner, name, _left_whole)


def _left_whole(run: Callable[..., Any]) -> Callable[..., Any]:
    """End all steps of a cancelled or interrupted run, so that later steps are not in it."""

    @wraps(run)
    def left(self: Any, *args: Any, **kwargs: Any) -> Any:
        with leaving_nothing_open():
            return run(self, *args, **kwargs)

    @wraps(run)
    async def aleft(self: Any, *args: Any, **kwargs: Any) -> Any:
        with leaving_nothing_open():
            return await run(self, *args, **kwargs)

    return aleft if inspect.iscoroutinefunction(run) else left


def _with_step(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Give the methods of a flow a step, even if the flow suppresses its events."""

    @wraps(execute)
    async def executed(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not self.suppress_flow_events or is_internal(self) or not is_on_tape():
            with leaving_nothing_open():
                return await execute(self, name, *args, **kwargs)
        begin(METHOD, lambda _: method_label(name), self)
        error = None
        try:
            return await execute(self, name, *args, **kwargs)
        except BaseException as failure:
            error = repr(failure)
            raise
        finally:
            end(METHOD, error)

    return executed
