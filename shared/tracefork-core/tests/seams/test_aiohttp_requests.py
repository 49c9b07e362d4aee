"""What is special about requests of aiohttp: responses, failures, traces, middlewares, bodies."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from tracefork_core import (
    DivergenceError,
    Tape,
    UsageError,
    bind,
    record,
    replay,
)
from tracefork_testkit import Fault, ProviderServer, Reply


def described(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return all that a response says about itself."""
    info = response.request_info
    return {
        "type": type(response).__name__,
        "status": (response.status, response.reason, response.version, response.ok),
        "headers": (response.headers, list(response.headers), response.raw_headers),
        "url": (str(response.url), str(response.real_url), response.host, response.method),
        "asked": (str(info.url), info.method, info.headers, str(info.real_url)),
        "kind": (response.content_type, response.charset, response.links),
        "history": [(past.status, str(past.url)) for past in response.history],
        "cookies": response.cookies,
    }


async def test_a_replayed_response_is_built_by_aiohttp(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """It has the session's response class, and the same attributes as the recorded one."""

    class Mine(aiohttp.ClientResponse):
        pass

    async def agent(url: str) -> list[dict[str, Any]]:
        async with aiohttp.ClientSession(response_class=Mine) as client:
            found = []
            for path in ("/set-cookie", "/redirect?to=/echo%23part", "/status/404#fragment"):
                async with client.post(url + path, json={"a": 1}) as response:
                    found.append({**described(response), "body": await response.text()})
            return found

    url = provider.url
    with record(tmp_path / "said.tape"):
        recorded = await agent(url)
    with replay(tmp_path / "said.tape"):
        assert await agent(url) == recorded
    assert {said["type"] for said in recorded} == {"Mine"}


async def test_aiohttp_request_without_a_session_replays(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """`aiohttp.request` makes a session for one request, which crosses the seam."""
    url = f"{provider.url}/bytes/6"

    async def agent() -> bytes:
        async with aiohttp.request("GET", url) as response:
            return await response.read()

    with record(tmp_path / "function.tape") as recording:
        recorded = await agent()
    assert recording.receipt is not None
    assert recording.receipt.exchanges == 1
    with replay(tmp_path / "function.tape"):
        assert await agent() == recorded


async def test_errors_that_aiohttp_raises_for_answers_replay(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """raise_for_status, a wrong content type, and too many redirects."""

    async def agent(url: str) -> list[tuple[str, str]]:
        said = []
        async with aiohttp.ClientSession() as client:
            for path, options in (
                ("/status/404", {"raise_for_status": True}),
                ("/status/200", {}),
                ("/redirect?to=/redirect", {"max_redirects": 2}),
            ):
                with pytest.raises(aiohttp.ClientResponseError) as raised:
                    async with client.get(url + path, **options) as response:
                        await response.json()
                said.append((type(raised.value).__name__, str(raised.value)))
        return said

    url = provider.url
    plain = await agent(url)
    with record(tmp_path / "errors.tape"):
        assert await agent(url) == plain
    with replay(tmp_path / "errors.tape"):
        assert await agent(url) == plain
    kinds = [kind for kind, _ in plain]
    assert kinds == ["ClientResponseError", "ContentTypeError", "TooManyRedirects"]


async def test_a_connector_error_replays_with_all_its_attributes(tmp_path: Path) -> None:
    """Host, port, errno and the class of the reason, for every kind of connect error."""

    async def agent() -> list[Any]:
        said: list[Any] = []
        for connector, url in (
            (aiohttp.TCPConnector(), "http://127.0.0.1:9/"),
            (aiohttp.TCPConnector(), "http://nowhere.invalid/"),
            (aiohttp.UnixConnector(path=str(tmp_path / "no.sock")), "http://local/"),
        ):
            async with aiohttp.ClientSession(connector=connector) as client:
                with pytest.raises(aiohttp.ClientConnectorError) as raised:
                    await client.get(url)
            error = raised.value
            reason = error.os_error
            said.append((type(error), str(error), error.host, error.port, error.ssl, error.errno))
            said.append((type(reason), reason.errno, reason.strerror))
        return said

    with record(tmp_path / "connect.tape"):
        recorded = await agent()
    with replay(tmp_path / "connect.tape"):
        assert await agent() == recorded
    assert recorded[1][:2] == (ConnectionRefusedError, 111)


async def test_an_untrusted_certificate_fails_with_the_same_error(tmp_path: Path) -> None:
    """aiohttp's certificate error comes back with the message of OpenSSL."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    async def agent(port: int) -> tuple[str, Any]:
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.ClientConnectorCertificateError) as raised:
                await client.get(f"https://127.0.0.1:{port}/")
        return str(raised.value), raised.value.certificate_error.args

    with ProviderServer() as server:
        port = server.listen(tls=tls)
        with record(tmp_path / "tls.tape"):
            recorded = await agent(port)
    with replay(tmp_path / "tls.tape"):
        assert await agent(port) == recorded
    assert "CERTIFICATE_VERIFY_FAILED" in recorded[0]


async def test_a_timeout_in_a_full_pool_replays_at_once(tmp_path: Path) -> None:
    """It is aiohttp's ConnectionTimeoutError; the replay does not wait for it."""

    async def agent(url: str) -> str:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(connector=connector) as client:
            async with client.get(f"{url}/chunked?n=2&delay=0.2"):
                limit = aiohttp.ClientTimeout(connect=0.05)
                with pytest.raises(aiohttp.ConnectionTimeoutError) as raised:
                    await client.get(f"{url}/echo", timeout=limit)
        return str(raised.value)

    with ProviderServer() as server:
        url = server.url
        with record(tmp_path / "pool.tape"):
            recorded = await agent(url)
    with replay(tmp_path / "pool.tape"):
        assert await agent(url) == recorded


def test_a_retry_after_a_dropped_connection_is_an_exchange(
    wire: Callable[..., Any], round_trip: Callable[..., Any]
) -> None:
    """aiohttp retries once when a kept connection was dropped: both attempts are recorded."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def act(url: str) -> bytes:
        async with aiohttp.ClientSession() as client, client.get(url) as response:
            return await response.read()

    server = wire(None, answer)
    trip = round_trip(server, lambda url: asyncio.run(act(url)))
    assert [(status, end) for _, status, end in trip.tape] == [(None, "failed"), (200, "eof")]
    assert trip.recorded == trip.replayed == b"ok"


@pytest.mark.parametrize("heads", [[b"nonsense\r\n\r\n"], [None, None]], ids=["nonsense", "none"])
def test_a_response_without_a_valid_head_fails_with_the_same_message(
    wire: Callable[..., Any], round_trip: Callable[..., Any], heads: list[bytes | None]
) -> None:
    """Also if the server always hangs up."""

    async def act(url: str) -> tuple[str, str]:
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.ClientError) as raised:
                await client.get(url)
        return type(raised.value).__name__, str(raised.value)

    trip = round_trip(wire(*heads), lambda url: asyncio.run(act(url)))
    assert trip.recorded[0] in ("ClientResponseError", "ServerDisconnectedError")
    assert trip.replayed == trip.recorded


async def test_traces_get_the_same_callbacks_at_replay(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """Except those about connections: a replay has none."""
    heard: list[str] = []
    trace = aiohttp.TraceConfig()
    for name in dir(trace):
        if name.startswith("on_"):

            async def note(session: Any, context: Any, given: Any, name: str = name) -> None:
                heard.append(f"{name} {getattr(given, 'chunk', '')!r}")

            getattr(trace, name).append(note)

    async def agent(url: str) -> list[str]:
        heard.clear()
        async with aiohttp.ClientSession(trace_configs=[trace]) as client:
            async with client.post(f"{url}/redirect?to=/echo", data=b"body") as response:
                await response.read()
        return list(heard)

    url = provider.url
    with record(tmp_path / "traces.tape"):
        recorded = await agent(url)
    with replay(tmp_path / "traces.tape"):
        replayed = await agent(url)
    assert "on_connection_create_start ''" in recorded
    assert replayed == [said for said in recorded if "connection" not in said]


async def test_the_agents_middlewares_are_above_the_seam(tmp_path: Path) -> None:
    """A middleware that retries makes a second exchange, and retries at replay, too."""
    asked: list[int] = []

    async def again(request: Any, handler: Any) -> Any:
        response = await handler(request)
        asked.append(response.status)
        if response.status != 200:
            response.close()
            return await again(request, handler)
        return response

    async def agent(url: str) -> bytes:
        asked.clear()
        async with aiohttp.ClientSession(middlewares=(again,)) as client:
            ask = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            async with client.post(f"{url}/v1/chat/completions", json=ask) as response:
                return await response.read()

    with ProviderServer([Fault(status=429, times=2), Reply("at last")]) as server:
        url = server.url
        with record(tmp_path / "again.tape"):
            recorded = await agent(url)
    assert asked == [429, 429, 200]
    with replay(tmp_path / "again.tape"):
        assert await agent(url) == recorded
    assert asked == [429, 429, 200]


async def test_an_aiohttp_without_middlewares_is_refused(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passed through, its requests would be live at replay; outside a session it works as ever."""
    monkeypatch.delattr(aiohttp, "ClientMiddlewareType")
    monkeypatch.setattr(aiohttp, "__version__", "3.11.18")
    async with aiohttp.ClientSession() as client:
        with record(tmp_path / "old.tape"):
            for session in (client, bind(client)):
                with pytest.raises(UsageError, match=r'3\.11\.18.* "aiohttp>=3\.12"'):
                    await session.get(f"{provider.url}/echo")
        assert provider.requests == []
        async with client.get(f"{provider.url}/echo") as response:
            assert response.status == 200


async def failing_body() -> AsyncIterator[bytes]:
    """Yield a body that fails halfway."""
    yield b"some"
    raise ValueError("no more")


@pytest.mark.parametrize("what", ["file", "failing", "continue", "compressed", "json", "unread"])
async def test_every_kind_of_aiohttp_body_replays(
    provider: ProviderServer, tmp_path: Path, what: str
) -> None:
    """Files, bodies that fail, that wait for `100 Continue`, that are compressed on the way."""
    (tmp_path / "file.txt").write_bytes(b"from a file " * 9000)

    async def agent(url: str) -> Any:
        async with aiohttp.ClientSession() as client:
            with (tmp_path / "file.txt").open("rb") as file:
                every: dict[str, dict[str, Any]] = {
                    "file": {"data": file},
                    "failing": {"data": failing_body()},
                    "continue": {"data": b"body", "expect100": True},
                    "compressed": {"data": b"body" * 99, "compress": True},
                    "json": {"json": {"ä": [1.0, None]}},
                    "unread": {"data": b"body", "auto_decompress": False},
                }
                options = every[what]
                path = "/gzip" if what == "unread" else "/echo"
                try:
                    async with client.post(url + path, **options) as response:
                        return response.status, await response.read()
                except aiohttp.ClientError as error:
                    return type(error).__name__, str(error).partition("Connection<")[0]

    url = provider.url
    plain = await agent(url)
    with record(tmp_path / "bodies.tape"):
        assert await agent(url) == plain
    with replay(tmp_path / "bodies.tape"):
        assert await agent(url) == plain
    received = [(request.headers, request.body) for request in provider.requests]
    assert received[: len(received) // 2] == received[len(received) // 2 :]


async def test_a_divergence_is_raised_or_answered(provider: ProviderServer, tmp_path: Path) -> None:
    """An agent gets the exception; an SDK with Stainless headers gets a response."""
    with record(tmp_path / "empty.tape"):
        pass
    url = f"{provider.url}/echo"

    async def agent() -> None:
        async with aiohttp.ClientSession() as client:
            with pytest.raises(DivergenceError) as raised:
                await client.get(url)
            assert raised.value.divergence.kind == "extra"
            async with client.get(url, headers={"x-stainless-lang": "python"}) as response:
                assert response.status == 424
                assert response.headers["x-should-retry"] == "false"
                assert raised.value.divergence.summary in await response.text()

    with pytest.raises(DivergenceError):
        async with replay(tmp_path / "empty.tape"):
            await agent()
    assert provider.requests == []


async def test_a_request_body_that_fails_is_recorded_as_far_as_it_was_sent(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """The exchange ends with the exception that aiohttp raises for it."""
    async with aiohttp.ClientSession() as client:
        with record(tmp_path / "broke.tape"), pytest.raises(aiohttp.ClientConnectionError):
            await client.post(f"{provider.url}/echo", data=failing_body())
    with Tape.open(tmp_path / "broke.tape") as tape:
        (exchange,) = tape.exchanges
        assert exchange.request_body == b"some"
        assert exchange.failure is not None
        assert exchange.failure.kind == "ClientConnectionError"
