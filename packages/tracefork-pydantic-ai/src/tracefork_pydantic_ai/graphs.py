"""Make steps of the graphs that a program builds with `pydantic_graph`.

Each node runs in a task of its own. Its lane is named after the node and its place in the forks
around it, since tasks start in an order that depends on the times of answers. A node behind a join
has several nodes before it, and its step says so. An agent is such a graph, too: `steps` does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pydantic_ai._agent_graph import GraphAgentState
from pydantic_graph._utils import infer_obj_name
from pydantic_graph.graph_builder import Graph, JoinItem, _GraphIterator
from pydantic_graph.join import Join
from pydantic_graph.step import Step

from tracefork_core.adapters import (
    BlockIn,
    Patches,
    RunningStep,
    begin_step,
    branch_lane,
    current_step,
    in_session,
    lane_here,
    own_branches,
    session_checked,
)

UNNAMED = "graph"

_FLOW = "_tracefork_flow"


def put_in(patches: Patches) -> None:
    """Put graphs and their nodes on the tape of the open session, as steps."""
    patches.wrap(Graph, "iter", _as_flow)
    patches.wrap(_GraphIterator, "_run_task", _as_node)
    patches.wrap(_GraphIterator, "_handle_non_fork_edges", _joined)


class _Flow(RunningStep):
    """One run of a graph: its step, and the steps before each task."""

    def __init__(self, name: str) -> None:
        super().__init__(begin_step("flow", name, parent=current_step.get()))
        self.lane = lane_here()
        self.started: Counter[str] = Counter()
        self._before: dict[str, tuple[str, ...]] = {}
        self._arrived: dict[str, list[tuple[frozenset[str], tuple[str, ...]]]] = {}
        self._after: dict[str, tuple[str, ...]] = {}

    def entered(self, result: Any) -> None:
        """Let nodes find this run, by the object that runs them."""
        setattr(result._iterator_instance, _FLOW, self)  # noqa: SLF001 - nothing public has both

    def after(self, task: Any) -> tuple[str, ...]:
        """Return the steps that a task waited for, if it is behind a join."""
        return self._after.get(task.task_id, ())

    def done(self, task: Any, result: Any, step: str | None = None) -> None:
        """Note the step before each task that a task leads to: its own, or those before it."""
        before = self._before.get(task.task_id, ()) if step is None else (step,)
        if isinstance(result, JoinItem):
            arrived = self._arrived.setdefault(result.join_id, [])
            arrived.append((_forks(result.fork_stack), before))
        elif isinstance(result, Sequence):
            for new in result:
                self._before[new.task_id] = before
                if step is None and task.task_id in self._after:
                    self._after[new.task_id] = self._after[task.task_id]

    def join(self, join_id: str, fork_stack: Any, new: Sequence[Any]) -> None:
        """Note the steps that arrived at a join before the tasks behind it."""
        forks = _forks(fork_stack)
        arrived = self._arrived.get(join_id, [])
        here = [(of, steps) for of, steps in arrived if forks <= of]
        self._arrived[join_id] = [(of, steps) for of, steps in arrived if not forks <= of]
        before = tuple(step for _, steps in here for step in steps)
        for task in new:
            self._before[task.task_id] = self._after[task.task_id] = before


def _forks(fork_stack: Any) -> frozenset[str]:
    return frozenset(item.node_run_id for item in fork_stack)


def _as_flow(iterate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(iterate)
    def iter_(self: Any, *, infer_name: bool = True, **options: Any) -> Any:
        if not in_session() or self.state_type is GraphAgentState:
            return iterate(self, infer_name=infer_name, **options)
        if infer_name and self.name is None:  # It would look at the frame above, which is ours.
            self.name = infer_obj_name(self, depth=2)
        running = iterate(self, infer_name=False, **options)
        return BlockIn(lambda: _Flow(self.name or UNNAMED), running)

    return iter_


def _as_node(run_task: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_task)
    async def ran(self: Any, task: Any) -> Any:
        flow: _Flow | None = getattr(self, _FLOW, None)
        if flow is None:
            return await run_task(self, task)
        if not isinstance(self.graph.nodes[task.node_id], Step):
            result = await run_task(self, task)
            flow.done(task, result)
            return result
        branch_lane(flow.lane, _lane_of(flow, task))
        name = str(task.node_id)
        begun = begin_step("node", name, parent=flow.step, after=flow.after(task))
        running = RunningStep(begun, own_branches())
        with session_checked(), running.block():
            result = await run_task(self, task)
        flow.done(task, result, running.step)
        return result

    return ran


def _lane_of(flow: _Flow, task: Any) -> str:
    """Return "fetch.3.1": the node, its place in each fork around it, and its how many-th run."""
    places = "".join(f".{item.thread_index + 1}" for item in task.fork_stack[1:])
    name = f"{task.node_id}{places}"
    flow.started[name] += 1
    return f"{name}.{flow.started[name]}"


def _joined(handle: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(handle)
    def handled(self: Any, node: Any, inputs: Any, fork_stack: Any) -> Any:
        new = handle(self, node, inputs, fork_stack)
        flow: _Flow | None = getattr(self, _FLOW, None)
        if flow is not None and isinstance(node, Join):
            flow.join(node.id, fork_stack, new)
        return new

    return handled
