"""google-genai 2 by itself, as ADK pins it; core tries google-genai 3."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from google import genai

from tracefork_testkit import ProviderServer

ASKED: Any = {"model": "gemini-2.5-flash", "contents": "hello"}


def asked(url: str, *, stream: bool) -> list[str]:
    """Ask with the client that blocks."""
    client = genai.Client(http_options={"base_url": url})
    whole = [] if stream else [client.models.generate_content(**ASKED)]
    parts = client.models.generate_content_stream(**ASKED) if stream else whole
    return [part.model_dump_json() for part in parts]


async def asked_async(url: str, *, stream: bool) -> list[str]:
    """Ask with the client of an event loop."""
    client = genai.Client(http_options={"base_url": url}).aio
    try:
        if stream:
            answers = [it async for it in await client.models.generate_content_stream(**ASKED)]
        else:
            answers = [await client.models.generate_content(**ASKED)]
    finally:
        await client.aclose()
    return [answer.model_dump_json() for answer in answers]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_client_of_google_replays_without_a_key(
    is_async: bool, stream: bool, server: ProviderServer, twice: Callable[..., tuple[Any, Any]]
) -> None:
    """The key was there in the recording; the client that is made in a replay needs none."""
    assert version("google-genai").startswith("2.")
    url = server.url

    def ask() -> list[str]:
        if is_async:
            return asyncio.run(asked_async(url, stream=stream))
        return asked(url, stream=stream)

    recorded, again = twice(ask, keys=("GOOGLE_API_KEY",))
    assert again == recorded
    assert len(recorded) == 1 or stream
