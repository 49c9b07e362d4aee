"""Make steps of graphs and swarms: of each node, after the nodes whose results it gets.

The nodes of a graph that are ready run in parallel. Each runs on a lane with its own name, so that
the requests of two nodes are told apart however they interleave.

Strands keeps nodes and edges in sets, whose order follows the hashes of their names. So two
processes start the nodes of a graph in different orders, and name the inputs of a join in different
orders in its prompt. In a session both follow the order in which the nodes were added.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from strands.multiagent.graph import Graph
from strands.multiagent.swarm import Swarm

from tracefork_bedrock.strands.steps import (
    checked,
    is_recorded_here,
    node_name,
)
from tracefork_core.adapters import (
    Lane,
    Patches,
    RunningStep,
    branch_lane,
    events_in,
    lane_here,
)


@dataclass(slots=True)
class _Run:
    """One run of a graph or a swarm: its lane, and the steps of its nodes so far."""

    lane: Lane | None
    steps: dict[str, str] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)


_run: ContextVar[_Run | None] = ContextVar("tracefork_strands_run", default=None)


def put_in(patches: Patches) -> None:
    """Put the nodes of graphs and swarms on the tape of the open session, as steps."""
    for kind in (Graph, Swarm):
        patches.wrap(kind, "stream_async", _run_step)
    patches.wrap(Graph, "_execute_node", _node_of_graph)
    patches.wrap(Swarm, "_execute_node", _node_of_swarm)
    patches.wrap(Graph, "_execute_nodes_parallel", _start_in_order)
    patches.wrap(Graph, "_build_node_input", _join_in_order)


def _run_step(stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(stream)
    def stream_async(self: Any, *args: Any, **options: Any) -> Any:
        events = stream(self, *args, **options)
        return _in_run(self, events) if is_recorded_here() else events

    return stream_async


async def _in_run(flow: Any, events: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    running, run = RunningStep.begin("run", str(flow.id)), _Run(lane_here())
    async with aclosing(events_in(running, checked(events), {_run: run})) as inside:
        async for event in inside:
            yield event


def _node_of_graph(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def _execute_node(self: Any, node: Any, *args: Any, **options: Any) -> Any:
        events = execute(self, node, *args, **options)
        if (run := _run.get()) is None or not is_recorded_here():
            return events
        return _in_node(run, node.node_id, events, [it.node_id for it in _waited_for(self, node)])

    return _execute_node


def _node_of_swarm(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def _execute_node(self: Any, node: Any, *args: Any, **options: Any) -> Any:
        events = execute(self, node, *args, **options)
        if (run := _run.get()) is None or not is_recorded_here():
            return events
        before = self.state.node_history
        return _in_node(run, node.node_id, events, [it.node_id for it in before[-1:]])

    return _execute_node


async def _in_node(
    run: _Run, name: str, events: AsyncIterable[Any], before: list[str]
) -> AsyncGenerator[Any, None]:
    visits = run.visits[name] = run.visits.get(name, 0) + 1
    branch_lane(run.lane, name if visits == 1 else f"{name}.{visits}")
    after = [run.steps[it] for it in before if it in run.steps]
    running = RunningStep.begin("node", name, after=after)
    if running.step is not None:
        run.steps[name] = running.step
    async with aclosing(events_in(running, events, {node_name: name})) as inside:
        async for event in inside:
            yield event


def _waited_for(graph: Any, node: Any) -> list[Any]:
    """Return the nodes whose results a node gets."""
    sources = {edge.from_node for edge in graph.edges if edge.to_node == node}
    done = graph.state.completed_nodes
    return [it for it in graph.nodes.values() if it in sources and it in done]


def _start_in_order(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def _execute_nodes_parallel(self: Any, nodes: Any, *args: Any, **options: Any) -> Any:
        if is_recorded_here():
            nodes = sorted(nodes, key=[*self.nodes.values()].index)
        return execute(self, nodes, *args, **options)

    return _execute_nodes_parallel


def _join_in_order(build: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(build)
    def _build_node_input(self: Any, node: Any) -> Any:
        if not is_recorded_here():
            return build(self, node)
        order, edges = [*self.nodes.values()].index, self.edges
        self.edges = sorted(edges, key=lambda it: (order(it.from_node), order(it.to_node)))
        try:
            return build(self, node)
        finally:
            self.edges = edges

    return _build_node_input
