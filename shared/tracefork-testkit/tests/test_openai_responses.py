"""The real OpenAI SDK reads the server's Responses API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tracefork_testkit import ProviderServer, Reply

LOOK = '@call look {"q": "tape"}\n@then\n@say found it'


OpenAIAt = Callable[[ProviderServer], openai.OpenAI]


@pytest.fixture
def sdk(provider: ProviderServer, openai_at: OpenAIAt) -> openai.OpenAI:
    return openai_at(provider)


def test_instructions_direct_the_answer(sdk: openai.OpenAI) -> None:
    """They do so if the input has no directives."""
    answer = sdk.responses.create(model="gpt-5", input="hi", instructions="@say hello there")
    assert answer.output_text == "hello there"
    assert answer.status == "completed"
    assert answer.usage is not None
    assert answer.usage.input_tokens > 0


def test_a_tool_result_names_its_call_by_id(sdk: openai.OpenAI) -> None:
    """A function call is answered by its call_id before the next turn."""
    first = sdk.responses.create(model="gpt-5", input=LOOK)
    call: Any = first.output[0]
    assert (call.type, call.name, call.arguments) == ("function_call", "look", '{"q":"tape"}')
    history: list[Any] = [
        {"role": "user", "content": LOOK},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "ok"},
    ]
    assert sdk.responses.create(model="gpt-5", input=history).output_text == "found it"


def test_a_stream_has_the_documented_event_order(sdk: openai.OpenAI) -> None:
    """Events go from created to completed, and are numbered without a gap."""
    stream = sdk.responses.create(model="gpt-5", input="@say a b", stream=True)
    events: list[Any] = list(stream)
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))


def test_an_async_stream_rebuilds_reasoning_and_calls(provider: ProviderServer) -> None:
    """The SDK's accumulator has the reasoning summary and the tool call at the end."""

    async def run() -> Any:
        async with (
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k") as sdk,
            sdk.responses.stream(model="gpt-5", input="@think hm well\n" + LOOK) as stream,
        ):
            kinds = [event.type async for event in stream]
            return kinds, await stream.get_final_response()

    kinds, final = asyncio.run(run())
    assert "response.function_call_arguments.delta" in kinds
    assert [item.type for item in final.output] == ["reasoning", "function_call"]
    assert final.output[0].summary[0].text == "hm well"


def test_a_cut_answer_is_incomplete(openai_at: OpenAIAt) -> None:
    """The finish reason length gives the status incomplete, with its reason."""
    with ProviderServer([Reply("half an", finish_reason="length")]) as server:
        answer = openai_at(server).responses.create(model="gpt-5", input="go on")
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_input_tokens_are_counted(sdk: openai.OpenAI) -> None:
    """The counting endpoint grows with the input."""
    count = sdk.responses.input_tokens.count
    short = count(model="gpt-5", input="hi").input_tokens
    assert count(model="gpt-5", input="hi " * 100).input_tokens > short
