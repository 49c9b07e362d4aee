"""What goes to a collector of OpenTelemetry's is on no tape, and a replay sends none of it."""

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
from tracefork_core.session import session, source
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


def asked(tape: Path) -> list[str]:
    with Tape.open(tape) as recorded:
        return [urlsplit(exchange.url).path for exchange in recorded.exchanges]


def test_spans_metrics_and_logs_are_on_no_tape(
    tape: Path, provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The collector has them, once; what sent them crossed a seam, and hears of no trouble."""
    with record(tape) as run:
        seen = traced(provider.url)
    assert asked(tape) == ["/bytes/1", "/bytes/2"]
    assert set(SIGNALS) < set(paths(provider))
    assert run.receipt is not None
    assert run.receipt.strays == []
    assert run.receipt.crossed == run.receipt.connections > 2
    sent = len(provider.requests)
    caplog.clear()
    with replay(tape) as replaying:
        assert traced(provider.url) == seen
    assert replaying.digest == replaying.tape.digest
    assert len(provider.requests) == sent
    assert not caplog.records


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
    with replay(tape):
        answer = httpx2.post(f"{provider.url}/v1/traces", content=b"012", headers=report)
    assert (answer.status_code, answer.content) == (200, b"")


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
        methods = [exchange.method for exchange in recorded.exchanges]
        assert (methods, asked(tape)) == (["POST", "GET"], ["/v1/logs"] * 2)
    with replay(tape) as replaying:
        assert agent() == [b"{}", *seen[1:]]
    assert replaying.digest == replaying.tape.digest


@pytest.fixture
def elder_tape(tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record as it was done when reports were exchanges."""
    with monkeypatch.context() as patch:
        patch.setattr(session, "is_otlp", lambda *_: False)
        with record(tape):
            traced(provider.url)
    return tape


def test_a_tape_that_holds_reports_replays_without_them(
    elder_tape: Path, provider: ProviderServer
) -> None:
    """They prove nothing about the agent, and stay what they are."""
    assert set(SIGNALS) < set(asked(elder_tape))
    with replay(elder_tape) as replaying:
        traced(provider.url)
    assert replaying.digest == replaying.tape.digest


def test_such_a_tape_misses_what_the_agent_does_not_ask(
    elder_tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: a request that is no report has to be made."""
    monkeypatch.setattr(source, "is_otlp", lambda *_: False)
    with (
        pytest.raises(DivergenceError, match=r"recorded +#\d POST .*/collector/"),
        replay(elder_tape),
    ):
        traced(provider.url)
