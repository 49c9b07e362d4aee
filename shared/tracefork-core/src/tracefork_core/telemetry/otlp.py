"""Send spans and metrics to a collector over OTLP, as the variables OTEL_EXPORTER_OTLP_… say.

The parts of OpenTelemetry's SDK that start threads are left out: threads are numbered as they
start, and an agent may see that. What a run leaves is sent when the run is over.
"""

from __future__ import annotations

import os
import secrets

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from tracefork_core.version import __version__


class UnsentError(Exception):
    """The collector did not accept a report."""


class Collector:
    """Keeps spans and metrics until `flush` sends them."""

    def __init__(self) -> None:
        # `Resource.create` looks for the same in a pool of threads.
        resource = Resource(
            {
                "service.name": "tracefork",
                "service.version": __version__,
                "service.instance.id": secrets.token_hex(8),  # Each process counts from 0.
                "process.pid": os.getpid(),
            }
        ).merge(OTELResourceDetector().detect())
        self._spans = InMemorySpanExporter()
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracing.add_span_processor(SimpleSpanProcessor(self._spans))
        self._values = InMemoryMetricReader()
        metering = MeterProvider([self._values], resource, shutdown_on_exit=False)
        self.tracer: Tracer = tracing.get_tracer("tracefork", __version__)
        self.meter: Meter = metering.get_meter("tracefork", __version__)

    def flush(self) -> None:
        """Send what was reported so far.

        Raises:
            UnsentError: the collector did not accept it.
        """
        spans = self._spans.get_finished_spans()
        self._spans.clear()
        exporter: SpanExporter = OTLPSpanExporter()
        try:
            if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise UnsentError("the collector did not accept the spans")
        finally:
            exporter.shutdown()
        values = self._values.get_metrics_data()
        sender = OTLPMetricExporter()
        try:
            if values and sender.export(values) is not MetricExportResult.SUCCESS:
                raise UnsentError("the collector did not accept the metrics")
        finally:
            sender.shutdown()
