"""Make steps of workflows, and of the nodes that are no agents.

A node that runs an agent has the step of that agent. Every other node has one of its own: what it
asks over HTTP belongs to it. A node that waited for several others says so: it is a join. The nodes
of a workflow that is a function are the functions marked with `@step`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import agent_framework
from agent_framework import AgentExecutor, Executor, Workflow

from tracefork_agent_framework.clients import ATTACHED
from tracefork_agent_framework.places import (
    Executing,
    Place,
    executing,
    nodes_around,
    stable,
)
from tracefork_agent_framework.streams import within
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    Values,
    check_session,
    in_session,
    own_branches,
    take_lane,
    values_set,
)


def put_in(patches: Patches) -> None:
    """Put workflows and their nodes on the tape of the open session, as steps."""
    patches.wrap(Workflow, "run", _as_flow)
    patches.wrap(Executor, "execute", _as_node)
    if functional := getattr(agent_framework, "FunctionalWorkflow", None):  # Not in 1.0.
        patches.wrap(functional, "run", _as_flow)
        patches.wrap(agent_framework.StepWrapper, "__call__", _as_step)


def _as_flow(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def ran(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return run(self, *args, **options)
        name = stable(self.name, "workflow")
        if name == "WorkflowBuilder":  # The builder's name for a workflow without one.
            name = "workflow"
        place = Place("flow", name, {nodes_around: {}, **ATTACHED.around(self)})
        return within(place, lambda: run(self, *args, **options))

    return ran


def _as_node(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    async def executed(self: Any, message: Any, sources: Any, *args: Any, **options: Any) -> None:
        if not in_session():
            await execute(self, message, sources, *args, **options)
            return
        name, nodes = _name(self), nodes_around.get()
        after = _steps_of(sources, nodes)
        take_lane(name)
        if isinstance(self, AgentExecutor):
            with values_set({executing: Executing(self.id, after), **own_branches()}):
                await execute(self, message, sources, *args, **options)
            check_session()
            return
        values: Values = {**own_branches(), executing: None}
        running = RunningStep.begin("node", name, values, after=after)
        if nodes is not None and running.step is not None:
            nodes[self.id] = running.step
        with running.block():
            await execute(self, message, sources, *args, **options)
        check_session()

    return executed


def _as_step(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    async def called(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session():
            return await call(self, *args, **options)
        return await within(Place("node", self.name), lambda: call(self, *args, **options))

    return called


def _name(executor: Any) -> str:
    default = "agent" if isinstance(executor, AgentExecutor) else type(executor).__name__
    return stable(executor.id, default)


def _steps_of(sources: Any, nodes: dict[str, str] | None) -> tuple[str, ...]:
    """Return the latest steps of the nodes that a join waited for."""
    if nodes is None or len(sources) < 2:
        return ()
    return tuple(nodes[source] for source in sources if source in nodes)
