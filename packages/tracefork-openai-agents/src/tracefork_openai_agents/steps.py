"""Make steps of the spans of the SDK's tracing, whether its tracing is on or off.

All spans are made by functions of `agents.tracing.create`, which ask for the trace provider. Here
they get a provider that lets the program's own provider make the span, and wraps it. So a recording
exports what it would export without a session, and nothing where tracing is disabled: then the span
is a no-op, but it still is a step. A replay has no processors, so it exports nothing.

What a span does at its start and end is below the seam: processors may do anything there, and a
replay does not run them. Its id is drawn above the seam, because programs print ids.

Spans alone leave gaps, which are closed here: `include_task_and_turn_spans=False` leaves out runs
and turns, and `RunConfig(tracing_disabled=True)` the spans of some tools (see `tools`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from agents import run
from agents.run_internal import run_loop
from agents.tracing import Span, create
from agents.tracing.provider import DefaultTraceProvider, TraceProvider
from agents.tracing.span_data import SpanData, TaskSpanData, TurnSpanData
from agents.tracing.spans import NoOpSpan

from tracefork_core.adapters import (
    Patches,
    answering_tape,
    begin_step,
    crossing_seam,
    current_step,
    end_step,
    in_session,
    step,
)

KINDS = {
    "task": "run",
    "agent": "agent",
    "turn": "turn",
    "response": "model",
    "generation": "model",
    "function": "tool",
    "handoff": "handoff",
    "guardrail": "guardrail",
    "mcp_tools": "mcp",
    "custom": "chain",
}
"""The kind of the step of each type of span. Others (speech) are no steps."""

MASK = "Agent run"
"""The name of a disabled span that hides the program's own span from a run without tracing."""

model_name: ContextVar[str] = ContextVar("tracefork_model_name", default="model")
"""The model that this run is about to ask: the spans of some models do not tell."""

handoff_to: ContextVar[str] = ContextVar("traceforkhandoff_to", default="handoff")

inside_tool: ContextVar[bool] = ContextVar("tracefork_inside_tool", default=False)
"""Whether a tool runs here that is one exchange. A replay does not run it, so it has no steps."""

_tool_step: ContextVar[str | None] = ContextVar("tracefork_tool_step", default=None)
"""The innermost step that is a span of a tool."""

_wants_runs_and_turns: ContextVar[bool] = ContextVar("tracefork_runs_and_turns", default=True)


def put_in(patches: Patches) -> None:
    """Put the spans of the SDK on the tape of the open session, as steps."""
    patches.wrap(create, "get_trace_provider", _with_steps)
    for module in (run, run_loop):
        patches.wrap(module, "include_task_and_turn_spans", _always)


def _always(wanted: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def include_task_and_turn_spans(config: Any) -> bool:
        wants = wanted(config)
        if not in_session():
            return wants
        _wants_runs_and_turns.set(wants)
        return True

    return include_task_and_turn_spans


def _with_steps(provider_of_program: Callable[[], Any]) -> Callable[[], Any]:
    def get_trace_provider() -> Any:
        provider = provider_of_program()
        if not in_session() or inside_tool.get():
            return provider
        return _Steps(provider if answering_tape() is None else _silent(provider))

    return get_trace_provider


def _silent(provider: Any) -> TraceProvider:
    """Return a provider without processors that is on or off like the program's own."""
    silent = DefaultTraceProvider()
    if isinstance(provider, DefaultTraceProvider):
        for name in ("_manual_disabled", "_env_disabled"):
            setattr(silent, name, getattr(provider, name))
    return silent


class _Steps:
    """Lets a provider make spans, and makes steps of them. `agents.tracing.create` needs these."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def create_span(
        self, span_data: SpanData, span_id: Any = None, parent: Any = None, disabled: bool = False
    ) -> Any:
        left_out = isinstance(span_data, (TaskSpanData, TurnSpanData))
        if left_out and not _wants_runs_and_turns.get():
            return StepSpan(_NotTraced(span_data))
        span = self._provider.create_span(span_data, span_id, parent, disabled)
        if span_data.type not in KINDS or (disabled and getattr(span_data, "name", "") == MASK):
            return span
        return StepSpan(span)


def step_of_tool(name: str) -> AbstractContextManager[None]:
    """Return a step for a tool that has no span: a run without tracing makes none for some."""
    here = current_step.get()
    return nullcontext() if here is not None and here == _tool_step.get() else _own_step(name)


@contextmanager
def _own_step(name: str) -> Iterator[None]:
    with step("tool", name):
        token = _tool_step.set(current_step.get())
        try:
            yield
        finally:
            _tool_step.reset(token)


class _NotTraced(NoOpSpan[Any]):
    """A span that the program does not want: spans inside of it belong to the one around it."""

    def start(self, mark_as_current: bool = False) -> None:
        pass

    def finish(self, reset_current: bool = False) -> None:
        pass


class StepSpan(Span[Any]):
    """A span of the program's provider that is a step while it is open."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self._around: str | None = None
        self._step: str | None = None

    def start(self, mark_as_current: bool = False) -> None:
        with crossing_seam():
            self._span.start(mark_as_current)
        self._around = current_step.get()
        data = self._span.span_data
        self._step = begin_step(KINDS[data.type], _name_of(data), parent=self._around)
        if mark_as_current:
            current_step.set(self._step)
            if data.type == "function":
                _tool_step.set(self._step)

    def finish(self, reset_current: bool = False) -> None:
        self._end(None)
        with crossing_seam():
            self._span.finish(reset_current)

    def __enter__(self) -> Self:
        self.start(mark_as_current=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)
        with crossing_seam():
            self._span.__exit__(kind, error, traceback)

    def _end(self, error: BaseException | None) -> None:
        if self._step is None:
            return
        noted = self._span.error
        end_step(self._step, noted["message"] if noted else error)
        if current_step.get() == self._step:  # An abandoned stream ends in another context.
            current_step.set(self._around)
        self._step = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._span, name)

    @property
    def span_data(self) -> Any:
        return self._span.span_data

    @property
    def trace_id(self) -> str:
        return str(self._span.trace_id)

    @property
    def span_id(self) -> str:
        return str(self._span.span_id)

    @property
    def parent_id(self) -> str | None:
        parent: str | None = self._span.parent_id
        return parent

    def set_error(self, error: Any) -> None:
        self._span.set_error(error)

    @property
    def error(self) -> Any:
        return self._span.error

    def export(self) -> Any:
        return self._span.export()

    @property
    def started_at(self) -> Any:
        return self._span.started_at

    @property
    def ended_at(self) -> Any:
        return self._span.ended_at

    @property
    def tracing_api_key(self) -> Any:
        return self._span.tracing_api_key

    @property
    def trace_metadata(self) -> Any:
        return self._span.trace_metadata


def _name_of(data: Any) -> str:
    match data.type:
        case "turn":
            return f"turn {data.turn}"
        case "response" | "generation":
            return model_name.get()
        case "handoff":
            return handoff_to.get()
        case "mcp_tools":
            return str(data.server)
    return str(data.name)
