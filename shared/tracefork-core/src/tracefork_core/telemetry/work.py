"""One piece of work: a record, replay, fork or blame. It is reported once it is over."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

from tracefork_core.exchange.current import outside
from tracefork_core.patching.real_clock import monotonic_ns, time_ns
from tracefork_core.telemetry.instruments import RUN_DURATION
from tracefork_core.telemetry.observers import Observers, observers, stop

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Value = str | int | float | bool

_around: ContextVar[str] = ContextVar("tracefork_traceparent", default="")
"""The work that this work is a part of, as a W3C traceparent; other processes may run it."""


def begin(operation: str) -> Work | None:
    """Begin a piece of work; None if nothing is reported.

    Raises:
        UsageError: the environment has an unknown value, or asks for what is not installed.
    """
    chosen = observers()
    return None if chosen is None else Work(operation, chosen)


@contextmanager
def part_of(traceparent: str) -> Iterator[None]:
    """Make the work that begins inside a part of other work, also of another process."""
    token = _around.set(traceparent)
    try:
        yield
    finally:
        _around.reset(token)


class Work:
    """Work that will be reported. A failed report never fails the work."""

    def __init__(self, operation: str, observers: Observers) -> None:
        self._operation = operation
        self._observers = observers
        self._began, self._began_monotonic = time_ns(), monotonic_ns()
        self._context, self._carrier = _parent()
        self._span: Span | None = None
        self._measured: list[tuple[str, float, dict[str, str]]] = []

    def traceparent(self) -> str:
        """Begin the span now, and return what parts of this work continue; "" without traces."""
        carrier: dict[str, str] = {}
        _apart(lambda: self._begin_span(carrier))
        return carrier.get("traceparent", "")

    def measure(self, name: str, value: float, **attributes: str) -> None:
        """Add a value of a metric to the report. Keywords are attributes without our prefix."""
        given = {f"tracefork.{key}": text for key, text in attributes.items()}
        self._measured.append((name, value, given))

    def end(self, attributes: Mapping[str, Value], error: BaseException | None) -> None:
        """Report the work, with the class of its error: a message may quote a secret."""
        took = (monotonic_ns() - self._began_monotonic) / 1e9
        _apart(lambda: self._report(took, attributes, _outcome(error)))

    def _report(self, took: float, attributes: Mapping[str, Value], outcome: str) -> None:
        to, name = self._observers, f"tracefork.{self._operation}"
        failed = {} if outcome == "ok" else {"error.type": outcome}
        facts = {**attributes, **failed}
        self._begin_span({})
        span, ids = self._span, {}
        if span is not None:
            from opentelemetry.trace import Status, StatusCode

            context = span.get_span_context()
            ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            span.set_attributes(facts)
            if failed:
                span.set_status(Status(StatusCode.ERROR))
            span.end(self._began + round(took * 1e9))
        common = {"tracefork.operation": self._operation}
        to.measure(RUN_DURATION, took, {**common, **failed})
        for metric, value, given in self._measured:
            to.measure(metric, value, {**common, **given})
        if to.logs is not None:
            log = to.logs.warning if failed else to.logs.info
            log(name, **{"tracefork.duration": round(took, 6), **facts, **ids})
        to.flush()

    def _begin_span(self, carrier: dict[str, str]) -> None:
        """Begin the span unless it has begun; put what continues it into `carrier`."""
        to = self._observers
        to.connect()
        if to.tracer is None:
            return
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        propagator = TraceContextTextMapPropagator()
        if self._span is None:
            context = self._context or propagator.extract(self._carrier)
            self._span = to.tracer.start_span(
                f"tracefork.{self._operation}",
                context,
                start_time=self._began,
            )
        propagator.inject(carrier, set_span_in_context(self._span))


def _outcome(error: BaseException | None) -> str:
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return "ok"
    return type(error).__name__


def _parent() -> tuple[Any, dict[str, str]]:
    """Return OpenTelemetry's context around this work, or else the headers that continue a trace.

    This loads nothing: without the API there is no active span.
    """
    if around := _around.get():
        return None, {"traceparent": around}
    if (api := sys.modules.get("opentelemetry.trace")) is not None:
        context = sys.modules["opentelemetry.context"].get_current()
        if api.get_current_span(context).get_span_context().is_valid:
            return context, {}
    names = ("traceparent", "tracestate")
    return None, {name: os.environ[name.upper()] for name in names if name.upper() in os.environ}


def _apart(report: Callable[[], None]) -> None:
    """Report outside of every session: nothing of it goes onto a tape.

    The first report that fails is the last one of this process.
    """

    def outside_of_sessions() -> None:
        with outside():
            report()

    try:
        Context().run(outside_of_sessions)
    except Exception as error:  # noqa: BLE001 - loggers and exporters of the user raise anything
        stop()
        warnings.warn(
            f"tracefork: cannot report this run, and reports nothing more: {error!r}.",
            RuntimeWarning,
            stacklevel=2,
        )
