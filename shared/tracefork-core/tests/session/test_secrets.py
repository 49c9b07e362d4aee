"""No credential reaches the tape: not a byte of it, in no file, at no time."""

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
def test_credential_headers_never_land(
    tape: Path, provider: ProviderServer, http: httpx2.Client, name: str, written: Written
) -> None:
    """A header that carries a credential is dropped; while recording and after it."""
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
def test_credentials_in_the_query_never_land(
    tape: Path, provider: ProviderServer, http: httpx2.Client, query: str, written: Written
) -> None:
    """The value is masked, and another value replays: a tape needs nobody's key."""
    with record(tape):
        http.get(f"{provider.url}/echo?a=1&{query}={SECRET}&alt=sse")
        during = written(tape)
    assert SECRET.encode() not in during + written(tape)
    assert f"?a=1&{query}=*&alt=sse".encode() in written(tape)
    with replay(tape):
        http.get(f"{provider.url}/echo?a=1&{query}=another&alt=sse")


def test_user_information_in_the_url_never_lands(
    tape: Path, provider: ProviderServer, http: httpx2.Client, written: Written
) -> None:
    """Neither the URL nor the authorization header that clients make of it is kept."""
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
def test_credentials_in_a_referer_never_land(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    written: Written,
    referer: str,
    kept: str,
) -> None:
    """The page that a request comes from is kept, without what is secret in its URL."""
    with record(tape):
        http.get(f"{provider.url}/echo", headers={"referer": referer})
        during = written(tape)
    assert SECRET.encode() not in during + written(tape)
    assert provider.requests[0].header("referer") == referer
    with Tape.open(tape) as recorded:
        assert dict(recorded.exchanges[0].request_headers)["referer"] == kept


def test_an_answer_keeps_its_cookies_and_a_request_loses_them(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """An answer comes back byte for byte; the cookie that goes back with a request is dropped."""
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


def test_a_signed_redirect_is_followed_and_its_request_loses_the_signature(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A redirect to a signed URL replays; the URL that was asked is recorded without its secret."""
    url = f"{provider.url}/redirect?to=/echo%3Fx=1%26sig={SECRET}"
    with record(tape):
        assert http.get(url, follow_redirects=True).url.query == f"x=1&sig={SECRET}".encode()
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[1].url == f"{provider.url}/echo?x=1&sig=*"
    with replay(tape):
        assert http.get(url, follow_redirects=True).url.query == f"x=1&sig={SECRET}".encode()


def test_the_key_of_an_sdk_never_lands_and_none_is_needed(
    tape: Path, provider: ProviderServer, written: Written
) -> None:
    """What an SDK sends as a key is not on the tape, and any other replays."""

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
