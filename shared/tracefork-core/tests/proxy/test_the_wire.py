"""What passes between a program and its provider arrives as it was sent."""

from __future__ import annotations

import gzip
from pathlib import Path

import httpx2
import pytest
from backports import zstd

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import exchanges, standalone

KEY = "wholly-secret-9f8e7d6c5b4a3210"
"""A key that is in no variable of the proxy."""


def plain(response: httpx2.Response) -> tuple[int, dict[str, str], bytes]:
    """Return what a program sees of a response."""
    headers = {name: value for name, value in response.headers.items() if name != "connection"}
    return response.status_code, headers, response.content


REQUESTS = [
    ("GET", "/status/429"),
    ("GET", "/status/204"),
    ("GET", "/gzip"),
    ("GET", "/redirect?to=/bytes/1"),
    ("GET", "/set-cookie"),
    ("POST", "/echo?q=a%20b%2Fc"),
]


def test_each_response_is_the_one_of_the_provider(
    shell: Shell, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Status, headers and body are equal to those without the proxy, and again in the replay."""

    def asked(address: str) -> list[tuple[int, dict[str, str], bytes]]:
        seen = []
        for method, path in REQUESTS:
            http.cookies.clear()
            seen.append(plain(http.request(method, f"{address}{path}", content=b"x")))
        return seen

    direct = asked(provider.url)
    assert [status for status, _, _ in direct] == [429, 204, 200, 307, 200, 200]
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape") as proxy:
            assert asked(proxy.address) == direct
            assert proxy.ended()[0] == 0


def test_a_compressed_request_is_sent_and_compared(shell: Shell, http: httpx2.Client) -> None:
    """The provider gets the coded bytes; in the replay, another body is a divergence."""
    coded = {"gzip": gzip.compress(b"coded " * 50, mtime=0), "zstd": zstd.compress(b"coded " * 50)}
    with standalone(shell, "record", "run.tape") as proxy:
        for coding, sent in coded.items():
            headers = {"content-encoding": coding}
            answer = http.post(f"{proxy.address}/echo", content=sent, headers=headers)
            assert answer.content == sent
        proxy.ended()
    with standalone(shell, "replay", "run.tape") as proxy:
        url = f"{proxy.address}/echo"
        same = http.post(url, content=coded["gzip"], headers={"content-encoding": "gzip"})
        other = zstd.compress(b"other")
        refused = http.post(url, content=other, headers={"content-encoding": "zstd"})
        code, _ = proxy.ended()
    assert (same.content, refused.status_code, code) == (coded["gzip"], 424, 1)


def test_a_program_that_leaves_ends_the_call(shell: Shell, http: httpx2.Client) -> None:
    """The tape holds what was read until then, and the replay of the same program passes."""
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape") as proxy:
            url = f"{proxy.address}/chunked?n=500&delay=0.02"
            with http.stream("GET", url) as response:
                assert next(response.iter_raw()).startswith(b"chunk 0")
            http.get(f"{proxy.address}/bytes/1")
            code, printed = proxy.ended()
            assert code == 0, printed
    left, after = exchanges(shell.folder / "run.tape")
    assert (left.end, after.end) == ("abandoned", "eof")
    assert 0 < len(left.aside.sizes) < 500


@pytest.mark.parametrize(("fault", "status"), [("reset", 502), ("truncate", 0)])
def test_a_connection_that_breaks_breaks_again(
    shell: Shell, http: httpx2.Client, fault: str, status: int
) -> None:
    """A reset before the head is a 502 with its name; in the body, the body breaks off."""
    asked = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": f"@fail {fault} 9"}]}
    seen = []
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape") as proxy:
            url = proxy.variables["OPENAI_BASE_URL"] + "/chat/completions"
            try:
                response = http.post(url, json=asked)
                seen.append((response.status_code, response.json()["message"]))
            except httpx2.RemoteProtocolError:
                seen.append((0, "broken off"))
            assert proxy.ended()[0] == 0
    assert seen[0] == seen[1]
    assert seen[0][0] == status
    (exchange,) = exchanges(shell.folder / "run.tape")
    assert exchange.end == "failed"


def test_a_signed_request_is_not_sent_with_a_wrong_host(
    shell: Shell, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The signature of AWS holds for one host; a bearer token holds for any."""
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20261128/us-east-1/bedrock"}
    with standalone(shell, "record", "run.tape") as proxy:
        refused = http.post(f"{proxy.address}/echo", content=b"x", headers=signed)
        sent = http.post(f"{proxy.address}/echo", headers={"authorization": "Bearer abc"})
        proxy.ended()
    assert (refused.status_code, sent.status_code) == (501, 200)
    assert "AWS_BEARER_TOKEN_BEDROCK" in refused.json()["message"]
    assert len(provider.requests) == 1


def test_a_key_that_is_echoed_is_on_no_file(shell: Shell, http: httpx2.Client) -> None:
    """The key of a request is masked where a provider repeats it, in any file of the folder."""
    headers = {"authorization": f"Bearer {KEY}"}
    files = shell.folder.parent
    with standalone(shell, "record", "run.tape") as proxy:
        body = f"you said {KEY} and kept-word".encode()
        echoed = http.post(f"{proxy.address}/echo?key={KEY}", content=body, headers=headers)
        found = with_key(files)
        proxy.ended()
    assert echoed.content == body
    assert found + with_key(files) == []
    with Tape.open(shell.folder / "run.tape") as tape:
        assert b"and kept-word" in tape.exchanges[0].response_body


def with_key(folder: Path) -> list[Path]:
    """Return the files of a folder that hold the key."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if KEY.encode() in path.read_bytes()]
