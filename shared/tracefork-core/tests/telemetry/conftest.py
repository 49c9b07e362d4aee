"""An agent of two calls, and places in memory that its reports go to."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tracefork_core import observe


@dataclass
class Reports:
    """What was reported to a real logger and to real providers of the SDK."""

    tracing: TracerProvider = field(default_factory=TracerProvider)
    _spans: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    _values: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    _lines: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.tracing.add_span_processor(SimpleSpanProcessor(self._spans))
        logs = structlog.wrap_logger(
            structlog.WriteLogger(self._lines),
            processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        )
        meters = MeterProvider([self._values])
        observe(logs=logs, tracer_provider=self.tracing, meter_provider=meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in that order."""
        return list(self._spans.get_finished_spans())

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self._lines.getvalue().splitlines()]

    @property
    def metrics(self) -> dict[str, tuple[str, float]]:
        """The unit and the sum of each metric."""
        data = self._values.get_metrics_data()
        assert data is not None
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            points: Any = metric.data.data_points
            values = [point.sum if hasattr(point, "sum") else point.value for point in points]
            found[metric.name] = (metric.unit or "", sum(values))
        return found


@pytest.fixture
def reports() -> Iterator[Reports]:
    """Report runs for the time of a test."""
    yield Reports()
    observe()
