"""Turn the spans of a trace into a run: its model calls, tools and requests, inside its steps.

A span is an exchange if it asked a model, a tool or a server; a span with others below it is a
step; one that is both is a step with its exchange inside.

Instrumentations stack: a framework, an instrumentation of the SDK and the SDK itself may each make
a span for one call of a model. Such spans lie inside one another, or have the same id of the
response. The innermost that has the messages is the call.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.exchange.contract import AFTER, Failure, Head, Request
from tracefork_core.interop import conventions
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, ForeignStep
from tracefork_core.interop.importing.span_calls import call_of, step_of
from tracefork_core.interop.span import Span
from tracefork_core.providers import traced
from tracefork_core.providers.call import ModelCall, ToolUse
from tracefork_core.providers.lenient import compact, count
from tracefork_core.tape.imported import UNKNOWN, Blamed, Grade

_DEEPEST = 64
_OK = Head(200, "OK", ())
_HIDDEN = ("__REDACTED__",)
"""What OpenInference writes in place of content that is not to be told."""


def run_of(format_name: str, spans: list[Span], blamed: Blamed | None = None) -> ForeignRun:
    """Return the run that the spans of one trace describe, in the order in which they began."""
    # What export wrote around the run is no part of it.
    written = [span for span in spans if conventions.RUN not in span.attributes]
    ordered = sorted(written, key=lambda span: span.started)
    for span in ordered:
        span.attributes = {
            name: value for name, value in span.attributes.items() if value not in _HIDDEN
        }
    trace = _Trace(ordered)
    run = ForeignRun(format_name, steps=list(trace.steps()), blamed=blamed)
    run.exchanges = list(trace.exchanges())
    run.outcome = _outcome(spans)
    run.missing = _missing(run.exchanges)
    return run


def _outcome(spans: list[Span]) -> str:
    """Return how a run ended: what the outermost spans failed with, if one did."""
    ids = {span.id for span in spans}
    outermost = [span for span in spans if span.parent not in ids]
    failed = next((span for span in outermost if span.error is not None), None)
    if failed is not None:
        return failed.text("error.type") or "error"
    known = (span.text(conventions.OUTCOME) for span in outermost)  # As export writes it.
    return next((outcome for outcome in known if outcome), UNKNOWN)


def _missing(exchanges: list[ForeignExchange]) -> list[str]:
    without = sum(exchange.grade == "structure" for exchange in exchanges)
    said = ["A trace has the content of requests and responses at most, and not their bytes."]
    if without:
        said.append(f"The content of {without} of {len(exchanges)} calls is missing or incomplete.")
    return said


class _Trace:
    """The spans of a trace, in the order in which they began."""

    def __init__(self, spans: list[Span]) -> None:
        self._by_id = {span.id: span for span in spans}
        self._calls = {id(span): call for span in spans if (call := call_of(span)) is not None}
        self._repeats = set(self._repeating(spans))
        above = {span.parent for span in spans}
        self._spans = [span for span in spans if span.id in above or not self._says_again(span)]
        self._parents = {span.parent for span in self._spans} & self._by_id.keys()

    def steps(self) -> Iterator[ForeignStep]:
        """Yield a step for each span with others below it, and for each that is no exchange."""
        for span in self._spans:
            if span.id in self._parents or self._exchange(span) is None:
                kind, name = step_of(span)
                if isinstance(self._calls.get(id(span)), ToolUse):
                    kind = "tool"
                detail: dict[str, object] = {AFTER: span.links} if span.links else {}
                parent = span.parent if span.parent in self._by_id else None
                yield ForeignStep(
                    span.id, kind, name, parent, span.started, span.ended, span.error, detail
                )

    def exchanges(self) -> Iterator[ForeignExchange]:
        """Yield what the spans asked of models, tools and servers."""
        for span in self._spans:
            if (exchange := self._exchange(span)) is not None:
                exchange.started = span.started
                exchange.took = max(span.ended - span.started, 0) if span.ended else None
                exchange.step = span.id if span.id in self._parents else span.parent
                yield exchange

    def _exchange(self, span: Span) -> ForeignExchange | None:
        call = self._calls.get(id(span))
        if isinstance(call, ToolUse):
            return _tool_exchange(span, call)
        if isinstance(call, ModelCall):
            return None if id(span) in self._repeats else _model_exchange(call)
        return None if self._is_in_call(span) else _http_exchange(span)

    def _says_again(self, span: Span) -> bool:
        """Return whether a span stands for a call that another span stands for."""
        is_request = _http_exchange(span) is not None and self._is_in_call(span)
        return id(span) in self._repeats or is_request

    def _is_in_call(self, span: Span) -> bool:
        return any(id(above) in self._calls for above in self._ancestors(span))

    def _ancestors(self, span: Span) -> list[Span]:
        found: list[Span] = []
        while span.parent in self._by_id and len(found) < _DEEPEST:
            span = self._by_id[span.parent]
            found.append(span)
        return found

    def _repeating(self, spans: list[Span]) -> Iterator[int]:
        """Yield the model calls that another span stands for better, by the id of the object."""
        calls = {
            id(span): call
            for span in spans
            if isinstance(call := self._calls.get(id(span)), ModelCall)
        }
        asked = [span for span in spans if id(span) in calls]
        above = {id(span): self._ancestors(span) for span in asked}
        outer = {id(each) for ancestors in above.values() for each in ancestors}
        inside: dict[int, list[Span]] = {}
        for span in asked:
            if id(span) not in outer:
                for each in above[id(span)]:
                    inside.setdefault(id(each), []).append(span)
        same: dict[object, list[Span]] = {}
        for span in asked:
            innermost = inside.get(id(span), [span])
            if len(innermost) > 1:
                yield id(span)  # It stands for several calls.
            else:
                call = calls[id(innermost[0])]
                same.setdefault(call.response_id or id(innermost[0]), []).append(span)
        for stack in same.values():
            best = max(stack, key=lambda span: (_is_whole(calls[id(span)]), len(above[id(span)])))
            for span in stack:
                nested = span in above[id(best)] or best in above[id(span)]
                # Some programs give all calls of a run one id: those have messages of their own.
                if span is not best and (nested or not _is_whole(calls[id(span)])):
                    yield id(span)


def _is_whole(call: ModelCall) -> bool:
    """Return whether a call has the messages of its question and of its answer."""
    return bool(call.input or call.system) and bool(call.output or call.error)


def _model_exchange(call: ModelCall) -> ForeignExchange:
    asked, answered = traced.encode(call)
    failure = Failure(call.error.type, call.error.message or "") if call.error else None
    return ForeignExchange(
        Request("POST", traced.url_of(call), (), asked, "import"),
        None if failure else _OK,
        () if failure else (answered,),
        failure,
        grade="content" if _is_whole(call) else "structure",
    )


def _failure(span: Span, otherwise: str) -> Failure:
    return Failure(span.text("error.type") or "error", span.error or otherwise)


def _tool_exchange(span: Span, use: ToolUse) -> ForeignExchange:
    failure = (
        Failure(span.text("error.type") or "error", span.error or "") if use.is_error else None
    )
    grade: Grade = "content" if use.result is not None or failure else "structure"
    arguments = compact(use.arguments if use.arguments is not None else {})
    return ForeignExchange(
        Request("CALL", f"tool:{use.name}", (), arguments.encode(), "tool"),
        None if failure else _OK,
        () if failure else (compact(use.result).encode(),),
        failure,
        grade=grade,
    )


def _http_exchange(span: Span) -> ForeignExchange | None:
    """Return the request that a span of an HTTP client stands for, without its bodies."""
    method = span.text("http.request.method", "http.method")
    url = span.text("url.full", "http.url")
    if method is None or url is None:
        return None
    status = count(span.get("http.response.status_code", "http.status_code"))
    return ForeignExchange(
        Request(method, url, (), b"", "import"),
        Head(status, "", ()) if status is not None else None,
        failure=_failure(span, "no response") if status is None else None,
        grade="structure",
    )
