"""Where runs are reported to: what `observe` was given, or what the environment asks for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tracefork_core.errors import UsageError
from tracefork_core.telemetry.instruments import INSTRUMENTS
from tracefork_core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

LOG, OTEL = "TRACEFORK_LOG", "TRACEFORK_OTEL"
_EXTRA = "pip install 'tracefork-core[observability]'"
_SCOPE = "tracefork"


class Logger(Protocol):
    """A logger of structlog, or anything with its methods."""

    def info(self, event: str, **fields: Any) -> object: ...

    def warning(self, event: str, **fields: Any) -> object: ...


class Observers:
    """Where runs are reported to. `flush` sends what is waiting, after each run.

    With `is_exporting`, `connect` makes tracer and meter: late, so that an agent does not find the
    modules of OpenTelemetry loaded.
    """

    def __init__(
        self,
        logs: Logger | None = None,
        tracer: Tracer | None = None,
        meter: Meter | None = None,
        *,
        is_exporting: bool = False,
    ) -> None:
        self.logs = logs
        self.tracer = tracer
        self.meter = meter
        self.flush: Callable[[], None] = lambda: None
        self._is_exporting = is_exporting
        self._instruments: dict[str, Any] = {}

    def connect(self) -> None:
        """Make the tracer and the meter, if they are to be made."""
        if self._is_exporting and self.tracer is None:
            from tracefork_core.telemetry.otlp import Collector

            collector = Collector()
            self.tracer, self.meter, self.flush = (
                collector.tracer,
                collector.meter,
                collector.flush,
            )

    def measure(self, name: str, value: float, attributes: dict[str, str]) -> None:
        """Record a value of one of our metrics."""
        if self.meter is None:
            return
        instrument = self._instruments.get(name)
        if instrument is None:
            kind, unit, description = INSTRUMENTS[name]
            make = getattr(self.meter, f"create_{kind}")
            instrument = self._instruments[name] = make(name, unit=unit, description=description)
        if INSTRUMENTS[name].kind == "counter":
            instrument.add(value, attributes)
        else:
            instrument.record(value, attributes)


_given: Observers | None = None
_of_environment: tuple[tuple[int, str, str], Observers] | None = None
"""What was made for the environment: of this process, with these two values."""


def observe(
    *,
    logs: Logger | None = None,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Report each record, replay, fork and blame of this process from now on, once it is over.

    Without arguments, stop that. What you pass replaces what was passed before, and what the
    environment variables TRACEFORK_LOG and TRACEFORK_OTEL ask for.

    Args:
        logs: a logger of structlog; gets one entry for each.
        tracer_provider: gets a span for each, a child of the span that is active at its beginning.
        meter_provider: gets the metrics.
    """
    global _given
    if logs is None and tracer_provider is None and meter_provider is None:
        _given = None
        return
    _given = Observers(
        logs,
        tracer_provider.get_tracer(_SCOPE, __version__) if tracer_provider else None,
        meter_provider.get_meter(_SCOPE, __version__) if meter_provider else None,
    )


def observers() -> Observers | None:
    """Return where runs are reported to; None if they are not.

    Raises:
        UsageError: the environment has an unknown value, or asks for what is not installed.
    """
    global _of_environment
    if _given is not None:
        return _given
    log, otel = os.environ.get(LOG, ""), os.environ.get(OTEL, "")
    if not log and otel in ("", "0"):
        return None
    key = (os.getpid(), log, otel)
    if _of_environment is None or _of_environment[0] != key:
        _of_environment = key, _asked_for(log, otel)
    return _of_environment[1]


def stop() -> None:
    """Report nothing any more: a report failed."""
    global _given, _of_environment
    _given = None
    if _of_environment is not None:
        _of_environment = _of_environment[0], Observers()


def _asked_for(log: str, otel: str) -> Observers:
    logs = _json_lines(log) if log else None
    if otel not in ("", "0", "1"):
        raise UsageError(f"tracefork: {OTEL} must be 1 or 0 (got {otel!r}).")
    if otel == "1":
        _check_installed(OTEL, "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    return Observers(logs, is_exporting=otel == "1")


def _json_lines(log: str) -> Logger:
    kind, _, file = log.partition(":")
    if kind != "json":
        raise UsageError(f"tracefork: {LOG} must be json or json:FILE (got {log!r}).")
    _check_installed(LOG, "structlog")
    from tracefork_core.telemetry.json_lines import JsonLines

    lines = JsonLines(Path(file) if file else None)
    try:
        lines.check()
    except OSError as error:
        raise UsageError(
            f"tracefork: cannot write the log {file} of {LOG}: {error.strerror}."
        ) from error
    return lines


def _check_installed(variable: str, *modules: str) -> None:
    from importlib.util import find_spec  # Loaded here: few runs need it.

    for module in modules:
        try:
            is_there = find_spec(module) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            raise UsageError(
                f"tracefork: {variable} needs an extra ({module} is not installed): {_EXTRA}."
            )
