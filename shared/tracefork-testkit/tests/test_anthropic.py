"""The real Anthropic SDK reads the server's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import anthropic
import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

LOOK = '@say let me look\n@call look {"q": "tape"}\n@then\n@say found it'


AnthropicAt = Callable[[ProviderServer], anthropic.Anthropic]


@pytest.fixture
def sdk(provider: ProviderServer, anthropic_at: AnthropicAt) -> anthropic.Anthropic:
    return anthropic_at(provider)


def said(answer: anthropic.types.Message) -> list[str]:
    return [block.text for block in answer.content if block.type == "text"]


def ask(text: str) -> Any:
    return {"model": "claude", "max_tokens": 64, "messages": [{"role": "user", "content": text}]}


def test_text_comes_back_with_a_stop_reason(sdk: anthropic.Anthropic) -> None:
    """`@say` in the user's turn comes back as one text block."""
    answer = sdk.messages.create(**ask("@say hello"))
    assert [block.type for block in answer.content] == ["text"]
    assert said(answer) == ["hello"]
    assert answer.stop_reason == "end_turn"
    assert answer.id.startswith("msg_")


def test_a_tool_result_advances_the_script(sdk: anthropic.Anthropic) -> None:
    """Text and a tool call are in one turn; the next turn follows the tool result."""
    first = sdk.messages.create(**ask(LOOK))
    text, call = cast("list[Any]", first.content)
    assert first.stop_reason == "tool_use"
    assert (text.type, call.type) == ("text", "tool_use")
    history = ask(LOOK)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
    history["messages"] += [
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": [result]},
    ]
    second = sdk.messages.create(**history)
    assert said(second) == ["found it"]


def test_a_stream_rebuilds_thinking_text_and_tools(sdk: anthropic.Anthropic) -> None:
    """Every block kind survives the SDK's accumulator, sync."""
    with sdk.messages.stream(**ask("@think well now\n" + LOOK)) as stream:
        final = stream.get_final_message()
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
    thought, _, call = cast("list[Any]", final.content)
    assert (thought.thinking, call.input) == ("well now", {"q": "tape"})
    assert final.usage.output_tokens > 1


def test_raw_events_are_the_documented_ones(provider: ProviderServer) -> None:
    """The async event sequence is Anthropic's, with its ping."""

    async def run() -> list[str]:
        async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="k") as sdk:
            stream = await sdk.messages.create(**ask("@say a b"), stream=True)
            return [event.type async for event in stream]

    assert asyncio.run(run()) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert b'"stream":true' in provider.requests[0].body


def test_token_counts_equal_the_usage_of_the_call(sdk: anthropic.Anthropic) -> None:
    """The counting endpoint agrees with the usage of the call itself."""
    counted = sdk.messages.count_tokens(model="claude", messages=ask("hello there")["messages"])
    assert counted.input_tokens == sdk.messages.create(**ask("hello there")).usage.input_tokens


def test_system_blocks_reach_the_script(anthropic_at: AnthropicAt) -> None:
    """A system prompt of blocks is joined into the neutral system text."""
    seen: list[ModelRequest] = []

    def script(request: ModelRequest) -> Reply:
        seen.append(request)
        return Reply("ok")

    with ProviderServer(script) as server:
        anthropic_at(server).messages.create(
            **ask("hi"), system=[{"type": "text", "text": "be brief"}]
        )
    assert (seen[0].system, seen[0].last_user_text) == ("be brief", "hi")
