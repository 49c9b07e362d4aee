"""The spans of a run reach a span processor while it is recorded, in the same process."""

from __future__ import annotations

import time
from pathlib import Path

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

SECONDS = 20


def ask(server: ProviderServer, word: str) -> None:
    """Ask a model for a word."""
    said = [{"role": "user", "content": f"@say {word}"}]
    body = {"model": "gpt-5-mini", "messages": said}
    httpx2.post(f"{server.url}/v1/chat/completions", json=body).raise_for_status()


def exchanges(exporter: InMemorySpanExporter) -> list[int]:
    """Return the numbers of the exchanges whose spans have arrived."""
    return [
        number
        for span in exporter.get_finished_spans()
        if isinstance(number := (span.attributes or {}).get("tracefork.exchange"), int)
    ]


def test_a_span_arrives_while_the_run_goes_on(tmp_path: Path, provider: ProviderServer) -> None:
    """The first one before the second call is made, the span of the run at its end."""
    exporter = InMemorySpanExporter()
    tape = tmp_path / "run.tape"
    with tracefork.export_spans(tape, SimpleSpanProcessor(exporter)), tracefork.record(tape) as run:
        ask(provider, "one")
        until = time.monotonic() + SECONDS
        while not exchanges(exporter) and time.monotonic() < until:
            time.sleep(0.05)
        assert exchanges(exporter) == [0]
        ask(provider, "two")
    spans = exporter.get_finished_spans()
    assert exchanges(exporter) == [0, 1]
    root = spans[-1]
    assert (root.name, root.parent) == ("run", None)
    assert {span.context.trace_id for span in spans if span.context} == {root.context.trace_id}
    assert run.receipt is not None
    assert (run.receipt.exchanges, run.receipt.connections) == (2, run.receipt.crossed)


def test_the_agents_own_spans_stay_where_they_are(tmp_path: Path, provider: ProviderServer) -> None:
    """Its provider gets its span and none of ours, and ours gets none of its."""
    own, ours = InMemorySpanExporter(), InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(own))
    tape = tmp_path / "run.tape"
    before = trace.get_tracer_provider()
    with tracefork.export_spans(tape, SimpleSpanProcessor(ours)), tracefork.record(tape):
        with tracers.get_tracer("agent").start_as_current_span("the agent's"):
            ask(provider, "one")
    assert [span.name for span in own.get_finished_spans()] == ["the agent's"]
    assert [span.name for span in ours.get_finished_spans()] == ["chat gpt-5-mini", "run"]
    assert trace.get_tracer_provider() is before


def test_content_is_handed_over_on_demand(tmp_path: Path, provider: ProviderServer) -> None:
    """Without it, a span says no more than an export without --content."""
    for content in (False, True):
        exporter = InMemorySpanExporter()
        tape = tmp_path / f"{content}.tape"
        processor = SimpleSpanProcessor(exporter)
        with tracefork.export_spans(tape, processor, content=content), tracefork.record(tape):
            ask(provider, "parcel")
        told = str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
        assert ("parcel" in told) is content


def test_an_earlier_tape_of_that_name_is_not_exported(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The recording replaces it, and its spans alone arrive."""
    tape = tmp_path / "run.tape"
    with tracefork.record(tape):
        ask(provider, "old")
        ask(provider, "old")
    exporter = InMemorySpanExporter()
    with tracefork.export_spans(tape, SimpleSpanProcessor(exporter)):
        time.sleep(0.5)  # Longer than the pause between two looks.
        with tracefork.record(tape, overwrite=True):
            ask(provider, "new")
    assert exchanges(exporter) == [0]


def test_a_file_that_a_recording_has_just_made_is_awaited(tmp_path: Path) -> None:
    """It is empty for a moment."""
    exporter = InMemorySpanExporter()
    tape = tmp_path / "run.tape"
    with tracefork.export_spans(tape, SimpleSpanProcessor(exporter)):
        tape.touch()
        time.sleep(0.5)  # Longer than the pause between two looks.
    assert exporter.get_finished_spans() == ()


def test_an_error_of_the_processor_is_raised_where_the_block_ends(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The run is recorded all the same."""

    class Broken:
        def on_end(self, span: ReadableSpan) -> None:
            raise ConnectionError("the collector is gone")

    tape = tmp_path / "run.tape"
    with pytest.raises(ConnectionError, match="the collector is gone"):
        with tracefork.export_spans(tape, Broken()), tracefork.record(tape):
            ask(provider, "one")
    with tracefork.Tape.open(tape) as recorded:
        assert recorded.complete
