"""Real host names reach the scripted server, and only inside the block."""

from __future__ import annotations

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests
import truststore

from tracefork_testkit import NetworkClosedError, ProviderServer, closed_network

SAY: Any = [{"role": "user", "content": "@say reached"}]
ECHO = "https://api.openai.com/echo"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer().real_hosts("models.internal.example") as server:
        yield server


def test_sdks_reach_the_server_with_their_default_base_url(server: ProviderServer) -> None:
    """This holds for OpenAI and Anthropic, sync."""
    with openai.OpenAI(api_key="k") as sdk:
        chat = sdk.chat.completions.create(model="gpt-5", messages=SAY)
    with (
        anthropic.Anthropic(api_key="k") as claude,
        claude.messages.stream(model="claude", max_tokens=8, messages=SAY) as stream,
    ):
        text = stream.get_final_text()
    assert (chat.choices[0].message.content, text) == ("reached", "reached")
    hosts = [request.header("host") for request in server.requests]
    assert hosts == ["api.openai.com", "api.anthropic.com"]


def test_async_sdks_reach_the_server(server: ProviderServer) -> None:
    """This holds for OpenAI and Anthropic, streaming."""

    async def run() -> tuple[str, str]:
        async with openai.AsyncOpenAI(api_key="k") as sdk:
            one = (await sdk.responses.create(model="gpt-5", input="@say reached")).output_text
        async with anthropic.AsyncAnthropic(api_key="k") as claude:
            asked = claude.messages.stream(model="claude", max_tokens=8, messages=SAY)
            async with asked as stream:
                return one, await stream.get_final_text()

    assert asyncio.run(run()) == ("reached", "reached")


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
def test_gemini_reaches_the_server(server: ProviderServer) -> None:
    """google-genai uses httpx when sync and aiohttp when async."""
    from google import genai

    with genai.Client(api_key="k") as sdk:
        assert sdk.models.generate_content(model="g", contents="@say reached").text == "reached"

    async def run() -> Any:
        async with genai.Client(api_key="k").aio as client:
            return (await client.models.generate_content(model="g", contents="@say again")).text

    assert asyncio.run(run()) == "again"


def test_every_http_library_reaches_the_server(server: ProviderServer) -> None:
    """These are httpx, httpx2, requests, urllib, aiohttp and truststore, also for an added host."""
    assert httpx.post(ECHO, content=b"httpx").content == b"httpx"
    assert httpx2.post(ECHO, content=b"httpx2").content == b"httpx2"
    assert requests.post(ECHO, data=b"requests", timeout=5).content == b"requests"
    with urllib.request.urlopen(ECHO, data=b"urllib") as answer:
        assert answer.read() == b"urllib"
    system = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with httpx.Client(verify=system) as client:
        assert client.post(ECHO, content=b"truststore").content == b"truststore"
    assert httpx2.get("http://api.openai.com/bytes/1").content == b"\x00"

    async def run() -> bytes:
        async with aiohttp.ClientSession() as session:
            url = "https://models.internal.example/echo"
            async with session.post(url, data=b"aiohttp") as answer:
                return await answer.read()

    assert asyncio.run(run()) == b"aiohttp"


def test_clients_created_before_the_block_reach_the_server() -> None:
    """Libraries keep TLS contexts from their import; these are neither bypassed nor changed."""
    context = ssl.create_default_context()
    trusted = context.cert_store_stats()
    with httpx.Client(verify=context) as old, ProviderServer().real_hosts():
        assert old.post(ECHO, content=b"old").content == b"old"
    assert context.cert_store_stats() == trusted


def test_the_audit_events_still_fire(server: ProviderServer) -> None:
    """The real functions run, with the loopback addresses that are used."""
    import sys

    seen: list[tuple[str, object]] = []
    listening = True

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if listening and event in ("socket.getaddrinfo", "socket.connect"):
            seen.append((event, args[0] if event == "socket.getaddrinfo" else args[1][0]))

    sys.addaudithook(hook)
    httpx2.post(ECHO, content=b"x")
    listening = False
    assert [event for event, _ in seen] == ["socket.getaddrinfo", "socket.connect"]
    assert all(str(address).startswith("127.") for _, address in seen)


def test_the_block_restores_all_patches() -> None:
    """After it, the patched functions are the original ones."""

    def doors() -> list[object]:
        inherited = [name in vars(socket.socket) for name in ("connect", "connect_ex")]
        context = ssl.SSLContext
        return [socket.getaddrinfo, context.wrap_socket, context.wrap_bio, inherited]

    before = doors()
    with ProviderServer().real_hosts():
        assert doors() != before
    assert doors() == before


def test_outside_the_block_the_names_are_the_real_ones() -> None:
    """The negative control: after the block, a call looks up the real host."""
    with ProviderServer().real_hosts():
        pass
    with closed_network() as network:
        with pytest.raises(NetworkClosedError):
            httpx2.post(ECHO)
        assert [one.target for one in network.attempts] == ["'api.openai.com'"]


def test_nested_servers_get_their_own_hosts() -> None:
    """The outer server gets its hosts back when the inner one ends."""
    with ProviderServer().real_hosts() as outer:
        with ProviderServer().real_hosts() as inner:
            httpx2.post(ECHO)
            assert (len(inner.requests), len(outer.requests)) == (1, 0)
        httpx2.post(ECHO)
        assert len(outer.requests) == 1


def test_a_proxy_of_the_environment_is_bypassed(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY does not apply to the rerouted hosts; afterwards the environment is restored."""
    import os

    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    before = dict(os.environ)
    with ProviderServer().real_hosts():
        assert httpx2.post(ECHO, content=b"direct").content == b"direct"
    assert dict(os.environ) == before
