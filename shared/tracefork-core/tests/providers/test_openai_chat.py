"""Chat completions: messages, tools, streams and usage of every compatible server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracefork_core.providers import (
    BlobPart,
    GenericPart,
    Json,
    Message,
    ModelCall,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    UriPart,
)

Ask = Callable[..., ModelCall]

URL = "https://api.openai.com/v1/chat/completions"
HI = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


def answer(message: dict[str, Any], **body: object) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "model": "gpt-4o-2024-08-06", "choices": [choice], **body}


def delta(index: int = 0, finish: str | None = None, **fields: object) -> dict[str, Any]:
    choice = {"index": index, "delta": fields, "finish_reason": finish}
    return {"id": "c1", "model": "gpt-4o-2024-08-06", "choices": [choice]}


def call(
    index: int, name: str | None, arguments: str, call_id: str | None = None
) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def test_a_whole_answer_becomes_the_neutral_view(ask: Ask) -> None:
    """Names, text, settings and finish reason are in the fields of the convention."""
    request = HI | {
        "temperature": 0,
        "max_completion_tokens": 5,
        "stop": "x",
        "n": 1,
        "logprobs": 1,
    }
    view = ask(URL, request, answer({"role": "assistant", "content": "yo"}, service_tier="flex"))
    assert (view.operation, view.api) == ("chat", "openai.chat_completions")
    assert (view.provider, view.stream, view.service_tier) == ("openai", False, "flex")
    assert (view.request_model, view.response_model) == ("gpt-4o", "gpt-4o-2024-08-06")
    assert (view.response_id, view.finish_reasons, view.error) == ("c1", ("stop",), None)
    assert view.input == (Message("user", (TextPart("hi"),)),)
    assert (view.text, view.tool_calls) == ("yo", ())
    assert view.parameters == {
        "temperature": 0,
        "max_tokens": 5,
        "stop_sequences": ["x"],
        "choice.count": 1,
        "logprobs": 1,
    }


def test_a_conversation_with_tools_and_images_keeps_every_part(ask: Ask) -> None:
    """Each block of each message becomes a part of the matching kind."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    link = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    audio = {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}}
    asked = [{"type": "text", "text": "look"}, picture, link, audio]
    called = [{"id": "t1", "function": {"name": "see", "arguments": '{"a": 1}'}}]
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": asked, "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": called},
        {"role": "tool", "tool_call_id": "t1", "content": "a cat"},
    ]
    view = ask(URL, {"messages": messages}, answer({"content": None, "refusal": "no"}))
    assert view.system == ()
    assert view.input[0] == Message("system", (TextPart("be brief"),))
    assert view.input[1].name == "ann"
    assert view.input[1].parts == (
        TextPart("look"),
        BlobPart("image", "image/png", "AAAA"),
        UriPart("image", None, "https://x/y.png"),
        BlobPart("audio", "audio/wav", "BBBB"),
    )
    assert view.input[2].parts == (ToolCallPart("t1", "see", {"a": 1}),)
    assert view.input[3] == Message("tool", (ToolCallResponsePart("t1", "a cat"),))
    assert view.output[0].parts == (GenericPart("refusal", "no"),)


def test_a_stream_reads_like_the_whole_answer(ask: Ask) -> None:
    """Text, reasoning and interleaved tool calls are joined by index."""
    chunks = [
        {"id": "", "model": "", "choices": []},
        delta(role="assistant", reasoning_content="hm", content=""),
        delta(reasoning_content="m", content=None),
        delta(content="o"),
        delta(content="k"),
        delta(tool_calls=[call(1, "b", "", "t2"), call(0, "a", '{"x"', "t1")]),
        delta(tool_calls=[call(0, None, ": 1}")]),
        delta(tool_calls=[call(1, None, "not json")], finish="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ]
    view = ask(URL, HI | {"stream": True}, chunks)
    assert view.output[0].parts == (
        ReasoningPart("hmm"),
        TextPart("ok"),
        ToolCallPart("t1", "a", {"x": 1}),
        ToolCallPart("t2", "b", "not json"),
    )
    assert (view.stream, view.response_id, view.finish_reasons) == (True, "c1", ("tool_calls",))
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (3, 4)


def test_tool_calls_streamed_without_an_index_stay_apart(ask: Ask) -> None:
    """If a server sends whole calls, their ids tell them apart."""
    calls = [{"id": f"t{n}", "function": {"name": f"f{n}", "arguments": "{}"}} for n in (1, 2)]
    view = ask(URL, HI, [delta(tool_calls=[calls[0]]), delta(tool_calls=[calls[1]])])
    assert view.tool_calls == (ToolCallPart("t1", "f1", {}), ToolCallPart("t2", "f2", {}))


def test_several_choices_are_several_messages(ask: Ask) -> None:
    """Choices are ordered by index, and the properties of the call use the first."""
    view = ask(URL, HI, [delta(1, content="b"), delta(0, "stop", content="a"), delta(1, "length")])
    assert [message.parts for message in view.output] == [(TextPart("a"),), (TextPart("b"),)]
    assert (view.finish_reasons, view.text) == (("stop", "length"), "a")


def test_thinking_blocks_of_a_stream_are_joined(ask: Ask) -> None:
    """Content that arrives as lists of blocks is joined by kind."""
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]
    view = ask(URL, HI, [delta(content=thinking), delta(content=thinking), delta(content="done")])
    assert view.output[0].parts == (ReasoningPart("soso"), TextPart("done"))


def test_tools_offered_are_listed(ask: Ask) -> None:
    """A nested definition and a bare one give the same neutral definition."""
    schema: Json = {"type": "object"}
    nested = {"type": "function", "function": {"name": "f", "parameters": schema}}
    legacy = {"name": "g", "description": "old", "parameters": schema}
    first = ask(URL, HI | {"tools": [nested, {"type": "web_search"}]}, {})
    assert first.tools[0] == ToolDefinition("function", "f", None, schema)
    assert (first.tools[1].type, first.tools[1].name) == ("web_search", "web_search")
    assert ask(URL, HI | {"functions": [legacy]}, {}).tools == (
        ToolDefinition("function", "g", "old", schema),
    )


def test_usage_has_cached_and_reasoning_tokens(ask: Ask) -> None:
    """Each server has its own fields for them."""
    openai = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    deepseek = {"prompt_tokens": 10, "completion_tokens": 7, "prompt_cache_hit_tokens": 6}
    usage = ask(URL, HI, {"usage": openai}).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (10, 7)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (4, 2)
    assert (usage.reasoning_output_tokens, usage.reported) == (5, openai)
    other = ask(URL, HI, {"usage": deepseek}).usage
    assert other is not None
    assert (other.cache_read_input_tokens, other.reasoning_output_tokens) == (6, None)


def test_reasoning_counted_beside_the_completion_is_output_too(ask: Ask) -> None:
    """The provider's total shows whether completion tokens leave out reasoning."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    outside = ask(
        "https://api.x.ai/v1/chat/completions", HI, {"usage": usage | {"total_tokens": 22}}
    )
    inside = ask(URL, HI, {"usage": usage | {"total_tokens": 17}})
    assert outside.usage is not None
    assert outside.usage.output_tokens == 12
    assert inside.usage is not None
    assert inside.usage.output_tokens == 7


def test_an_error_body_is_an_error(ask: Ask) -> None:
    """Type and message come from the body of any server, else the type is the status."""
    openai = {"error": {"message": "bad", "type": "invalid_request_error", "code": "x"}}
    router = {"error": {"message": "who", "code": 401}}
    vllm = {"object": "error", "message": "no such model", "type": "NotFoundError"}
    found = [ask(URL, HI, body, 400).error for body in (openai, router, vllm, b"<html>", {})]
    assert [error and (error.type, error.message) for error in found] == [
        ("invalid_request_error", "bad"),
        ("401", "who"),
        ("NotFoundError", "no such model"),
        ("400", None),
        ("400", None),
    ]
    assert ask(URL, HI, answer({"content": "fine"})).error is None


def test_an_error_inside_a_stream_keeps_the_earlier_events(ask: Ask) -> None:
    """A broken stream gives its text and its error."""
    view = ask(URL, HI, [delta(content="par"), {"error": {"type": "overloaded", "message": "m"}}])
    assert view.text == "par"
    assert view.error is not None
    assert view.error.type == "overloaded"
