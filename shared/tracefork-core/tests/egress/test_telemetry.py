"""Traces that a framework sends to LangSmith are on no tape; other requests to it are."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tracefork_core import EgressError, Tape, record, replay
from tracefork_testkit import ProviderServer

REGIONS = ["api", "eu.api", "apac.api", "aws.api"]


def reports(url: str) -> None:
    """Report a run as LangSmith's client does, which continues after an error."""
    for path in ("info", "runs/multipart", "sessions/5"):
        with pytest.raises(EgressError):
            httpx2.get(f"{url}/{path}", verify=False)


@pytest.mark.parametrize("region", REGIONS)
def test_traces_of_every_region_are_on_no_tape(tape: Path, region: str) -> None:
    """LangSmith receives the traces of a recording, but none of a replay."""
    host = f"{region}.smith.langchain.com"
    with ProviderServer().real_hosts(host) as provider, record(tape):
        httpx2.post(f"https://{host}/runs/multipart", content=b"a run")
    assert len(provider.requests) == 1
    with Tape.open(tape) as recorded:
        assert not recorded.exchanges
    with replay(tape):
        reports(f"https://{host}")


def test_traces_to_a_self_hosted_langsmith_are_on_no_tape(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANGSMITH_ENDPOINT names its URL; other paths of the same host are recorded."""
    with record(tape):
        monkeypatch.setenv("LANGSMITH_ENDPOINT", f"{provider.url}/smith/")
        httpx2.get(f"{provider.url}/smith/info")
        httpx2.get(f"{provider.url}/info")
    with Tape.open(tape) as recorded:
        assert [urlsplit(one.request.url).path for one in recorded.exchanges] == ["/info"]
    with replay(tape) as replaying:
        httpx2.get(f"{provider.url}/info")
        reports(f"{provider.url}/smith")
    assert replaying.digest == replaying.tape.digest


def test_a_pulled_prompt_is_on_the_tape(tape: Path) -> None:
    """Prompts, examples and sandboxes that an agent requests from LangSmith are its own calls."""
    with ProviderServer().real_hosts("api.smith.langchain.com") as provider, record(tape):
        pulled = httpx2.get("https://api.smith.langchain.com/commits/rlm/rag-prompt/latest")
    assert len(provider.requests) == 1
    with replay(tape) as replaying:
        again = httpx2.get("https://api.smith.langchain.com/commits/rlm/rag-prompt/latest")
    assert (again.content, again.status_code) == (pulled.content, pulled.status_code)
    assert replaying.digest == replaying.tape.digest
