"""A service that records some of its requests exports its spans as if it recorded none."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tracefork_core import record, replay
from tracefork_testkit import ProviderServer

from .asking import ask, asked_on

COUNT = 30


def spans_of(collector: ProviderServer) -> list[str]:
    """Return the names of the spans that a collector received."""
    names = []
    for request in collector.requests:
        body = request.body
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                names += [span.name for span in scope.spans]
    return sorted(names)


def test_an_exporter_of_the_service_loses_no_spans(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """It exports during recordings and replays; each tape holds its own request alone."""
    with ProviderServer() as collector:
        exporter = OTLPSpanExporter(f"{collector.url}/v1/traces")
        tracing = TracerProvider()
        tracing.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=5))
        tracer = tracing.get_tracer("service")

        def handle(n: int) -> None:
            with tracer.start_as_current_span(f"{n:02}"):
                ask(provider.url, str(n))

        def request(n: int) -> None:
            if n % 3:
                handle(n)
                return
            with record(tmp_path / f"{n}.tape"):
                handle(n)
            with replay(tmp_path / f"{n}.tape"):
                handle(n)

        requests = [threading.Thread(target=request, args=(n,)) for n in range(COUNT)]
        for thread in requests:
            thread.start()
        for thread in requests:
            thread.join()
        tracing.shutdown()
        again = range(0, COUNT, 3)
        assert spans_of(collector) == sorted(f"{n:02}" for n in [*range(COUNT), *again])
        assert len(collector.requests) > 1
    for n in again:
        assert asked_on(tmp_path / f"{n}.tape") == [str(n)]
