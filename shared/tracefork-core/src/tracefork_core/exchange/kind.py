"""What kind of request is this? A session asks once, when a request arrives.

    ordinary    a request of the agent: recorded, and a replay must ask for it too
    auxiliary   about tokens, not to a model: recorded, but a replay may ask for more or fewer
    report      spans, metrics or logs for a collector: recorded, and auxiliary too
    telemetry   what a framework reports about itself: never on a tape

*Auxiliary.* Frameworks count tokens to see what still fits, and LiteLLM fetches what tokens cost
and how many a model accepts. Without an answer they continue, mostly with an estimate. Whether they
ask at all depends on the host, the version, and on what is cached or imported. Such a request is
recorded, because what they do next depends on the answer; but a run that makes more or fewer of
them is the same run.

*Reports* are recognised by their protocol, OTLP over HTTP, wherever the collector runs. How many
there are depends on how long a run takes. A replay acknowledges them itself and sends them nowhere:
where a report is refused, exporters retry for a minute.

*Telemetry* is refused during replay like any connection, but without poisoning the session: an
exporter that cannot report must not fail a run that replays exactly. LangSmith also stores prompts,
data sets and sandboxes; what an agent asks of those is ordinary.

This file imports nothing heavy: child processes load it at their start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal
from urllib.parse import SplitResult, urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Request

Kind = Literal["ordinary", "auxiliary", "report", "telemetry"]

_LANGSMITH = frozenset(
    {
        "api.smith.langchain.com",
        "eu.api.smith.langchain.com",
        "apac.api.smith.langchain.com",
        "aws.api.smith.langchain.com",
    }
)
_TELEMETRY_HOSTS = frozenset(
    {
        "telemetry.crewai.com",
        "app.crewai.com",
        "os-api.agno.com",
        "us.i.posthog.com",
        "eu.i.posthog.com",
    }
)
_SENTRY = re.compile(r"o\d+\.ingest\.(?:\w+\.)?sentry\.io")
"""Hosts of each organisation in each region. An agent reports its crashes there through urllib3."""
_TELEMETRY_PATHS = {"api.openai.com": "/v1/traces/ingest"}
_TRACES = re.compile(r"/(?:runs(?!/(?:query|stats))|info|otel|feedback|sessions)(?:/|$)")
"""Paths of LangSmith that receive traces, also where it is self-hosted."""
_LANGSMITH_ONLY = ("/runs/batch", "/runs/multipart")
_LANGSMITH_ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")

_OTLP = ("/v1/traces", "/v1/metrics", "/v1/logs")
_PROTOBUF = "application/x-protobuf"
_OTLP_JSON = (b'{"resourceSpans"', b'{"resourceMetrics"', b'{"resourceLogs"')

_TOKEN_COUNTS = (
    "/responses/input_tokens",  # OpenAI, Azure
    "/messages/count_tokens",  # Anthropic
    "/count-tokens:rawPredict",  # Anthropic on Vertex AI
    ":countTokens",  # Gemini
    "/count-tokens",  # Bedrock
)
_VOCABULARIES = ("openaipublic.blob.core.windows.net", "/encodings/")
"""tiktoken downloads its vocabulary from here, once on each machine."""
_TOKENIZER = re.compile(r"/resolve/[^/]+/tokenizer[^/]*$")
"""LiteLLM and others download tokenizers from Hugging Face, or from a mirror of it."""
_HARNESSES = "/api/agent-harnesses"
"""Hugging Face's client asks for this once a day, before anything else."""
_STORES = (".hf.co", ".huggingface.co")
_MODELS = ("raw.githubusercontent.com", "/BerriAI/litellm/")
"""LiteLLM downloads prices, limits and abilities of models from here when it is imported."""


def kind_of(request: Request) -> Kind:
    """Classify a request. The answer depends on the environment where LangSmith is self-hosted."""
    method, url = request.method, request.url
    if is_telemetry(url):
        return "telemetry"
    if is_report(method, url, request.headers, request.body):
        return "report"
    return "auxiliary" if is_auxiliary(method, url) else "ordinary"


@lru_cache(maxsize=1024)
def is_auxiliary(method: str, url: str) -> bool:
    """Return whether a request is about tokens, so that a run is the same without it."""
    parts = urlsplit(url)
    if method == "POST":
        return parts.path.endswith(_TOKEN_COUNTS)
    return method in ("GET", "HEAD") and _is_download_of_tokenizer(parts)


def _is_download_of_tokenizer(parts: SplitResult) -> bool:
    for host, folder in (_VOCABULARIES, _MODELS):
        if parts.hostname == host:
            return parts.path.startswith(folder)
    if parts.path == _HARNESSES or _TOKENIZER.search(parts.path):
        return True
    # Large files lie elsewhere, under a name that says nothing.
    return (parts.hostname or "").endswith(_STORES) and "tokenizer" in parts.query


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
    """Return whether a URL has a path of an OpenTelemetry collector."""
    return urlsplit(url).path.endswith(_OTLP)


def takes_reports(host: str | None) -> bool:
    """Return whether a host receives telemetry of frameworks and little else."""
    if host is None:
        return False
    return host in _LANGSMITH or host in _TELEMETRY_HOSTS or _SENTRY.fullmatch(host) is not None


def is_telemetry(url: str) -> bool:
    """Return whether a framework sends reports about itself to `url`."""
    known = _is_telemetry_anywhere(url)
    if known is not None:
        return known
    endpoints = (os.environ.get(name) for name in _LANGSMITH_ENDPOINTS)
    return any(url.startswith(f"{endpoint.rstrip('/')}/") for endpoint in endpoints if endpoint)


@lru_cache(maxsize=1024)
def _is_telemetry_anywhere(url: str) -> bool | None:
    """Return whether `url` is telemetry; None where that depends on who hosts LangSmith."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    traces = _TRACES.search(parts.path) is not None
    if host in _LANGSMITH or parts.path.endswith(_LANGSMITH_ONLY):
        return traces
    prefix = _TELEMETRY_PATHS.get(host)
    if takes_reports(host) or (prefix is not None and parts.path.startswith(prefix)):
        return True
    return None if traces else False
