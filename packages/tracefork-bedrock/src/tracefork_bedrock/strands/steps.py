"""Make steps of agents, of their turns and of what they ask models.

Strands runs agents as async generators, and its reader works between their events. So a step is
current while its generator runs, and the step around it again while the reader works: what the
reader asks is not the agent's, and a stream that the reader abandons leaves no step behind.

A turn begins with each cycle of the event loop. Cycles call each other, so a turn ends when the
next one begins.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from contextvars import ContextVar
from functools import partial, wraps
from itertools import count
from typing import Any

from strands import Agent
from strands.agent import agent as agent_module
from strands.models import Model, bedrock
from strands.telemetry import EventLoopMetrics

from tracefork_bedrock.strands.live_tools import warn_of_agent_in_tool
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    begin_step,
    checked_events,
    crossing_seam,
    current_step,
    end_step,
    events_in,
    in_session,
    is_recorded_here,
    replace_in_classes,
    step,
)

UNNAMED = "Strands Agents"
"""The name that Strands gives to agents without one."""

_POLLS = ((agent_module, "_link_cancel_signal"), (bedrock, "_poll_cancel_signal"))
"""What newer versions run beside an agent to see whether it was cancelled: it polls."""


node_name: ContextVar[str | None] = ContextVar("tracefork_strands_node", default=None)
"""The name of the node that is about to run its agent."""

_agent: ContextVar[RunningStep | None] = ContextVar("tracefork_strands_agent", default=None)
_turns: ContextVar[Iterator[int] | None] = ContextVar("tracefork_strands_turns", default=None)
"""The numbers of the agent's next turns."""
_asked_model: ContextVar[object] = ContextVar("tracefork_strands_model", default=None)
"""The model that is asked here: some ask themselves again for structured output."""


def put_in(patches: Patches) -> None:
    """Put agents, turns and model calls on the tape of the open session, as steps."""
    patches.wrap(Agent, "stream_async", _agent_step)
    patches.wrap(Agent, "structured_output_async", _agent_block)
    patches.wrap(EventLoopMetrics, "start_cycle", _turn_step)
    replace_in_classes(patches, Model, ("stream", "structured_output"), _model_step)
    for module, name in _POLLS:
        if hasattr(module, name):
            patches.wrap(module, name, _unseen)


def _unseen(poll: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the pauses of a poll off the tape: how many there are is chance, and none matters."""

    @wraps(poll)
    async def polled(*args: Any) -> None:
        with crossing_seam():
            await poll(*args)

    return polled


def _agent_step(stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(stream)
    def stream_async(self: Any, *args: Any, **options: Any) -> Any:
        events = stream(self, *args, **options)
        if is_recorded_here():
            return _in_agent(self, events)
        if in_session():
            warn_of_agent_in_tool(_name_of(self))
        return events

    return stream_async


def _in_agent(agent: Any, events: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    def begin() -> RunningStep:
        running = RunningStep.begin("agent", _name_of(agent))
        running.values = {_agent: running, _turns: count(1), node_name: None}
        return running

    return events_in(begin, checked_events(events))


def _agent_block(ask: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ask)
    async def structured_output_async(self: Any, *args: Any, **options: Any) -> Any:
        if not is_recorded_here():
            return await ask(self, *args, **options)
        with step("agent", _name_of(self)):
            return await ask(self, *args, **options)

    return structured_output_async


def _turn_step(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def start_cycle(self: Any, *args: Any, **options: Any) -> Any:
        running, turns = _agent.get(), _turns.get()
        if running is not None and turns is not None and is_recorded_here():
            if running.current != running.step:
                end_step(running.current)
            name = f"turn {next(turns)}"
            running.current = begin_step("turn", name, parent=running.step)
            current_step.set(running.current)
        return start(self, *args, **options)

    return start_cycle


def _model_step(_: type, __: str, original: Any) -> Any:
    if not inspect.isfunction(original):
        return original

    @wraps(original)
    def asked(self: Any, *args: Any, **options: Any) -> Any:
        events = original(self, *args, **options)
        if not is_recorded_here() or _asked_model.get() is self:
            return events
        begin = partial(RunningStep.begin, "model", _model_name(self), {_asked_model: self})
        return events_in(begin, events)

    return asked


def _name_of(agent: Any) -> str:
    name = str(agent.name)
    return node_name.get() or name if name == UNNAMED else name


def _model_name(model: Any) -> str:
    config = model.get_config()
    name = config.get("model_id") if isinstance(config, dict) else None
    return name if isinstance(name, str) and name else type(model).__name__
