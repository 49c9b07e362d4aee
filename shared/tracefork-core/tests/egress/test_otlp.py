"""What goes to a collector of OpenTelemetry's is on the tape, and no part of what is proven."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tracefork_core import DivergenceError, Replace, Tape, fork, record, replay
from tracefork_core.session import tape_sink
from tracefork_testkit import ProviderServer

SIGNALS = ["/collector/v1/traces", "/collector/v1/metrics", "/collector/v1/logs"]


def traced(url: str) -> list[bytes]:
    """Ask twice, and tell a collector what was done: of the first call while the second is made."""
    collector = f"{url}/collector"
    spans, logs = TracerProvider(), LoggerProvider()
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector}/v1/traces")))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{collector}/v1/logs")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector}/v1/metrics"))
    metrics = MeterProvider([reader])
    try:
        return [_called(url, i, spans, metrics, logs) for i in range(2)]
    finally:
        for one in (spans, metrics, logs):
            one.shutdown()


def _called(
    url: str, i: int, spans: TracerProvider, metrics: MeterProvider, logs: LoggerProvider
) -> bytes:
    with spans.get_tracer("agent").start_as_current_span(f"call {i}"):
        said = httpx2.get(f"{url}/bytes/{i + 1}").content
        metrics.get_meter("agent").create_counter("calls").add(1)
        logs.get_logger("agent").emit(body=f"called {i}")
    for one in (spans, metrics, logs):
        one.force_flush()
    return said


def paths(server: ProviderServer) -> list[str]:
    return [urlsplit(request.path).path for request in server.requests]


def asked(tape: Path, *, auxiliary: bool = False) -> list[str]:
    """Return the paths of what is on a tape, and of what a replay may do without."""
    with Tape.open(tape) as recorded:
        found = [one for one in recorded.exchanges if one.is_auxiliary is auxiliary]
    return [urlsplit(exchange.url).path for exchange in found]


def test_spans_metrics_and_logs_are_auxiliary(tape: Path, provider: ProviderServer) -> None:
    """The collector has them, once, and what sent them crossed a seam."""
    with record(tape) as run:
        seen = traced(provider.url)
    assert asked(tape) == ["/bytes/1", "/bytes/2"]
    assert set(asked(tape, auxiliary=True)) == set(SIGNALS)
    assert run.receipt is not None
    assert run.receipt.strays == []
    assert run.receipt.crossed == run.receipt.connections > 2
    sent = paths(provider)
    assert set(SIGNALS) < set(sent)
    with replay(tape) as replaying:
        assert traced(provider.url) == seen
    assert replaying.digest == replaying.tape.digest
    assert (replaying.exchanges, replaying.auxiliary_left) == (len(sent), 0)
    assert paths(provider) == sent


def test_a_fork_reports_to_nobody(tape: Path, provider: ProviderServer) -> None:
    """Not past its fork point either, where what the agent asks is asked for real."""
    with record(tape):
        traced(provider.url)
    sent = len(provider.requests)
    with fork(tape, at=0, replace=Replace(body=b"another")) as branch:
        assert traced(provider.url) == [b"another", b"\0\1"]
    assert paths(provider)[sent:] == ["/bytes/2"]
    with replay(branch.path) as replaying:
        traced(provider.url)
    assert replaying.digest == replaying.tape.digest


def test_how_often_it_is_reported_is_nobodys_business(tape: Path, provider: ProviderServer) -> None:
    """A replay is quicker than its recording, so it has more to send at a time."""
    report = {"content-type": "application/x-protobuf"}
    with record(tape):
        for i in range(3):
            httpx2.post(f"{provider.url}/v1/traces", content=b"%d" % i, headers=report)
    with replay(tape) as replaying:
        answer = httpx2.post(f"{provider.url}/v1/traces", content=b"012", headers=report)
    assert (answer.status_code, answer.content) == (200, b"")
    assert replaying.digest == replaying.tape.digest
    assert (replaying.auxiliary_left, replaying.auxiliary_misses) == (0, 0)


async def _post_by_aiohttp(url: str, **options: Any) -> bytes:
    async with aiohttp.ClientSession() as client, client.post(url, **options) as answer:
        return await answer.read()


@pytest.mark.parametrize("client", ["httpx2", "aiohttp"])
def test_reports_in_json_are_told_by_what_they_hold(
    tape: Path, provider: ProviderServer, client: str
) -> None:
    """Negative control: what has its path, and nothing of a report in it, is the agent's own."""
    url = f"{provider.url}/v1/logs"

    def posted(document: object) -> bytes:
        content = json.dumps(document).encode()
        headers = {"content-type": "application/json"}
        if client == "aiohttp":
            return asyncio.run(_post_by_aiohttp(url, data=content, headers=headers))
        return httpx2.post(url, content=content, headers=headers).content

    def agent() -> list[bytes]:
        return [
            posted({"resourceLogs": []}),
            posted({"entries": ["mine"]}),
            httpx2.get(url).content,
        ]

    with record(tape):
        seen = agent()
    with Tape.open(tape) as recorded:
        auxiliary = [exchange.is_auxiliary for exchange in recorded.exchanges]
    assert auxiliary == [True, False, False]
    with replay(tape) as replaying:
        assert posted({"resourceLogs": ["another"]}) == b"{}"
        assert agent() == seen
    assert replaying.digest == replaying.tape.digest
    with pytest.raises(DivergenceError), replay(tape):
        posted({"entries": ["another"]})


def test_a_tape_on_which_reports_are_like_all_others_replays(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it was recorded before: what is sent again is answered, in its turn."""
    with monkeypatch.context() as patch:
        patch.setattr(tape_sink, "is_report", lambda *_: False)
        with record(tape):
            traced(provider.url)
    assert set(SIGNALS) < set(asked(tape))
    with replay(tape) as replaying:
        traced(provider.url)
    assert replaying.digest == replaying.tape.digest
