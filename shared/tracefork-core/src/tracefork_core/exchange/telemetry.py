"""What frameworks report about themselves: not part of a run.

Such requests are not taped. During replay they are refused like any egress, but without
poisoning the session: an exporter that cannot report must not fail a run that replays exactly.

LangSmith keeps prompts, data sets and sandboxes too: what an agent asks of those is its own.

Spans, metrics and logs on their way to a collector are known by their protocol, OTLP over HTTP,
wherever it is. Those are on the tape, and auxiliary: how much is sent at a time hangs on how long a
run takes. A replay takes them itself and sends them nowhere: where one is refused, exporters try
again for a minute.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from tracefork_core.errors import EgressError

_LANGSMITH = frozenset(
    {
        "api.smith.langchain.com",
        "eu.api.smith.langchain.com",
        "apac.api.smith.langchain.com",
        "aws.api.smith.langchain.com",
    }
)
_HOSTS = frozenset(
    {
        "telemetry.crewai.com",
        "app.crewai.com",
        "os-api.agno.com",
        "us.i.posthog.com",
        "eu.i.posthog.com",
    }
)
_SENTRY = re.compile(r"o\d+\.ingest\.(?:\w+\.)?sentry\.io")
"""Of each organisation, in each region: an agent that reports its crashes does so by urllib3."""
_PATHS = {"api.openai.com": "/v1/traces/ingest"}
_TRACES = re.compile(r"/(?:runs(?!/(?:query|stats))|info|otel|feedback|sessions)(?:/|$)")
"""Paths of LangSmith, wherever somebody hosts it, that traces are sent to."""
_ONLY_ITS_OWN = ("/runs/batch", "/runs/multipart")
_ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_OTLP = ("/v1/traces", "/v1/metrics", "/v1/logs")
_PROTOBUF = "application/x-protobuf"
_OTLP_JSON = (b'{"resourceSpans"', b'{"resourceMetrics"', b'{"resourceLogs"')


def is_report(method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> bool:
    """Return whether a request hands spans, metrics or logs to a collector.

    See https://opentelemetry.io/docs/specs/otlp/#otlphttp-request.
    """
    if not goes_to_collector(url) or method != "POST":
        return False
    if body.startswith(_OTLP_JSON):
        return True
    return any(
        name.lower() == "content-type" and value.partition(";")[0].strip().lower() == _PROTOBUF
        for name, value in headers
    )


@lru_cache(maxsize=1024)
def goes_to_collector(url: str) -> bool:
    """Return whether a URL is one that collectors have."""
    return urlsplit(url).path.endswith(_OTLP)


def takes_reports(host: str | None) -> bool:
    """Return whether what a host is sent is reports of frameworks and little else."""
    if host is None:
        return False
    return host in _LANGSMITH or host in _HOSTS or _SENTRY.fullmatch(host) is not None


def is_telemetry(url: str) -> bool:
    """Return whether `url` is a framework's report about itself."""
    known = _known(url)
    if known is not None:
        return known
    endpoints = (os.environ.get(name) for name in _ENDPOINTS)
    return any(url.startswith(f"{one.rstrip('/')}/") for one in endpoints if one)


@lru_cache(maxsize=1024)
def _known(url: str) -> bool | None:
    """Return whether `url` is such a report; None where that hangs on who hosts LangSmith."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    traces = _TRACES.search(parts.path) is not None
    if host in _LANGSMITH or parts.path.endswith(_ONLY_ITS_OWN):
        return traces
    prefix = _PATHS.get(host)
    if takes_reports(host) or (prefix is not None and parts.path.startswith(prefix)):
        return True
    return None if traces else False


def refusal(url: str) -> EgressError:
    """Return why a report is not sent: a guard sees hosts, and some share theirs with a model."""
    return EgressError(
        f"tracefork: {url.partition('?')[0]} is what a framework reports about itself; it is not "
        "on the tape and not sent during replay. The run goes on."
    )
