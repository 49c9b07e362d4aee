"""The SDKs of OpenAI and Anthropic, unchanged: their retries, their streams, their errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tracefork_core import DivergenceError, bind, record, replay
from tracefork_testkit import Fault, ProviderServer, Reply

MESSAGES: Any = [{"role": "user", "content": "hi"}]
SOON = {"retry-after-ms": "1"}
CONTEXT = ssl.create_default_context()
"""One for all: to build it loads every root certificate."""
KINDS: dict[str, tuple[Any, Any, str]] = {
    "openai": (openai.OpenAI, openai.DefaultHttpx2Client, "/v1"),
    "openai-async": (openai.AsyncOpenAI, openai.DefaultAsyncHttpx2Client, "/v1"),
    "anthropic": (anthropic.Anthropic, anthropic.DefaultHttpxClient, ""),
    "anthropic-async": (anthropic.AsyncAnthropic, anthropic.DefaultAsyncHttpxClient, ""),
}
SDKS = list(KINDS)


def made(name: str, url: str) -> Any:
    """Return a client of an SDK, with its own kind of HTTP client."""
    sdk, client, path = KINDS[name]
    transport = client(verify=CONTEXT)
    return sdk(api_key="k", base_url=url + path, max_retries=2, http_client=transport)


def asked(name: str, url: str, *, stream: bool = False, bound: bool = False) -> Any:
    """Call the model once, and return the text of the answer, or of each event."""
    if name.endswith("-async"):
        return asyncio.run(_asked_async(name, url, stream=stream, bound=bound))
    with made(name, url) as client:
        sdk = bind(client) if bound else client
        found = _create(sdk)(stream=stream)
        return [_text(event) for event in found] if stream else _text(found)


async def _asked_async(name: str, url: str, *, stream: bool, bound: bool) -> Any:
    async with made(name, url) as client:
        sdk = bind(client) if bound else client
        found = await _create(sdk)(stream=stream)
        return [_text(event) async for event in found] if stream else _text(found)


def _create(sdk: Any) -> Callable[..., Any]:
    if hasattr(sdk, "chat"):
        return lambda **options: sdk.chat.completions.create(
            model="m", messages=MESSAGES, **options
        )
    return lambda **options: sdk.messages.create(
        model="m", messages=MESSAGES, max_tokens=64, **options
    )


def _text(answer: Any) -> str:
    return str(answer.model_dump_json())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", SDKS)
def test_an_sdk_replays(name: str, stream: bool, round_trip: Callable[..., Any]) -> None:
    """Whole answers, and every event of a stream, are the same."""
    with ProviderServer([Reply("one two three four", chunk_delay=0.001)]) as server:
        trip = round_trip(server, lambda url: asked(name, url, stream=stream))
    assert trip.replayed == trip.recorded
    assert len(trip.recorded) > 4


@pytest.mark.parametrize("name", SDKS)
def test_each_retry_of_an_sdk_is_an_exchange(name: str, round_trip: Callable[..., Any]) -> None:
    """Refused twice, then answered: three exchanges, and the replay retries twice."""
    with ProviderServer([Fault(status=429, headers=SOON, times=2), Reply("at last")]) as server:
        trip = round_trip(server, lambda url: asked(name, url))
    assert [status for _, status, _ in trip.tape] == [429, 429, 200]
    assert "at last" in trip.replayed
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("name", SDKS)
def test_a_retry_after_a_broken_connection_replays(
    name: str, round_trip: Callable[..., Any]
) -> None:
    """A reset before the head is an exchange, and the SDK retries at replay."""
    script: list[Fault | Reply] = [
        Fault(kind="reset"),
        Fault(status=500, headers=SOON),
        Reply("at last"),
    ]
    with ProviderServer(script) as server:
        trip = round_trip(server, lambda url: asked(name, url))
    assert [(status, end) for _, status, end in trip.tape] == [
        (None, "failed"),
        (500, "eof"),
        (200, "eof"),
    ]
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("name", SDKS)
def test_the_last_refusal_is_the_sdks_error(name: str, round_trip: Callable[..., Any]) -> None:
    """When the retries are used up, the SDK raises the same error."""
    sdk: Any = anthropic if name.startswith("anthropic") else openai

    def act(url: str) -> str:
        with pytest.raises(sdk.InternalServerError) as raised:
            asked(name, url)
        return str(raised.value)

    with ProviderServer([Fault(status=500, headers=SOON, times=3)]) as server:
        trip = round_trip(server, act)
    assert len(trip.tape) == 3
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("name", SDKS)
def test_a_divergence_is_one_attempt(name: str, tmp_path: Path) -> None:
    """An SDK that diverges gets one refusal, which it does not retry, with the reason."""
    sdk: Any = anthropic if name.startswith("anthropic") else openai
    with ProviderServer() as server, record(tmp_path / "none.tape"):
        url = server.url
    with pytest.raises(DivergenceError), replay(tmp_path / "none.tape") as replaying:
        with pytest.raises(sdk.APIStatusError) as raised:
            asked(name, url)
    assert raised.value.status_code == 424
    assert "tracefork" in str(raised.value)
    assert replaying.exchanges == 1


@pytest.mark.parametrize("name", SDKS)
def test_a_bound_sdk_needs_no_patching(name: str, round_trip: Callable[..., Any]) -> None:
    """With `ambient=False`, a bound SDK client records, retries and replays."""
    before = httpx2.Client._transport_for_url, httpx2.AsyncClient._transport_for_url
    during = []

    def act(url: str) -> Any:
        during.append((httpx2.Client._transport_for_url, httpx2.AsyncClient._transport_for_url))
        return asked(name, url, bound=True)

    with ProviderServer([Fault(status=429, headers=SOON), Reply("bound")]) as server:
        trip = round_trip(server, act, ambient=False)
    assert during == [before, before]
    assert [status for _, status, _ in trip.tape] == [429, 200]
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("name", SDKS)
def test_an_unbound_sdk_is_not_recorded_without_patching(name: str, tmp_path: Path) -> None:
    """The receipt counts its connections."""
    with ProviderServer([Reply("unseen")]) as server:
        with record(tmp_path / "unbound.tape", ambient=False) as recording:
            asked(name, server.url)
    assert recording.receipt is not None
    assert recording.receipt.exchanges == 0
    assert len(recording.receipt.strays) == 1
