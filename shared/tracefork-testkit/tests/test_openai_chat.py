"""The real OpenAI SDK reads the server's chat completions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall, Usage

LOOK = '@call look {"q": "tape"}\n@call count {}\n@then\n@say both done'


OpenAIAt = Callable[[ProviderServer], openai.OpenAI]


@pytest.fixture
def sdk(provider: ProviderServer, openai_at: OpenAIAt) -> openai.OpenAI:
    return openai_at(provider)


def user(text: str) -> ChatCompletionMessageParam:
    return {"role": "user", "content": text}


def test_a_directive_in_the_prompt_is_the_answer(sdk: openai.OpenAI) -> None:
    """`@say` in the user's turn comes back as the assistant's text, with ids and usage."""
    answer = sdk.chat.completions.create(model="gpt-5", messages=[user("@say hello")])
    assert answer.choices[0].message.content == "hello"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.id.startswith("chatcmpl-")
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


def test_parallel_tools_are_called_once_before_the_answer(sdk: openai.OpenAI) -> None:
    """Two `@call` lines make one turn with two calls; `@then` answers after their results."""
    first = sdk.chat.completions.create(model="gpt-5", messages=[user(LOOK)])
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    calls: Any = message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in calls] == [
        ("look", '{"q":"tape"}'),
        ("count", "{}"),
    ]
    history: list[Any] = [user(LOOK), message.model_dump(exclude_none=True)]
    history += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls]
    second = sdk.chat.completions.create(model="gpt-5", messages=history)
    assert second.choices[0].message.content == "both done"


def test_a_stream_carries_words_then_usage(sdk: openai.OpenAI) -> None:
    """Deltas are word-sized, and the usage chunk is sent only on request."""
    chunks = list(
        sdk.chat.completions.create(
            model="gpt-5",
            messages=[user("@say one two three")],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [word for word in said if word] == ["one", " two", " three"]
    assert chunks[-1].usage is not None
    bare = sdk.chat.completions.create(model="gpt-5", messages=[user("@say one")], stream=True)
    assert all(chunk.usage is None for chunk in bare)


def test_an_async_stream_assembles_tool_calls(provider: ProviderServer) -> None:
    """The SDK's own accumulator rebuilds the arguments from their deltas."""

    async def run() -> Any:
        async with (
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k") as sdk,
            sdk.chat.completions.stream(model="gpt-5", messages=[user(LOOK)]) as stream,
        ):
            return await stream.get_final_completion()

    calls = asyncio.run(run()).choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["look", "count"]
    assert calls[0].function.arguments == '{"q":"tape"}'


def test_a_script_sees_the_decoded_request(openai_at: OpenAIAt) -> None:
    """System text, turns, tool results and tools have the neutral form."""
    seen: list[ModelRequest] = []

    def script(request: ModelRequest) -> Reply:
        seen.append(request)
        return Reply("fine", usage=Usage(7, 3, cached_tokens=2))

    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
    ]
    with ProviderServer(script) as server:
        answer = openai_at(server).chat.completions.create(
            model="gpt-5", messages=history, tools=[tool]
        )
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 7
    request = seen[0]
    assert (request.provider, request.model, request.system) == ("openai.chat", "gpt-5", "be brief")
    assert request.last_user_text == "hi"
    assert request.messages[1].tool_calls == (ToolCall("look", {}, "call_1"),)
    assert [(r.call_id, r.text) for r in request.tool_results] == [("call_1", "found")]
    assert [tool.name for tool in request.tools] == ["look"]


def test_a_tool_result_changes_the_default_answer(sdk: openai.OpenAI) -> None:
    """The hashed sentence depends on the tool results after the user's turn."""

    def answer(result: str) -> Any:
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        history: list[Any] = [
            user("look it up"),
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ]
        done = sdk.chat.completions.create(model="gpt-5", messages=history)
        return done.choices[0].message.content

    assert answer("red") == answer("red")
    assert answer("red") != answer("blue")
