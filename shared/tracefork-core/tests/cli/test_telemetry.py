"""TRACEFORK_LOG and TRACEFORK_OTEL report what a command ran, to a file and to a collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer, ReceivedRequest
from tracefork_testkit.http1 import Delivery, json_delivery

from .conftest import PLAIN_AGENT, Shell
from .test_blame import AGENT, Wrong

KEY = "sk-proj-7Jq0xWmB4c9LrYv2Kd8sPz"
LOADED = (
    PLAIN_AGENT
    + """
print([name for name in sys.modules if name.startswith(("opentelemetry", "structlog"))])
"""
)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(ProviderServer):
    """A server that accepts every report."""

    def answer(self, received: ReceivedRequest) -> Delivery:
        super().answer(received)
        return json_delivery(200, {})


@pytest.fixture
def collector(shell: Shell) -> Iterator[ProviderServer]:
    """Report the commands of the shell to a log and to a server that takes OTLP."""
    with Collector() as server:
        shell.environment |= {
            "TRACEFORK_LOG": f"json:{shell.folder / 'log.jsonl'}",
            "TRACEFORK_OTEL": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
        }
        yield server


def spans_at(collector: ProviderServer) -> list[Any]:
    return [
        span
        for request in collector.requests
        if request.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def metrics_at(collector: ProviderServer) -> set[str]:
    return {
        metric.name
        for request in collector.requests
        if request.path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(request.body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def log_of(shell: Shell) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shell.folder / "log.jsonl").read_text().splitlines()]


def test_a_recording_reaches_a_collector_and_a_log(
    shell: Shell, collector: ProviderServer, provider: ProviderServer
) -> None:
    """It continues the trace of TRACEPARENT, and no report is on the tape."""
    shell.write("agent.py", PLAIN_AGENT)
    shell.environment["PROVIDER"] = provider.url
    parent = f"00-{TRACE}-{SPAN}-01"
    done = shell.tracefork("record", "agent.py", TRACEPARENT=parent, OPENAI_API_KEY=KEY)
    assert done.exit == 0, done.err
    [span], [line] = spans_at(collector), log_of(shell)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN)
    assert (line["event"], line["trace_id"]) == ("tracefork.record", TRACE)
    assert {"timestamp", "level", "span_id"} < line.keys()
    assert {"tracefork.run.duration", "tracefork.exchanges"} <= metrics_at(collector)
    with Tape.open(shell.folder / "agent.tape") as tape:
        assert len(tape.exchanges) == line["tracefork.exchanges"] == 2
        assert tape.digest == line["tracefork.digest"]
    assert not any(KEY.encode() in request.body for request in collector.requests)
    assert KEY not in (shell.folder / "log.jsonl").read_text()
    assert shell.tracefork("replay", "agent.tape").exit == 0
    assert [line["event"] for line in log_of(shell)] == ["tracefork.record", "tracefork.replay"]


def test_an_agent_finds_no_module_of_the_telemetry_loaded(
    shell: Shell, collector: ProviderServer, provider: ProviderServer
) -> None:
    """Its digest is the same with and without reports, too."""
    shell.write("agent.py", LOADED)
    shell.environment["PROVIDER"] = provider.url
    told = shell.tracefork("record", "agent.py", "-o", "told.tape", "--json")
    assert len(spans_at(collector)) == 1
    off = {"TRACEFORK_LOG": "", "TRACEFORK_OTEL": "0"}
    quiet = shell.tracefork("record", "agent.py", "-o", "quiet.tape", **off)
    assert quiet.out.splitlines() == ["one", "two", "[]"]
    assert "[]" in told.out + told.err
    assert len(spans_at(collector)) == len(log_of(shell)) == 1
    with Tape.open(shell.folder / "told.tape") as one:
        with Tape.open(shell.folder / "quiet.tape") as other:
            assert one.digest == other.digest


def test_a_log_without_a_file_goes_to_standard_error(
    shell: Shell, provider: ProviderServer
) -> None:
    """The document of --json has standard output to itself. Without the variable there is none."""
    shell.write("agent.py", PLAIN_AGENT)
    shell.environment["PROVIDER"] = provider.url
    done = shell.tracefork("record", "agent.py", "--json", TRACEFORK_LOG="json")
    [line] = [json.loads(text) for text in done.err.splitlines() if text.startswith("{")]
    assert line["tracefork.digest"] == done.document["digest"]
    quiet = shell.tracefork("replay", "agent.tape", "--json")
    assert '"event"' not in quiet.err


@pytest.mark.many_processes
def test_forks_in_worker_processes_are_parts_of_their_blame(
    shell: Shell, collector: ProviderServer
) -> None:
    """Each worker sends the span of its fork itself."""
    shell.write("agent.py", AGENT)
    with ProviderServer(Wrong()) as server:
        shell.environment["PROVIDER"] = server.url
        off = {"TRACEFORK_LOG": "", "TRACEFORK_OTEL": ""}
        assert shell.tracefork("record", "agent.py", **off).exit == 0
        words = ["--oracle=equals:refund", "--yes", "--workers=2", "--budget=8 calls"]
        done = shell.tracefork("blame", "agent.tape", *words)
    assert done.exit in (0, 1), done.err
    [blame] = [span for span in spans_at(collector) if span.name == "tracefork.blame"]
    forks = [span for span in spans_at(collector) if span.name == "tracefork.fork"]
    attributes = {pair.key: pair.value for pair in blame.attributes}
    assert len(forks) == attributes["tracefork.forks"].int_value > 1
    assert {fork.parent_span_id for fork in forks} == {blame.span_id}
    assert {fork.trace_id for fork in forks} == {blame.trace_id}
    assert {"tracefork.forks", "tracefork.cost"} <= metrics_at(collector)
    [line] = [line for line in log_of(shell) if line["event"] == "tracefork.blame"]
    assert line["tracefork.forks"] == len(forks)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TRACEFORK_LOG": "xml"}, "TRACEFORK_LOG must be json or json:FILE (got 'xml')."),
        ({"TRACEFORK_OTEL": "yes"}, "TRACEFORK_OTEL must be 1 or 0 (got 'yes')."),
        ({"TRACEFORK_LOG": "json:no/such.log"}, "cannot write the log no/such.log"),
    ],
)
def test_a_wrong_variable_is_an_error_before_the_agent_runs(
    shell: Shell, environment: dict[str, str], words: str
) -> None:
    """No tape is made."""
    shell.write("agent.py", "print('ran')")
    done = shell.tracefork("record", "agent.py", **environment)
    assert (done.exit, done.out) == (2, "")
    assert words in done.err
    assert not (shell.folder / "agent.tape").exists()


def test_a_missing_extra_is_an_error_before_the_agent_runs(shell: Shell) -> None:
    """Another package of that name stands in its way."""
    shell.write("path/opentelemetry/__init__.py", "")
    shell.write("agent.py", "print('ran')")
    path = f"{shell.folder / 'path'}:{shell.python_path}"
    done = shell.python(
        "-m", "tracefork_core", "record", "agent.py", TRACEFORK_OTEL="1", PYTHONPATH=path
    )
    assert (done.exit, done.out) == (2, "")
    assert "pip install 'tracefork-core[observability]'" in done.err


def test_a_collector_that_does_not_answer_fails_no_command(shell: Shell) -> None:
    """A warning says that nothing was reported."""
    shell.write("agent.py", "print('ran')")
    dead = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = shell.tracefork("record", "agent.py", TRACEFORK_OTEL="1", **dead)
    assert (done.exit, done.out) == (0, "ran\n")
    assert "cannot report this run" in done.err
