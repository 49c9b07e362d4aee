"""Make steps of the runs of agents, of their nodes and of their output validators.

pydantic-ai offers hooks for this, and they do not suffice: a streamed request has no
`wrap_node_run`, and a hook of the program's may answer before ours. So the run itself is replaced,
and the two methods of a node through which all of its work goes.

Each node runs in a task of its own, and a streamed answer is read in the task of the reader, which
context variables of the agent's do not reach. So what a run is at is kept by its id: the context
that pydantic-ai hands to models, tools and validators has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any

from pydantic_ai import Agent
from pydantic_ai._agent_graph import CallToolsNode, ModelRequestNode, UserPromptNode
from pydantic_ai._output import OutputValidator

from tracefork_core.adapters import (
    BlockIn,
    Patches,
    RunningStep,
    Values,
    begin_step,
    current_step,
    end_step,
    in_session,
    is_recorded_here,
    lane_here,
    own_branches,
    step,
    take_lane,
    values_set,
)
from tracefork_pydantic_ai.clients import ATTACHED

UNNAMED = "agent"
"""The name that pydantic-ai gives to an agent without one."""

_RUN = "_tracefork_run"

asked_model: ContextVar[object] = ContextVar("tracefork_pydantic_ai_model", default=None)
"""The model that is asked here: it may ask the class that it derives from, or another model."""

_runs: dict[str, Run] = {}
"""The runs that have begun, by their ids."""


def put_in(patches: Patches) -> None:
    """Put agents, nodes and validators on the tape of the open session, as steps."""
    patches.wrap(Agent, "iter", _as_agent)
    for node in (UserPromptNode, ModelRequestNode, CallToolsNode):
        patches.wrap(node, "run", _as_node)
    for node in (ModelRequestNode, CallToolsNode):
        patches.wrap(node, "stream", _as_streamed_node)
    patches.wrap(OutputValidator, "validate", _as_guardrail)


class Run(RunningStep):
    """One run of an agent: its step, and in that the one of the node that it is at."""

    def __init__(self, name: str, also: Values) -> None:
        take_lane(name)
        lane_here()  # It gets its number now: agents that start together are asked in any order.
        super().__init__(begin_step("agent", name, parent=current_step.get()), also)
        self._id: str | None = None
        self._node: object = None
        self._nodes: Counter[str] = Counter()

    def working(self) -> AbstractContextManager[None]:
        """Let the run work in a block: each node does, in a task of its own."""
        values: Values = {
            current_step: self.current,
            asked_model: None,
            **own_branches(),
            **self.values,
        }
        return values_set(values)

    def entered(self, result: Any) -> None:
        """Let nodes and calls find this run, by the object that they have in common and its id."""
        setattr(result.ctx.deps, _RUN, self)
        self._id = result.run_id
        _runs[result.run_id] = self

    def at(self, node: Any) -> None:
        """Begin the step of a node, unless it has begun, and end that of the one before."""
        if node is self._node:
            return
        if self.current != self.step:
            end_step(self.current)
        name = type(node).__name__
        self._nodes[name] += 1
        retry = " (retry)" if _is_retry(node) else ""
        name = f"{name} {self._nodes[name]}{retry}"
        self._node, self.current = node, begin_step("node", name, parent=self.step)

    def end(self, error: BaseException | None = None) -> None:
        """End the steps of the node and of the run."""
        if self._id is not None and _runs.get(self._id) is self:
            del _runs[self._id]
        super().end(error)


def in_run(run_context: Any) -> AbstractContextManager[None]:
    """Let a block work in the run whose context pydantic-ai hands to calls."""
    run = _runs.get(run_context.run_id) if run_context is not None else None
    return nullcontext() if run is None else run.working()


def _as_agent(iterate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(iterate)
    def iter_(self: Any, *args: Any, **options: Any) -> Any:
        running = iterate(self, *args, **options)
        if not is_recorded_here():  # A tool that is one exchange runs it.
            return running
        return BlockIn(lambda: Run(self.name or UNNAMED, ATTACHED.around(self)), running)

    return iter_


def _as_node(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    async def ran(self: Any, ctx: Any) -> Any:
        running = getattr(ctx.deps, _RUN, None)
        if running is None:
            return await run(self, ctx)
        running.at(self)
        with running.working():
            return await run(self, ctx)

    return ran


def _as_streamed_node(stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(stream)
    def streamed(self: Any, ctx: Any) -> Any:
        running = getattr(ctx.deps, _RUN, None)
        source = stream(self, ctx)
        return source if running is None else BlockIn(lambda: _StreamedNode(running, self), source)

    return streamed


class _StreamedNode(RunningStep):
    """The streaming part of a node, whose step goes on after it."""

    def __init__(self, run: Run, node: object) -> None:
        run.at(node)
        super().__init__(run.current)
        self._run = run

    def working(self) -> AbstractContextManager[None]:
        """Let the run work in a block."""
        return self._run.working()

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing: the step ends with the next node, or with the run."""


def _as_guardrail(validate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(validate)
    async def validated(self: Any, result: Any, run_context: Any, *args: Any) -> Any:
        if not in_session():
            return await validate(self, result, run_context, *args)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        with in_run(run_context), step("guardrail", name, own_branches()):
            return await validate(self, result, run_context, *args)

    return validated


def _is_retry(node: Any) -> bool:
    parts = getattr(getattr(node, "request", None), "parts", ())
    return any(type(part).__name__ in ("RetryPromptPart", "RetryFeedbackPart") for part in parts)
