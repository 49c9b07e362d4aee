"""Reports to an OpenTelemetry collector are on the tape, but a replay need not repeat them."""

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
from tracefork_core.exchange import kind
from tracefork_testkit import ProviderServer

SIGNALS = ["/collector/v1/traces", "/collector/v1/metrics", "/collector/v1/logs"]


def traced(url: str) -> list[bytes]:
    """Make two calls and export spans, metrics and logs about each."""
    collector = f"{url}/collector"
    spans, logs = TracerProvider(), LoggerProvider()
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector}/v1/traces")))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{collector}/v1/logs")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector}/v1/metrics"))
    metrics = MeterProvider([reader])
    try:
        return [_called(url, i, spans, metrics, logs) for i in range(2)]
    finally:
        for exporter in (spans, metrics, logs):
            exporter.shutdown()


def _called(
    url: str, i: int, spans: TracerProvider, metrics: MeterProvider, logs: LoggerProvider
) -> bytes:
    with spans.get_tracer("agent").start_as_current_span(f"call {i}"):
        body = httpx2.get(f"{url}/bytes/{i + 1}").content
        metrics.get_meter("agent").create_counter("calls").add(1)
        logs.get_logger("agent").emit(body=f"called {i}")
    for exporter in (spans, metrics, logs):
        exporter.force_flush()
    return body


def paths(server: ProviderServer) -> list[str]:
    return [urlsplit(request.path).path for request in server.requests]


def asked(tape: Path, *, auxiliary: bool = False) -> list[str]:
    """Return the paths of the exchanges on a tape that a replay must repeat, or of the others."""
    with Tape.open(tape) as recorded:
        exchanges = [each for each in recorded.exchanges if each.is_auxiliary is auxiliary]
    return [urlsplit(exchange.url).path for exchange in exchanges]


def test_spans_metrics_and_logs_are_auxiliary(tape: Path, provider: ProviderServer) -> None:
    """The collector receives them once, and the exporters' connections are captured."""
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


def test_a_fork_sends_no_reports(tape: Path, provider: ProviderServer) -> None:
    """Not even after the fork point, where the agent's own calls are live."""
    with record(tape):
        traced(provider.url)
    sent = len(provider.requests)
    with fork(tape, at=0, replace=Replace(body=b"another")) as branch:
        assert traced(provider.url) == [b"another", b"\0\1"]
    assert paths(provider)[sent:] == ["/bytes/2"]
    with replay(branch.path) as replaying:
        traced(provider.url)
    assert replaying.digest == replaying.tape.digest


def test_a_replay_may_report_more_or_less_often(tape: Path, provider: ProviderServer) -> None:
    """A replay is faster than its recording, so exporters batch more at a time."""
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
def test_json_reports_are_recognised_by_their_content(
    tape: Path, provider: ProviderServer, client: str
) -> None:
    """The negative control: another document for the same path is a request of the agent."""
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


def test_a_tape_with_reports_as_ordinary_exchanges_replays(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older versions recorded them that way: each report is answered in its turn."""
    with monkeypatch.context() as patch:
        patch.setattr(kind, "is_report", lambda *_: False)
        with record(tape):
            traced(provider.url)
    assert set(SIGNALS) < set(asked(tape))
    with replay(tape) as replaying:
        traced(provider.url)
    assert replaying.digest == replaying.tape.digest
