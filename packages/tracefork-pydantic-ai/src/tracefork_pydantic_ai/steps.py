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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from pydantic_ai import Agent
from pydantic_ai._agent_graph import CallToolsNode, ModelRequestNode, UserPromptNode
from pydantic_ai._output import OutputValidator

from tracefork_core.adapters import (
    Lane,
    Patches,
    begin_step,
    branch_lane,
    current_step,
    end_step,
    in_session,
    is_crossing_seam,
    lane_here,
    step,
    values_set,
)
from tracefork_pydantic_ai.blocks import Block, Values
from tracefork_pydantic_ai.clients import attached, is_attached

UNNAMED = "agent"
"""The name that pydantic-ai gives to an agent without one."""

_RUN = "_tracefork_run"

_lane_around: ContextVar[Lane | None] = ContextVar("tracefork_pydantic_ai_lane", default=None)
"""The lane of the step around: a task that runs a branch of it is named after the branch."""

_started: ContextVar[Counter[str] | None] = ContextVar(
    "tracefork_pydantic_ai_started", default=None
)
"""How often each agent and tool was started from the step around."""

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


class Run:
    """One run of an agent: its step, and that of the node that it is at."""

    def __init__(self, name: str, also: Values) -> None:
        branch_lane(_lane_around.get(), numbered(name))
        lane_here()  # It gets its number now: agents that start together are asked in any order.
        self._step = begin_step("agent", name, parent=current_step.get())
        self._id: str | None = None
        self._node: object = None
        self._node_step: str | None = None
        self._nodes: Counter[str] = Counter()
        self._also = also

    def values(self) -> Values:
        """Return the context variables that hold while the run works, and their values."""
        return {
            current_step: self._node_step or self._step,
            _lane_around: lane_here(),
            _started: Counter(),
            asked_model: None,
            **self._also,
        }

    def entered(self, result: Any) -> None:
        """Let nodes and calls find this run, by the object that they have in common and its id."""
        setattr(result.ctx.deps, _RUN, self)
        self._id = result.run_id
        _runs[result.run_id] = self

    def at(self, node: Any) -> None:
        """Begin the step of a node, unless it has begun, and end that of the one before."""
        if node is self._node:
            return
        self._leave(None)
        name = type(node).__name__
        self._nodes[name] += 1
        retry = " (retry)" if _is_retry(node) else ""
        name = f"{name} {self._nodes[name]}{retry}"
        self._node, self._node_step = node, begin_step("node", name, parent=self._step)

    def _leave(self, error: BaseException | None) -> None:
        end_step(self._node_step, error)
        self._node = self._node_step = None

    def end(self, error: BaseException | None) -> None:
        """End the steps of the node and of the run."""
        if self._id is not None and _runs.get(self._id) is self:
            del _runs[self._id]
        error = None if isinstance(error, GeneratorExit) else error
        self._leave(error)
        end_step(self._step, error)


def values_of_run(run_context: Any) -> Values:
    """Return the context variables that hold in a run, from the context that it hands to calls."""
    run = _runs.get(run_context.run_id) if run_context is not None else None
    return run.values() if run is not None else {}


@contextmanager
def step_in_run(run_context: Any, kind: str, name: str) -> Iterator[None]:
    """Make a step of a block, in the step of the node that a run is at."""
    with values_set(values_of_run(run_context)), step(kind, name):
        yield


def numbered(name: str) -> str:
    """Return a name and how often it was started from the step around: "writer.2"."""
    started = _started.get()
    if started is None:
        return name
    started[name] += 1
    return f"{name}.{started[name]}"


def own_lane() -> AbstractContextManager[None]:
    """Begin a line of lanes here: a tool runs in a task of its own, twice at once perhaps."""
    return values_set({_lane_around: lane_here(), _started: Counter()})


def _as_agent(iterate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(iterate)
    def iter_(self: Any, *args: Any, **options: Any) -> Any:
        running = iterate(self, *args, **options)
        if not in_session() or is_crossing_seam():  # A tool that is one exchange runs it.
            return running
        also = {is_attached: True} if id(self) in attached() else {}
        return Block(running, lambda: Run(self.name or UNNAMED, also))

    return iter_


def _as_node(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    async def ran(self: Any, ctx: Any) -> Any:
        running = getattr(ctx.deps, _RUN, None)
        if running is None:
            return await run(self, ctx)
        running.at(self)
        with values_set(running.values()):
            return await run(self, ctx)

    return ran


def _as_streamed_node(stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(stream)
    def streamed(self: Any, ctx: Any) -> Any:
        running = getattr(ctx.deps, _RUN, None)
        source = stream(self, ctx)
        return source if running is None else Block(source, lambda: _StreamedNode(running, self))

    return streamed


class _StreamedNode:
    """The streaming part of a node: its step goes on after it."""

    def __init__(self, run: Run, node: object) -> None:
        run.at(node)
        self.values = run.values

    def entered(self, result: Any) -> None:
        """Do nothing: the run knows the node."""

    def end(self, error: BaseException | None) -> None:
        """Do nothing: the step ends with the next node, or with the run."""


def _as_guardrail(validate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(validate)
    async def validated(self: Any, result: Any, run_context: Any, *args: Any) -> Any:
        if not in_session():
            return await validate(self, result, run_context, *args)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        with step_in_run(run_context, "guardrail", name), own_lane():
            return await validate(self, result, run_context, *args)

    return validated


def _is_retry(node: Any) -> bool:
    parts = getattr(getattr(node, "request", None), "parts", ())
    return any(type(part).__name__ in ("RetryPromptPart", "RetryFeedbackPart") for part in parts)
