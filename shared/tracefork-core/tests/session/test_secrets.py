"""No credential reaches the tape: in no byte, no file, and at no time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx2
import openai
import pytest

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

SECRET = "s3cr3t-v4lue"


Written = Callable[[Path], bytes]


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "x-auth-token",
        "x-authentication",
        "x-session",
        "helicone-auth",
        "x-client-secret",
    ],
)
def test_credential_headers_are_not_on_the_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client, name: str, written: Written
) -> None:
    """Neither during the recording nor after it."""
    with record(tape):
        http.post(f"{provider.url}/echo", headers={name: SECRET, "x-kept": "kept-value"})
        during = written(tape)
    assert b"kept-value" in during
    assert SECRET.encode() not in during
    assert SECRET.encode() not in written(tape)


@pytest.mark.parametrize(
    "query",
    [
        "key",
        "api_key",
        "apikey",
        "sig",
        "access_token",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "client_secret",
        "password",
        "api%5Fkey",
        "auth",
    ],
)
def test_credentials_in_the_query_are_masked(
    tape: Path, provider: ProviderServer, http: httpx2.Client, query: str, written: Written
) -> None:
    """Another value replays: a replay needs no key."""
    with record(tape):
        http.get(f"{provider.url}/echo?a=1&{query}={SECRET}&alt=sse")
        during = written(tape)
    assert SECRET.encode() not in during + written(tape)
    assert f"?a=1&{query}=*&alt=sse".encode() in written(tape)
    with replay(tape):
        http.get(f"{provider.url}/echo?a=1&{query}=another&alt=sse")


def test_user_information_of_a_url_is_not_on_the_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client, written: Written
) -> None:
    """Nor is the authorization header that clients make of it."""
    with record(tape):
        http.get(f"http://user:{SECRET}@127.0.0.1:{provider.port}/echo")
    assert SECRET.encode() not in written(tape)
    assert provider.requests[0].header("authorization") is not None
    with replay(tape):
        http.get(f"http://127.0.0.1:{provider.port}/echo")


@pytest.mark.parametrize(
    ("referer", "kept"),
    [
        (f"https://site.test/a?x=1&sig={SECRET}#end", "https://site.test/a?x=1&sig=*#end"),
        (f"https://user:{SECRET}@site.test/a", "https://site.test/a"),
        ("https://site.test/a?x=1", "https://site.test/a?x=1"),
    ],
)
def test_credentials_in_a_referer_are_masked(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    written: Written,
    referer: str,
    kept: str,
) -> None:
    """The rest of the referring URL stays."""
    with record(tape):
        http.get(f"{provider.url}/echo", headers={"referer": referer})
        during = written(tape)
    assert SECRET.encode() not in during + written(tape)
    assert provider.requests[0].header("referer") == referer
    with Tape.open(tape) as recorded:
        assert dict(recorded.exchanges[0].request_headers)["referer"] == kept


def test_cookies_of_responses_stay_and_of_requests_are_dropped(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A response returns byte for byte; the cookie of the next request is dropped."""
    with record(tape):
        http.get(f"{provider.url}/set-cookie")
        http.get(f"{provider.url}/echo")
    assert provider.requests[1].header("cookie") == "session=testkit-cookie-value"
    with Tape.open(tape) as recorded:
        answer, request = recorded.exchanges
        set_cookie = dict(answer.response_headers)["set-cookie"]
        assert "cookie" not in dict(request.request_headers)
    assert set_cookie.startswith("session=testkit-cookie-value")
    http.cookies.clear()
    with replay(tape):
        assert http.get(f"{provider.url}/set-cookie").headers["set-cookie"] == set_cookie
        http.get(f"{provider.url}/echo")


def test_a_redirect_to_a_signed_url_replays_without_the_signature(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The URL of the second request is recorded without its secret."""
    url = f"{provider.url}/redirect?to=/echo%3Fx=1%26sig={SECRET}"
    with record(tape):
        assert http.get(url, follow_redirects=True).url.query == f"x=1&sig={SECRET}".encode()
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[1].url == f"{provider.url}/echo?x=1&sig=*"
    with replay(tape):
        assert http.get(url, follow_redirects=True).url.query == f"x=1&sig={SECRET}".encode()


def test_the_api_key_of_an_sdk_is_not_on_the_tape(
    tape: Path, provider: ProviderServer, written: Written
) -> None:
    """A replay works with any other key."""

    def ask(key: str) -> None:
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=key) as client:
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hello"}]
            )

    with record(tape):
        ask(SECRET)
    assert SECRET.encode() not in written(tape)
    with replay(tape):
        ask("none")
