"""LangChain's callbacks become the steps of the tape, and exchanges find their step.

What a handler learns: a run began (with the id of its parent), a run ended. What an exchange can
be asked: the context it is made in. The two meet in `current_step`, which the handler sets where a
node, a model, a tool or a retriever begins. `run_inline` makes that the context of the run itself,
in async code too; an async handler, or one in an executor, would set it where nobody looks.

Chains and whole graphs are steps as well, but never the current one: they make no exchange
of their own, and the consumer of their stream shares their context.

A replay that left its tape fails a model in the words of its SDK, which LangGraph retries. The
error callbacks put the `DivergenceError` in its place, which it does not.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakSet

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks import manager as _manager
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from tracefork_core import TraceforkError
from tracefork_core.adapters import (
    Lane,
    begin_step,
    branch_lane,
    check_session,
    current_step,
    end_step,
    lane_here,
    restart_lane_numbers,
)
from tracefork_langgraph.running import note_input

_UUID = re.compile(r":?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NODE_TAG = "graph:step:"
_BRANCH_TAG = "map:key:"
_PUSHED = "__pregel_push"
_AGENT = "lc_agent_name"
_GRAPH = "subgraph"


@dataclass(slots=True)
class _Run:
    """A LangChain run on the tape: its step, the lane it began on, and the step around it."""

    step: str
    lane: Lane | None
    before: str | None
    name: str
    kind: str


# Shared by all handlers: where two of them see a run, it is one step.
_running: dict[UUID, _Run] = {}
_told: WeakSet[GraphInterrupt] = WeakSet()


def _is_news(_: logging.LogRecord) -> bool:
    """Keep LangChain from logging a divergence as a fault of the handler: it is raised anyway."""
    return not isinstance(sys.exception(), TraceforkError)


logging.getLogger(_manager.__name__).addFilter(_is_news)


class TracingHandler(BaseCallbackHandler):
    """Put the runs of LangChain and LangGraph on the tape as steps. A no-op outside a session.

    `attach` installs one for every run of a session. To choose the runs yourself, pass it where
    LangChain takes callbacks: `graph.invoke(state, {"callbacks": [TracingHandler()]})`.
    """

    run_inline = True
    raise_error = True

    def on_chain_start(
        self,
        serialized: Mapping[str, object] | None,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Begin the step of a graph, an agent in one, a node or a chain."""
        note_input(inputs)
        name = _name(serialized, kwargs, "chain")
        metadata = metadata or {}
        if any(tag.startswith(_NODE_TAG) for tag in tags or ()):
            detail = {"step": metadata.get("langgraph_step")}
            branch = _place(name, metadata)
            _begin(run_id, parent_run_id, "node", name, detail, branch=branch, current=True)
            return
        kind = "run" if parent_run_id is None else "chain"
        if parent_run_id is not None and metadata.get(_AGENT) == name:
            kind = "agent"
        _begin(run_id, parent_run_id, kind, name, branch=_map_key(tags))

    def on_chat_model_start(
        self,
        serialized: Mapping[str, object] | None,
        messages: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Begin the step of a model.

        `generate` with several prompts begins all of them before it asks for the first: which
        exchange is whose cannot be told, so all are left to the step around them.
        """
        parameters = kwargs.get("invocation_params")
        asked = parameters if isinstance(parameters, Mapping) else {}
        detail = {"model": asked.get("model") or asked.get("model_name")}
        name = _name(serialized, kwargs, "model")
        alone = kwargs.get("batch_size", 1) == 1
        branch = _map_key(tags)
        _begin(run_id, parent_run_id, "model", name, detail, branch=branch, current=alone)

    on_llm_start = on_chat_model_start

    def on_tool_start(
        self,
        serialized: Mapping[str, object] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Begin the step of a tool."""
        call = kwargs.get("tool_call_id")
        branch = _map_key(tags)
        path = (metadata or {}).get("langgraph_path")
        if isinstance(call, str) and not (isinstance(path, tuple) and path[:1] == (_PUSHED,)):
            branch = call  # A node that runs several tools at once: their ids come off the tape.
        name = _name(serialized, kwargs, "tool")
        _begin(run_id, parent_run_id, "tool", name, {"call": call}, branch=branch, current=True)

    def on_retriever_start(
        self,
        serialized: Mapping[str, object] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Begin the step of a retriever."""
        name = _name(serialized, kwargs, "retriever")
        _begin(run_id, parent_run_id, "retriever", name, branch=_map_key(tags), current=True)

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: object) -> None:
        """Hand the context back: the answer is here, and whoever reads it shares the context."""
        _hand_back(_running.get(run_id))

    def on_stream_event(self, event: object, *, run_id: UUID, **kwargs: object) -> None:
        """Hand the context back, as with a token."""
        _hand_back(_running.get(run_id))

    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: object) -> None:
        """End a step."""
        _end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """End a step that raised.

        An interrupt, a command to a parent graph and a stream that nobody reads on are no errors.

        Raises:
            TraceforkError: the session has diverged, and `error` does not say so yet.
        """
        if isinstance(error, GraphInterrupt):
            _interrupt(run_id, error)
        _end(run_id, None if isinstance(error, (GraphBubbleUp, GeneratorExit)) else error)
        if isinstance(error, Exception) and not isinstance(error, (GraphBubbleUp, TraceforkError)):
            check_session()

    on_llm_end = on_tool_end = on_retriever_end = on_chain_end
    on_llm_error = on_tool_error = on_retriever_error = on_chain_error


def _begin(
    run_id: UUID,
    parent_run_id: UUID | None,
    kind: str,
    name: str,
    detail: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    current: bool = False,
) -> None:
    if run_id in _running:
        return
    parent = _running.get(parent_run_id) if parent_run_id else None
    if parent and branch:
        branch_lane(parent.lane, branch)
    if kind == "node":
        restart_lane_numbers()
    known = {key: value for key, value in (detail or {}).items() if value is not None}
    step = begin_step(kind, name, parent=parent.step if parent else None, detail=known)
    if step is None:
        return
    if kind == "node" and parent and parent.kind == "chain":
        parent.kind = _GRAPH  # It began as any chain does; its own nodes tell that it is one.
    _running[run_id] = _Run(step, lane_here(), current_step.get(), name, kind)
    if current:
        current_step.set(step)


def _interrupt(run_id: UUID, error: GraphInterrupt) -> None:
    """Put an interrupt on the tape, at the innermost node that it passes."""
    run = _running.get(run_id)
    if run is not None and run.kind == "node" and error not in _told:
        _told.add(error)
        end_step(begin_step("interrupt", run.name, parent=run.step))


def _end(run_id: UUID, error: BaseException | None = None) -> None:
    run = _running.pop(run_id, None)
    if run is not None:
        end_step(run.step, error, kind=_GRAPH if run.kind == _GRAPH else None)
        _hand_back(run)


def _hand_back(run: _Run | None) -> None:
    """Make the step around a run the current one, where the run shares its caller's context."""
    if run is not None and current_step.get() == run.step:
        current_step.set(run.before)


def _name(
    serialized: Mapping[str, object] | None, kwargs: Mapping[str, object], otherwise: str
) -> str:
    """Return the name of a run without the ids that change from run to run."""
    name = kwargs.get("name") or (serialized or {}).get("name") or otherwise
    return _UUID.sub("", str(name))


def _place(name: str, metadata: Mapping[str, object]) -> str:
    """Return what tells the tasks of one superstep apart: the node, and its place in a fan-out."""
    path = metadata.get("langgraph_path")
    if isinstance(path, tuple) and path[:1] == (_PUSHED,):
        return f"{name}.{next(part for part in reversed(path) if type(part) is int)}"
    return name


def _map_key(tags: Sequence[str] | None) -> str | None:
    """Return the key of a run among the branches of a RunnableParallel."""
    keys = (tag for tag in tags or () if tag.startswith(_BRANCH_TAG))
    return next((key.removeprefix(_BRANCH_TAG) for key in keys), None)
