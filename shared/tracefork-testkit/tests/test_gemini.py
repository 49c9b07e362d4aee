"""The real google-genai SDK reads the server's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from tracefork_testkit import Fault, ProviderServer

# The SDK subclasses aiohttp's session, which aiohttp warns about.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")


def client(server: ProviderServer, version: str = "v1beta") -> genai.Client:
    options = types.HttpOptions(base_url=server.url, api_version=version)
    return genai.Client(api_key="k", http_options=options)


@pytest.fixture
def sdk(provider: ProviderServer) -> Iterator[genai.Client]:
    with client(provider) as sdk:
        yield sdk


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_both_api_versions_answer(provider: ProviderServer, version: str) -> None:
    """The same script answers under /v1 and /v1beta."""
    with client(provider, version) as sdk:
        answer = sdk.models.generate_content(model="gemini-2.5-pro", contents="@say hello")
    assert answer.text == "hello"
    assert provider.requests[0].path == f"/{version}/models/gemini-2.5-pro:generateContent"


def test_a_stream_carries_words(sdk: genai.Client) -> None:
    """Each event holds a word; the last one also has the finish reason."""
    events = list(sdk.models.generate_content_stream(model="g", contents="@say one two three"))
    assert [event.text for event in events] == ["one", " two", " three"]
    assert events[-1].candidates is not None
    assert events[-1].candidates[0].finish_reason == types.FinishReason.STOP


def test_stream_events_end_with_two_crlf(provider: ProviderServer) -> None:
    """Google ends lines with CRLF, unlike the other providers."""
    body = {"contents": [{"role": "user", "parts": [{"text": "@say a b"}]}]}
    url = f"{provider.url}/v1beta/models/g:streamGenerateContent?alt=sse"
    assert httpx2.post(url, json=body).content.count(b"\r\n\r\n") == 2


def test_an_async_tool_result_advances_the_script(provider: ProviderServer) -> None:
    """A function response answers the function call, with the SDK on aiohttp."""
    prompt = '@call look {"q": "tape"}\n@then\n@say found it'

    async def run() -> Any:
        async with client(provider).aio as sdk:
            first = await sdk.models.generate_content(model="g", contents=prompt)
            assert first.function_calls is not None
            assert first.candidates is not None
            assert first.function_calls[0].args == {"q": "tape"}
            heard = types.Part.from_function_response(name="look", response={"result": "ok"})
            history = [
                types.Content(role="user", parts=[types.Part(text=prompt)]),
                first.candidates[0].content,
                types.Content(role="user", parts=[heard]),
            ]
            return (await sdk.models.generate_content(model="g", contents=history)).text

    assert asyncio.run(run()) == "found it"


def test_token_counts_and_embeddings_are_answered(sdk: genai.Client) -> None:
    """Agents with a memory call these two endpoints."""
    assert (sdk.models.count_tokens(model="g", contents="hello").total_tokens or 0) > 0
    vectors = sdk.models.embed_content(model="e", contents=["a", "b", "a"]).embeddings
    assert vectors is not None
    assert vectors[0].values == vectors[2].values != vectors[1].values


def test_an_error_has_googles_shape() -> None:
    """A scripted 429 raises the SDK's ClientError with Google's status name."""
    with (
        ProviderServer([Fault(status=429)]) as server,
        client(server) as sdk,
        pytest.raises(errors.ClientError) as caught,
    ):
        sdk.models.generate_content(model="g", contents="hi")
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
