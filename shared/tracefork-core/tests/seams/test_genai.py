"""google-genai sends through aiohttp if it can, and is recorded without a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from google import genai

from tracefork_core import Tape, bind
from tracefork_testkit import Fault, ProviderServer, Reply

# The SDK derives from aiohttp's session, which aiohttp does not like.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")


async def asked(url: str, *, stream: bool, **options: Any) -> list[str]:
    """Call the model once with the async client, and return each answer as JSON."""
    client = genai.Client(api_key="k", http_options={"base_url": url, **options}).aio
    ask = {"model": "gemini-2.5-flash", "contents": "hi"}
    try:
        if not stream:
            answers = [await client.models.generate_content(**ask)]
        else:
            answers = [part async for part in await client.models.generate_content_stream(**ask)]
    finally:
        await client.aclose()
    return [answer.model_dump_json(exclude={"sdk_http_response"}) for answer in answers]


def seams(trip: Any) -> list[str]:
    """Return the seam of each exchange."""
    with Tape.open(trip.path) as tape:
        return [exchange.aside.seam for exchange in tape.exchanges]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_gemini_over_aiohttp_replays(stream: bool, round_trip: Callable[..., Any]) -> None:
    """Whole answers and streams cross the seam of aiohttp."""
    with ProviderServer([Reply("one two three four", chunk_delay=0.001)]) as server:
        trip = round_trip(server, lambda url: asyncio.run(asked(url, stream=stream)))
    assert seams(trip) == ["aiohttp"]
    assert len(trip.recorded) > (2 if stream else 0)
    assert trip.replayed == trip.recorded


def test_retries_of_the_sdk_are_exchanges(round_trip: Callable[..., Any]) -> None:
    """The SDK retries after a 503, while recording and at replay."""
    retry = {"attempts": 3, "initial_delay": 0.01, "max_delay": 0.02}
    with ProviderServer([Fault(status=503, times=2), Reply("at last")]) as server:
        trip = round_trip(
            server, lambda url: asyncio.run(asked(url, stream=False, retry_options=retry))
        )
    assert [status for _, status, _ in trip.tape] == [503, 503, 200]
    assert trip.replayed == trip.recorded


def test_a_bound_session_passed_to_the_sdk_needs_no_patching(
    round_trip: Callable[..., Any],
) -> None:
    """It records and replays with `ambient=False`."""

    async def act(url: str) -> list[str]:
        async with aiohttp.ClientSession() as session:
            return await asked(url, stream=True, aiohttp_client=bind(session))

    with ProviderServer([Reply("one two three")]) as server:
        trip = round_trip(server, lambda url: asyncio.run(act(url)), ambient=False)
    assert seams(trip) == ["aiohttp"]
    assert trip.replayed == trip.recorded
