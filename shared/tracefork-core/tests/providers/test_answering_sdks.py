"""The SDKs read generated answers over real sockets, as they read their provider's."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai

from tracefork_core.providers import Answer
from tracefork_core.providers.answering import answer, failure_answer, from_document

from .asked import Ask
from .served import served
from .test_answering_documents import COMPLETION, GENERATION, MESSAGE, RESPONSE

# The SDK derives from aiohttp's session, which aiohttp does not like.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

CONTEXT = ssl.create_default_context()
"""One for all: to build it loads every root certificate."""
TEXT = "Zażółć\u2028\r\n gęślą \U0001f600 jaźń.\n\n" * 3
ORDER = {"order": {"id": 7, "notes": ["a\nb", None, 0.5]}, "\u2028": True}
CALLS: list[tuple[str, Any]] = [("refund", ORDER), ("close", {})]
ASKED: Any = [{"role": "user", "content": "hi"}]
DOCUMENTS: dict[str, Any] = {
    "choices": COMPLETION | {"object": "chat.completion", "created": 5},
    "output": RESPONSE | {"created_at": 5, "tools": [], "parallel_tool_calls": True},
    "content": MESSAGE,
    "candidates": GENERATION,
}


def reply(request: Ask) -> Answer:
    """Answer by the name of the model: `fail`, `document` or another one."""
    asked = request.url.encode() + request.body
    if b"fail" in asked:
        return failure_answer(request, 429, "slow down", 0.25)
    if b"document" not in asked:
        return answer(request, text=TEXT, tool_calls=CALLS)
    kinds = {"completions": "choices", "responses": "output", "messages": "content"}
    kind = kinds.get(request.url.partition("?")[0].rpartition("/")[2], "candidates")
    return from_document(request, DOCUMENTS[kind])


@pytest.fixture
def url() -> Iterator[str]:
    """Serve generated answers."""
    with served(reply) as address:
        yield address


def open_ai(url: str) -> Any:
    http = openai.DefaultHttpx2Client(verify=CONTEXT)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http)


def async_open_ai(url: str) -> Any:
    http = openai.DefaultAsyncHttpx2Client(verify=CONTEXT)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http)


def claude(url: str) -> Any:
    http = anthropic.DefaultHttpxClient(verify=CONTEXT)
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, http_client=http)


def async_claude(url: str) -> Any:
    http = anthropic.DefaultAsyncHttpxClient(verify=CONTEXT)
    return anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0, http_client=http)


def gemini(url: str) -> Any:
    return genai.Client(api_key="k", http_options={"base_url": url})


def completion_says(completion: Any) -> bool:
    (choice,) = completion.choices
    made = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls]
    said = choice.message.content == TEXT and choice.finish_reason == "tool_calls"
    return bool(said and made == CALLS)


def response_says(response: Any) -> bool:
    calls = [item for item in response.output if item.type == "function_call"]
    made = [(call.name, json.loads(call.arguments)) for call in calls]
    return bool(response.output_text == TEXT and made == CALLS and response.status == "completed")


def message_says(message: Any) -> bool:
    text, *calls = message.content
    made = [(call.name, call.input) for call in calls]
    return bool(text.text == TEXT and made == CALLS and message.stop_reason == "tool_use")


def generation_says(parts: list[Any]) -> bool:
    made = [(p.function_call.name, p.function_call.args) for p in parts if p.function_call]
    return "".join(part.text or "" for part in parts) == TEXT and made == CALLS


def test_openai_reads_a_completion(url: str) -> None:
    """Whole, as chunks, and combined by the SDK's own stream helper."""
    asked: Any = {"model": "m", "messages": ASKED}
    with open_ai(url) as client:
        create = client.chat.completions.create
        whole = create(**asked)
        assert completion_says(whole)
        used = whole.usage
        assert used.total_tokens == used.prompt_tokens + used.completion_tokens
        options = {"include_usage": True}
        chunks = list(create(**asked, stream=True, stream_options=options))
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == TEXT
        assert chunks[-1].usage.completion_tokens == used.completion_tokens > 0
        with client.chat.completions.stream(**asked) as stream:
            kinds = {event.type for event in stream}
            assert completion_says(stream.get_final_completion())
    done = {"content.done", "tool_calls.function.arguments.done"}
    assert kinds >= {"content.delta", "tool_calls.function.arguments.delta"} | done


def test_openai_reads_a_response(url: str) -> None:
    """Whole, as typed events, and combined by the SDK's own stream helper."""
    asked: Any = {"model": "m", "input": "hi"}
    with open_ai(url) as client:
        assert response_says(client.responses.create(**asked))
        events = list(client.responses.create(**asked, stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert response_says(events[-1].response)
        with client.responses.stream(**asked) as stream:
            kinds = [event.type for event in stream]
            assert response_says(stream.get_final_response())
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    opened, closed = (f"response.output_item.{word}" for word in ("added", "done"))
    assert kinds.count(opened) == kinds.count(closed) == 1 + len(CALLS)
    assert set(kinds) >= {"response.output_text.done", "response.function_call_arguments.done"}


async def test_openai_reads_both_on_an_event_loop(url: str) -> None:
    """The asynchronous client and its stream helpers."""
    chat: Any = {"model": "m", "messages": ASKED}
    asked: Any = {"model": "m", "input": "hi"}
    async with async_open_ai(url) as client:
        assert completion_says(await client.chat.completions.create(**chat))
        async with client.chat.completions.stream(**chat) as stream:
            assert completion_says(await stream.get_final_completion())
        assert response_says(await client.responses.create(**asked))
        async with client.responses.stream(**asked) as stream:
            assert response_says(await stream.get_final_response())


def test_azures_client_reads_a_completion(url: str) -> None:
    """The deployment is in the path, and the wire format is that of chat completions."""
    http = openai.DefaultHttpx2Client(verify=CONTEXT)
    with openai.AzureOpenAI(
        azure_endpoint=url, api_key="k", api_version="2024-12-01", http_client=http
    ) as client:
        asked: Any = {"model": "my-gpt", "messages": ASKED}
        whole = client.chat.completions.create(**asked)
        assert completion_says(whole)
        assert whole.model == "my-gpt"
        with client.chat.completions.stream(**asked) as stream:
            assert completion_says(stream.get_final_completion())


def test_anthropic_reads_a_message(url: str) -> None:
    """Whole, as events, and combined by the SDK's own stream helper."""
    asked: Any = {"model": "m", "max_tokens": 9, "messages": ASKED}
    with claude(url) as client:
        whole = client.messages.create(**asked)
        assert message_says(whole)
        events = list(client.messages.create(**asked, stream=True))
        assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
        with client.messages.stream(**asked) as stream:
            assert "".join(stream.text_stream) == TEXT
            final = stream.get_final_message()
    assert message_says(final)
    assert final.usage.output_tokens == whole.usage.output_tokens


async def test_anthropic_reads_a_message_on_an_event_loop(url: str) -> None:
    """The asynchronous client and its stream helper."""
    asked: Any = {"model": "m", "max_tokens": 9, "messages": ASKED}
    async with async_claude(url) as client:
        assert message_says(await client.messages.create(**asked))
        async with client.messages.stream(**asked) as stream:
            assert message_says(await stream.get_final_message())


async def test_googles_client_reads_a_generation(url: str) -> None:
    """Whole and streamed, by the blocking and by the asynchronous client."""
    asked: Any = {"model": "gemini-3-pro", "contents": "hi"}

    def blocking() -> None:
        with gemini(url) as client:
            whole = client.models.generate_content(**asked)
            assert generation_says(whole.candidates[0].content.parts)
            found = list(client.models.generate_content_stream(**asked))
            parts = [part for one in found for part in one.candidates[0].content.parts]
            assert generation_says(parts)
            assert found[-1].usage_metadata == whole.usage_metadata

    await asyncio.to_thread(blocking)
    client = gemini(url).aio
    try:
        whole = await client.models.generate_content(**asked)
        assert generation_says(whole.candidates[0].content.parts)
        found = [one async for one in await client.models.generate_content_stream(**asked)]
        assert generation_says([part for one in found for part in one.candidates[0].content.parts])
        assert found[-1].candidates[0].finish_reason == "STOP"
    finally:
        await client.aclose()


def test_sdks_put_a_streamed_document_together(url: str) -> None:
    """The stream helpers return thinking, refusals and calls of the provider's tools complete."""
    asked: Any = {"model": "document", "messages": ASKED}
    with open_ai(url) as client:
        final = list(client.responses.create(model="document", input="hi", stream=True))[-1]
        assert final.type == "response.incomplete"
        assert [item.type for item in final.response.output] == [
            item["type"] for item in DOCUMENTS["output"]["output"]
        ]
        chunks = list(client.chat.completions.create(**asked, stream=True))
        assert chunks[-1].choices[0].finish_reason == "length"
    with claude(url) as client:
        with client.messages.stream(**asked, max_tokens=9) as stream:
            content = stream.get_final_message().content
    assert [block.type for block in content] == [
        block["type"] for block in DOCUMENTS["content"]["content"]
    ]
    assert (content[0].thinking, content[0].signature) == ("hmm", "s")
    assert (content[1].input, content[3].text, content[4].input) == ({"query": "q"}, "yo", {"a": 1})


def test_sdks_raise_their_own_error_for_a_429(url: str) -> None:
    """It contains the message."""
    asked: Any = {"model": "fail", "messages": ASKED}
    with open_ai(url) as client:
        with pytest.raises(openai.RateLimitError, match="slow down") as raised:
            client.chat.completions.create(**asked)
        assert raised.value.code == "rate_limit_exceeded"
        assert raised.value.response.headers["retry-after-ms"] == "250"
        with pytest.raises(openai.RateLimitError, match="slow down"):
            client.responses.create(model="fail", input="hi", stream=True)
    with claude(url) as client:
        with pytest.raises(anthropic.RateLimitError, match="rate_limit_error"):
            client.messages.create(**asked, max_tokens=9)
    with gemini(url) as client:
        with pytest.raises(genai.errors.ClientError, match="RESOURCE_EXHAUSTED") as refused:
            client.models.generate_content(model="fail", contents="hi")
    assert refused.value.code == 429


def test_a_gemini_stream_without_sse_arrives_as_a_json_array(url: str) -> None:
    """Without `alt=sse` in the URL it is one JSON array, in pieces."""
    path = "/v1beta/models/gemini-3-pro:streamGenerateContent"
    with httpx2.Client(verify=CONTEXT) as client:
        body = client.post(url + path, json={"contents": [{"parts": [{"text": "hi"}]}]}).json()
    assert len(body) > 3
    parts = [part for one in body for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == TEXT
