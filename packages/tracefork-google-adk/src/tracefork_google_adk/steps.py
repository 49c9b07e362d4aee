"""Make steps of runs, agents and model calls.

ADK offers plugins for this, and they do not suffice: no callback tells that an agent was cancelled
or that its events are read no more, none is called for the functions of a workflow, and another
plugin may answer before ours. A context variable that a callback sets leaks, too: ADK's generators
run in the context of the code that reads them. So the generators themselves are replaced, and a
step is current only while its own generator runs. Between two events the caller sees its own step.

A step is named after its agent, and so is the lane of a task that runs an agent in parallel: ADK
starts such tasks in an order that depends on the times of answers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import Runner

from tracefork_core.adapters import (
    Patches,
    RunningStep,
    Values,
    checked_events,
    events_in,
    in_session,
    own_branches,
    replace_in_classes,
    take_lane,
)
from tracefork_google_adk.clients import ATTACHED, bind_clients

Events = AsyncGenerator[Any, None]
_NOTHING_ELSE: Values = {}

steps_of_nodes: ContextVar[dict[str, str] | None] = ContextVar("tracefork_adk_nodes", default=None)
"""The latest step of each node of the workflow around, by the node's name."""


def put_in(patches: Patches) -> None:
    """Put runs, agents and model calls on the tape of the open session, as steps."""
    patches.wrap(Runner, "run_async", _as_run)
    patches.wrap(BaseAgent, "run_async", _as_agent)
    replace_in_classes(patches, BaseLlm, ["generate_content_async"], partial(_as_model, patches))


def _as_run(run_async: Callable[..., Events]) -> Callable[..., Events]:
    @wraps(run_async)
    def run(self: Any, *args: Any, **options: Any) -> Events:
        events = run_async(self, *args, **options)
        if not in_session():
            return events
        return checked_events(
            stepped("run", self.app_name, events, also=ATTACHED.around(self.agent))
        )

    return run


def _as_agent(run_async: Callable[..., Events]) -> Callable[..., Events]:
    @wraps(run_async)
    def run(self: Any, *args: Any, **options: Any) -> Events:
        events = run_async(self, *args, **options)
        if not in_session():
            return events
        return stepped("agent", self.name, events, is_branch=True, also=ATTACHED.around(self))

    return run


def _as_model(
    patches: Patches, owner: type, name: str, original: Callable[..., Events]
) -> Callable[..., Events]:
    @wraps(original)
    def generate(self: Any, *args: Any, **options: Any) -> Events:
        answers = original(self, *args, **options)
        if not in_session():
            return answers
        bind_clients(patches, self)
        return stepped("model", str(self.model) or "model", answers)

    return generate


def stepped(
    kind: str,
    name: str,
    events: Events,
    *,
    is_branch: bool = False,
    after: tuple[str, ...] = (),
    nodes: dict[str, str] | None = None,
    also: Values = _NOTHING_ELSE,
) -> Events:
    """Yield what a generator yields, and run it inside of a step.

    Args:
        kind: the step's kind.
        name: the step's name.
        events: the generator.
        is_branch: whether a task may run this in parallel to others in the step around.
        after: the steps that this one waited for, where branches join.
        nodes: where the steps of this workflow's nodes are noted, if it is one.
        also: more context variables that hold while the generator runs, and their values.
    """

    def begin() -> RunningStep:
        if is_branch:
            take_lane(name)
        values: Values = {**own_branches(), steps_of_nodes: nodes, **also}
        running = RunningStep.begin(kind, name, values, after=after)
        siblings = steps_of_nodes.get()
        if running.step is not None and siblings is not None:
            siblings[name] = running.step
        return running

    return events_in(begin, events)
