"""Turn LangChain's callbacks into the steps of the tape, and give each exchange its step.

A handler learns that a run began (with the id of its parent) and that it ended. An exchange knows
only the context it is made in. The two meet in the context variable `current_step`, which the
handler sets when a node, a model, a tool or a retriever begins. With `run_inline` the handler runs
in the context of the run itself, in async code too. An async handler, or one in an executor, would
set the variable in a context that no exchange sees.

Chains and whole graphs are steps too, but never the current one: they make no exchanges themselves,
and the consumer of their stream shares their context.

When a replay diverges, a model fails with an error of its SDK, which LangGraph retries. So the
error callbacks raise the `DivergenceError` instead, which LangGraph does not retry.
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
    """A LangChain run on the tape: its step, the lane where it began, and the step around it."""

    step: str
    lane: Lane | None
    before: str | None
    name: str
    kind: str


# Shared by all handlers: a run that two of them see is one step.
_running: dict[UUID, _Run] = {}
_told: WeakSet[GraphInterrupt] = WeakSet()


def _is_news(_: logging.LogRecord) -> bool:
    """Keep LangChain from logging a divergence as an error of the handler: it is raised anyway."""
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

        `generate` with several prompts begins all of them before it sends the first request. So
        their exchanges cannot be told apart, and belong to the step around them.
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
            branch = call  # One node runs several tools at once; the call ids come from the tape.
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
        """Make the step around the model current again, for the code that reads its tokens."""
        _hand_back(_running.get(run_id))

    def on_stream_event(self, event: object, *, run_id: UUID, **kwargs: object) -> None:
        """Make the step around the model current again, as for a token."""
        _hand_back(_running.get(run_id))

    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: object) -> None:
        """End the step of a run."""
        _end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """End the step of a run that raised.

        An interrupt, a command to a parent graph and an abandoned stream are not errors.

        Raises:
            TraceforkError: the session has diverged, and `error` is another exception.
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
        parent.kind = _GRAPH  # It began as a chain; a node inside shows that it is a graph.
    _running[run_id] = _Run(step, lane_here(), current_step.get(), name, kind)
    if current:
        current_step.set(step)


def _interrupt(run_id: UUID, error: GraphInterrupt) -> None:
    """Put an interrupt on the tape once, at the innermost node that it passes."""
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
    """Make the step around a run current again if the run shares its caller's context."""
    if run is not None and current_step.get() == run.step:
        current_step.set(run.before)


def _name(
    serialized: Mapping[str, object] | None, kwargs: Mapping[str, object], otherwise: str
) -> str:
    """Return the name of a run without the ids that change from run to run."""
    name = kwargs.get("name") or (serialized or {}).get("name") or otherwise
    return _UUID.sub("", str(name))


def _place(name: str, metadata: Mapping[str, object]) -> str:
    """Return a name that is unique in a superstep: the node, and its position in a fan-out."""
    path = metadata.get("langgraph_path")
    if isinstance(path, tuple) and path[:1] == (_PUSHED,):
        return f"{name}.{next(part for part in reversed(path) if type(part) is int)}"
    return name


def _map_key(tags: Sequence[str] | None) -> str | None:
    """Return the key of a run among the branches of a RunnableParallel."""
    keys = (tag for tag in tags or () if tag.startswith(_BRANCH_TAG))
    return next((key.removeprefix(_BRANCH_TAG) for key in keys), None)
