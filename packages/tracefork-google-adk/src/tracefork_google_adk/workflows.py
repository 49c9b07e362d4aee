"""Make steps of the nodes of workflows, and of their joins.

A node that is an agent has the step of that agent. Every other node, a function say, has one of its
own: what it asks over HTTP belongs to it. A join has several nodes before it, and its step says so.

ADK gives a join the outputs of those nodes in the order of a set, which hashes decide. A session
sorts them by the edges of the graph, so that a replay in another process sends the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.workflow import BaseNode, Workflow

from tracefork_core.adapters import Patches, in_session
from tracefork_google_adk.steps import Events, stepped, steps_of_nodes


def put_in(patches: Patches) -> None:
    """Put the nodes of workflows on the tape of the open session, as steps."""
    patches.wrap(BaseNode, "run", _as_node)
    patches.wrap(Workflow, "_buffer_barrier_trigger", _in_order)


def _as_node(run: Callable[..., Events]) -> Callable[..., Events]:
    @wraps(run)
    def ran(self: Any, *, ctx: Any, node_input: Any) -> Events:
        events = run(self, ctx=ctx, node_input=node_input)
        if not in_session() or isinstance(self, BaseAgent):
            return events
        if isinstance(self, Workflow):
            return stepped("flow", self.name, events, is_branch=True, nodes={})
        return stepped("node", self.name, events, is_branch=True, after=_joined(self, ctx))

    return ran


def _joined(node: Any, ctx: Any) -> tuple[str, ...]:
    """Return the latest steps of the nodes that a join waited for."""
    known = steps_of_nodes.get()
    around = getattr(ctx.parent_ctx, "node", None) if known and _is_join(node) else None
    if known is None or not isinstance(around, Workflow):
        return ()
    return tuple(known[name] for name in _before(around, node.name) if name in known)


def _is_join(node: Any) -> bool:
    waits: bool = node._requires_all_predecessors  # noqa: SLF001 - nothing public tells
    return waits


def _before(workflow: Any, name: str) -> list[str]:
    return [edge.from_node.name for edge in workflow.graph.edges if edge.to_node.name == name]


def _in_order(buffer: Callable[..., None]) -> Callable[..., None]:
    @wraps(buffer)
    def buffered(self: Any, loop_state: Any, target_name: str) -> None:
        buffer(self, loop_state, target_name)
        if not in_session():
            return
        for trigger in loop_state.trigger_buffer.get(target_name, ()):
            given = trigger.input
            trigger.input = {name: given[name] for name in _before(self, target_name)}

    return buffered
