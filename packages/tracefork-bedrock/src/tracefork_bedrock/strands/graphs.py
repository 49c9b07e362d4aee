"""Make steps of graphs and swarms: of each node, after the nodes whose results it gets.

The nodes of a graph that are ready run in parallel. Each runs on a lane with its own name, so that
the requests of two nodes are told apart however they interleave.

Strands keeps nodes and edges in sets, whose order follows the hashes of their names. So two
processes start the nodes of a graph in different orders, and name the inputs of a join in different
orders in its prompt. In a session both follow the order in which the nodes were added.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from strands.multiagent.graph import Graph
from strands.multiagent.swarm import Swarm

from tracefork_bedrock.strands.steps import node_name
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    checked_events,
    events_in,
    is_recorded_here,
    own_branches,
    take_lane,
)

_steps: ContextVar[dict[str, str] | None] = ContextVar("tracefork_strands_steps", default=None)
"""The latest step of each node of the graph or swarm around, by the node's name."""


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
        return _in_run(str(self.id), events) if is_recorded_here() else events

    return stream_async


def _in_run(name: str, events: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    def begin() -> RunningStep:
        return RunningStep.begin("run", name, {**own_branches(), _steps: {}})

    return events_in(begin, checked_events(events))


def _node_of_graph(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def _execute_node(self: Any, node: Any, *args: Any, **options: Any) -> Any:
        events = execute(self, node, *args, **options)
        if (steps := _steps.get()) is None or not is_recorded_here():
            return events
        return _in_node(steps, node.node_id, events, [it.node_id for it in _waited_for(self, node)])

    return _execute_node


def _node_of_swarm(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    def _execute_node(self: Any, node: Any, *args: Any, **options: Any) -> Any:
        events = execute(self, node, *args, **options)
        if (steps := _steps.get()) is None or not is_recorded_here():
            return events
        before = self.state.node_history
        return _in_node(steps, node.node_id, events, [it.node_id for it in before[-1:]])

    return _execute_node


def _in_node(
    steps: dict[str, str], name: str, events: AsyncIterable[Any], before: list[str]
) -> AsyncGenerator[Any, None]:
    def begin() -> RunningStep:
        take_lane(name)
        after = [steps[it] for it in before if it in steps]
        running = RunningStep.begin("node", name, {node_name: name}, after=after)
        if running.step is not None:
            steps[name] = running.step
        return running

    return events_in(begin, events)


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
