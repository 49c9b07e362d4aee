"""`export` writes a file once, sends to a real collector, and refuses what it cannot do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from .conftest import Shell


class Collector:
    """What a collector on loopback received; it decodes what it gets as OTLP."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        taken = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taken.headers.append({name.lower(): value for name, value in self.headers.items()})
                taken.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(taken.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    Thread(target=started.server.serve_forever, daemon=True).start()
    yield started
    started.server.shutdown()
    started.server.server_close()


def test_the_file_is_written_once(taped: Shell) -> None:
    """Nothing is overwritten unless asked."""
    done = taped.tracefork("export", "agent.tape", "-o", "run.json")
    assert (done.exit, "● exported run.json" in done.out) == (0, True)
    before = (taped.folder / "run.json").read_text()
    again = taped.tracefork("export", "agent.tape", "--content", "-o", "run.json")
    assert again.exit == 2
    assert "run.json already exists. Use --overwrite" in again.err
    assert (taped.folder / "run.json").read_text() == before
    assert taped.tracefork("export", "agent.tape", "-o", "run.json", "--overwrite").exit == 0
    assert (taped.folder / "run.json").read_text() == before


def test_a_collector_receives_the_spans_and_the_headers(taped: Shell, collector: Collector) -> None:
    """The same spans as in the file, and nothing of the run's own session."""
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": "x-project=desk"}
    done = taped.tracefork("export", "--json", "agent.tape", "--otlp", collector.url, **headers)
    assert done.exit == 0
    taped.tracefork("export", "agent.tape", "-o", "run.json")
    (resource,) = json.loads((taped.folder / "run.json").read_text())["resourceSpans"]
    written = {span["spanId"]: span["name"] for span in resource["scopeSpans"][0]["spans"]}
    (request,) = collector.requests
    received = {
        span.span_id.hex(): span.name
        for each in request.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    }
    assert received == written
    assert done.document["spans"] == len(written)
    assert collector.headers[0]["x-project"] == "desk"


def test_a_collector_that_refuses_is_one_error(taped: Shell, collector: Collector) -> None:
    """It says where, and what such an address looks like."""
    collector.status = 400
    done = taped.tracefork("export", "agent.tape", "--otlp", collector.url)
    assert done.exit == 2
    assert f"{collector.url} did not take the spans" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-o", "a.json", "--atif", "--har"], "choose one of --atif, --har"),
        ([], "name a file to write with -o"),
        (["-o", "a.json", "--otlp", "http://127.0.0.1:9"], "name a file to write with -o"),
        (["--har", "--otlp", "http://127.0.0.1:9"], "a collector takes traces"),
        (["--atif", "-o", "a.json"], "Add --content"),
        (["-o", "gone/a.json"], "cannot write gone/a.json"),
    ],
)
def test_what_cannot_be_done_is_refused(taped: Shell, words: list[str], expected: str) -> None:
    """With one sentence, and no file."""
    done = taped.tracefork("export", "agent.tape", *words)
    assert done.exit in (2, 5)
    assert expected in done.err
    assert not (taped.folder / "a.json").exists()


WAITING_AGENT = """\
import os
import time
from pathlib import Path

import httpx2

for word in ("one", "two"):
    httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
    while not Path(word).exists():
        time.sleep(0.01)
"""


def names_in(requests: list[ExportTraceServiceRequest]) -> list[str]:
    """Return the names of the spans in requests."""
    return [
        span.name
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_spans_are_sent_while_the_run_is_recorded(shell: Shell, collector: Collector) -> None:
    """The first request is there while the agent waits; each span is sent once, the run's last."""
    shell.write("agent.py", WAITING_AGENT)
    tape = shell.folder / "run.tape"
    record = [sys.executable, "-m", "tracefork_core", "record", "-o", "run.tape", "agent.py"]
    export = [*record[:3], "export", "run.tape", "--follow", "--otlp", collector.url, "--json"]
    options: dict[str, Any] = {"cwd": shell.folder, "env": shell.full_environment()}
    with ExitStack() as stack:
        recording = stack.enter_context(subprocess.Popen(record, **options))
        stack.callback(recording.kill)
        wait_for(tape.exists)
        exporting = stack.enter_context(subprocess.Popen(export, **options, stdout=subprocess.PIPE))
        stack.callback(exporting.kill)
        wait_for(lambda: names_in(collector.requests) == ["POST"])
        assert recording.poll() is None
        (shell.folder / "one").touch()
        wait_for(lambda: names_in(collector.requests) == ["POST", "POST"])
        (shell.folder / "two").touch()
        written, _ = exporting.communicate(timeout=60)
        recording.wait()
    assert (recording.returncode, exporting.returncode) == (0, 0)
    document = json.loads(written)
    assert names_in(collector.requests) == ["POST", "POST", "run"]
    assert (document["spans"], document["to"]) == (3, collector.url)
    spans = [
        span
        for request in collector.requests
        for span in request.resource_spans[0].scope_spans[0].spans
    ]
    assert len({span.trace_id for span in spans}) == 1
    assert {span.parent_span_id for span in spans[:2]} == {spans[2].span_id}
    assert shell.tracefork("show", "run.tape", "--json").document["digest"] == document["digest"]


def test_a_run_that_is_followed_needs_a_collector(taped: Shell) -> None:
    """A file would be complete only at the end."""
    done = taped.tracefork("export", "agent.tape", "--follow", "-o", "run.json")
    assert done.exit == 2
    assert "Name it with --otlp" in done.err
    assert not (taped.folder / "run.json").exists()
