"""`observe` reports runs to the logger and the providers that it is given."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import StatusCode

from tracefork_core import DivergenceError, Recorder, Tape, fork, observe, record, replay
from tracefork_core.telemetry.observers import observers
from tracefork_testkit import ProviderServer

from .conftest import Reports

KEY = "sk-proj-7Jq0xWmB4c9LrYv2Kd8sPz"


def ask(url: str, text: str = "hello") -> None:
    """Make two calls with a key, one of them in a pool."""
    headers = {"authorization": f"Bearer {KEY}", "x-draw": str(random.random())}

    def call() -> None:
        with httpx2.Client(verify=False, timeout=30, headers=headers) as client:
            client.post(f"{url}/echo", content=f"{text} {KEY} {time.time()}".encode())

    call()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def on(tape: Path) -> tuple[int, float]:
    """Return the size of the answers on a tape, and their duration in seconds."""
    with Tape.open(tape) as read:
        asides = [exchange.aside for exchange in read.exchanges]
    return sum(sum(aside.sizes) for aside in asides), sum(one.took or 0 for one in asides) / 1e9


def test_each_run_has_a_span_and_a_line_in_the_log(
    reports: Reports, tape: Path, provider: ProviderServer
) -> None:
    """Both have the same attributes, and the line the ids of the span."""
    with record(tape) as recording:
        ask(provider.url)
    with replay(tape):
        ask(provider.url)
    with fork(tape, 1, writes="allow") as forked:
        ask(provider.url)
    names = ["tracefork.record", "tracefork.replay", "tracefork.fork"]
    assert [span.name for span in reports.spans] == [line["event"] for line in reports.log] == names
    recorded, replayed, branch = (dict(span.attributes or {}) for span in reports.spans)
    assert recorded == {
        "tracefork.mode": "safe",
        "tracefork.tape": str(tape),
        "tracefork.digest": recording.digest,
        "tracefork.exchanges": 2,
        "tracefork.exchanges.live": 2,
        "tracefork.response.size": on(tape)[0],
        "tracefork.tape.size": tape.stat().st_size,
    }
    assert replayed["tracefork.digest"] == recording.digest
    assert (branch["tracefork.fork.at"], branch["tracefork.digest"]) == (1, forked.digest)
    assert (branch["tracefork.exchanges.live"], branch["tracefork.exchanges.replayed"]) == (1, 1)
    for span, line in zip(reports.spans, reports.log, strict=True):
        assert dict(span.attributes or {}).items() <= line.items()
        assert line["span_id"] == f"{span.context.span_id:016x}"
        assert line["level"] == "info"
        assert span.end_time is not None
        assert span.start_time is not None
        assert round((span.end_time - span.start_time) / 1e9, 6) == line["tracefork.duration"]


def test_metrics_count_exchanges_bytes_and_tapes(
    reports: Reports, tape: Path, provider: ProviderServer
) -> None:
    """The sums are those of the tape."""
    with record(tape):
        ask(provider.url)
    size, took = on(tape)
    metrics = reports.metrics
    assert metrics.pop("tracefork.run.duration")[1] > 0
    unit, seconds = metrics.pop("tracefork.exchange.duration")
    assert (unit, round(seconds, 6)) == ("s", round(took, 6))
    assert metrics == {
        "tracefork.exchanges": ("{exchange}", 2),
        "tracefork.exchange.response.size": ("By", size),
        "tracefork.tape.size": ("By", tape.stat().st_size),
    }


def test_a_run_is_a_child_of_the_active_span(
    reports: Reports, tape: Path, provider: ProviderServer
) -> None:
    """The spans of the agent stay children of that span, as without tracefork."""
    tracer = reports.tracing.get_tracer("user")
    with tracer.start_as_current_span("user"), record(tape):
        with tracer.start_as_current_span("agent"):
            ask(provider.url)
    agent, run, user = (
        next(span for span in reports.spans if span.name == name)
        for name in ("agent", "tracefork.record", "user")
    )
    assert run.parent == user.context
    assert agent.parent == user.context


def test_a_divergence_is_a_miss_and_an_error(
    reports: Reports, tape: Path, provider: ProviderServer
) -> None:
    """The recording before it is neither."""
    with record(tape):
        ask(provider.url)
    with pytest.raises(DivergenceError), replay(tape):
        ask(provider.url, "something else")
    span, line = reports.spans[-1], reports.log[-1]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == line["error.type"] == "DivergenceError"
    assert line["level"] == "warning"
    assert reports.metrics["tracefork.misses"] == ("{miss}", 1)
    assert reports.spans[0].status.status_code is StatusCode.UNSET


def test_no_report_holds_a_secret_or_a_message(
    reports: Reports, tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the key of a request nor what the agent's error says."""
    monkeypatch.setenv("SERVICE_API_KEY", KEY)

    def failing() -> None:
        with record(tape.with_name(f"{KEY}.tape")):
            ask(provider.url)
            raise ValueError(f"bad key {KEY}")

    with pytest.raises(ValueError, match=KEY):
        failing()
    said = [span.to_json() for span in reports.spans] + [str(reports.log)]
    assert all(KEY not in text and "bad key" not in text for text in said)
    assert all("ValueError" in text and "tracefork.digest" in text for text in said)


def test_a_digest_is_the_same_with_and_without_reports(
    reports: Reports, tape: Path, provider: ProviderServer
) -> None:
    """A tape with reports replays without, and the other way round."""
    quiet = tape.with_name("quiet.tape")
    with record(tape) as loud:
        ask(provider.url)
    observe()
    with replay(tape) as without:
        ask(provider.url)
    with record(quiet):
        ask(provider.url)
    assert len(reports.spans) == 1
    again = Reports()
    with replay(quiet) as replayed:
        ask(provider.url)
    assert without.digest == loud.digest
    with Tape.open(quiet) as read, Tape.open(tape) as other:
        assert replayed.digest == read.digest
        assert len(read.exchanges) == len(other.exchanges) == 2
    assert len(again.spans) == 1


@pytest.mark.parametrize("scope", ["context", "process"])
def test_a_report_is_on_no_tape_of_a_session_around_it(
    tape: Path, provider: ProviderServer, scope: Literal["context", "process"]
) -> None:
    """What the agent exports there itself is."""
    url = f"{provider.url}/v1/traces"
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(url)))
    observe(tracer_provider=tracing)
    with record(tape.with_name("outer.tape"), scope=scope):
        with record(tape):
            ask(provider.url)
        with tracing.get_tracer("agent").start_as_current_span("own"):
            pass
    observe()
    sent = [request.path for request in provider.requests]
    assert sent.count("/v1/traces") == 3
    with Tape.open(tape.with_name("outer.tape")) as outer:
        assert [exchange.url for exchange in outer.exchanges] == [url]


def test_a_recorder_of_a_service_reports_its_runs(
    reports: Reports, tmp_path: Path, provider: ProviderServer
) -> None:
    """A run whose tape is not kept has no size of a tape."""
    recorder = Recorder(tmp_path / "tapes")
    with recorder.recording("fine"):
        ask(provider.url)
    [line] = reports.log
    assert (line["event"], line["tracefork.exchanges"]) == ("tracefork.record", 2)
    assert "tracefork.tape.size" not in line
    assert [span.name for span in reports.spans] == ["tracefork.record"]


class Broken:
    """A logger that raises."""

    def info(self, event: str, **fields: Any) -> None:
        raise OSError("no space left")

    warning = info


def test_a_report_that_fails_is_the_last_and_fails_no_run(
    tape: Path, provider: ProviderServer
) -> None:
    """The warning names the error of the logger."""
    observe(logs=Broken())
    with pytest.warns(RuntimeWarning, match="cannot report this run.*no space left"):
        with record(tape) as recording:
            ask(provider.url)
    assert recording.digest is not None
    assert observers() is None
    with replay(tape):
        ask(provider.url)
