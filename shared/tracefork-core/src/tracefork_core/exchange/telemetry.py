"""Hosts that frameworks report to about themselves: not part of a run.

Requests to them are never taped. During replay they are refused like any egress, but without
poisoning the session: an exporter that cannot report must not fail a run that replays exactly.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from tracefork_core.errors import EgressError

HOSTS = frozenset(
    {
        "api.smith.langchain.com",
        "eu.api.smith.langchain.com",
        "telemetry.crewai.com",
        "app.crewai.com",
        "us.i.posthog.com",
        "eu.i.posthog.com",
    }
)
_PATHS = {
    "api.openai.com": "/v1/traces/ingest",
    "raw.githubusercontent.com": "/BerriAI/litellm/",
}


@lru_cache(maxsize=1024)
def is_telemetry(url: str) -> bool:
    """Return whether `url` is a framework's report about itself."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    prefix = _PATHS.get(host)
    return host in HOSTS or (prefix is not None and parts.path.startswith(prefix))


def refusal(url: str) -> EgressError:
    """Return why a report is not sent: a guard sees hosts, and some share theirs with a model."""
    return EgressError(
        f"tracefork: {url.partition('?')[0]} is what a framework reports about itself; it is not "
        "on the tape and not sent during replay. The run goes on."
    )
