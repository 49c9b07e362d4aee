"""Anthropic's messages: blocks, streams, cache arithmetic, token counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracefork_core.providers import (
    BlobPart,
    FilePart,
    Json,
    Message,
    ModelCall,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    UriPart,
)

Ask = Callable[..., ModelCall]

URL = "https://api.anthropic.com/v1/messages"
HI = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def started(**message: object) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m1", "model": "claude-x-1", **message}}


def block(index: int, **content: object) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def test_a_whole_message_becomes_the_neutral_view(ask: Ask) -> None:
    """Blocks are parts, the system prompt is outside the history, the stop reason is kept."""
    body = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "model": "claude-x-1",
        "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hmm", "signature": "s"},
            {"type": "text", "text": "yo"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        ],
        "usage": {"input_tokens": 1, "output_tokens": 2, "service_tier": "standard"},
    }
    view = ask(URL, HI | {"system": [{"type": "text", "text": "be brief"}], "top_k": 3}, body)
    assert (view.operation, view.api, view.provider) == ("chat", "anthropic.messages", "anthropic")
    assert (view.request_model, view.response_model) == ("claude-x", "claude-x-1")
    assert view.system == (TextPart("be brief"),)
    assert view.output == (
        Message(
            "assistant",
            (ReasoningPart("hmm"), TextPart("yo"), ToolCallPart("t1", "f", {"a": 1})),
        ),
    )
    assert (view.finish_reasons, view.service_tier) == (("tool_use",), "standard")
    assert view.parameters == {"max_tokens": 9, "top_k": 3}


def test_blocks_of_the_history_keep_their_kinds(ask: Ask) -> None:
    """Attachments, tool results and calls of the provider's tools are different parts."""
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    searched: Json = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    pages: list[Json] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    content = [
        {"type": "image", "source": source},
        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
        {"type": "container_upload", "file_id": "f1"},
        searched,
        found,
        {"type": "tool_result", "tool_use_id": "t1", "content": pages[:1]},
        {"type": "tool_result", "tool_use_id": "t2", "content": pages},
    ]
    view = ask(URL, {"messages": [{"role": "user", "content": content}]}, {})
    assert view.input[0].parts == (
        BlobPart("image", "image/png", "AAAA"),
        UriPart("document", None, "https://x/y.pdf"),
        FilePart("document", None, "f1"),
        ServerToolCallPart("s1", "web_search", searched),
        ServerToolCallResponsePart("s1", found),
        ToolCallResponsePart("t1", "a"),
        ToolCallResponsePart("t2", pages),
    )


def test_a_stream_reads_like_the_whole_message(ask: Ask) -> None:
    """Deltas are joined per block, and the last usage counts."""
    chunks = [
        started(role="assistant", content=[], usage={"input_tokens": 5, "output_tokens": 1}),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="h"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="s"),
        {"type": "ping"},
        block(1, type="text", text=""),
        delta(1, "text_delta", text="y"),
        delta(1, "text_delta", text="o"),
        block(2, type="tool_use", id="t1", name="f", input={}),
        delta(2, "input_json_delta", partial_json='{"a"'),
        delta(2, "input_json_delta", partial_json=": 1}"),
        block(3, type="tool_use", id="t2", name="g", input={}),
        delta(3, "input_json_delta", partial_json=""),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 7, "input_tokens": None},
        },
        {"type": "message_stop"},
    ]
    view = ask(URL, HI | {"stream": True}, chunks)
    assert view.output[0].parts == (
        ReasoningPart("hm"),
        TextPart("yo"),
        ToolCallPart("t1", "f", {"a": 1}),
        ToolCallPart("t2", "g", {}),
    )
    assert (view.response_id, view.finish_reasons, view.stream) == ("m1", ("tool_use",), True)
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (5, 7)


def test_an_error_inside_a_stream_keeps_the_earlier_events(ask: Ask) -> None:
    """An overloaded provider sends half a message and an error."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    view = ask(URL, HI, [started(), delta(0, "text_delta", text="par"), error])
    assert view.text == "par"
    assert view.error is not None
    assert (view.error.type, view.error.message) == ("overloaded_error", "later")


def test_input_tokens_include_cached_ones(ask: Ask) -> None:
    """Anthropic's three kinds of input tokens are added; each stays readable."""
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    read = ask(URL, HI, {"usage": usage}).usage
    assert read is not None
    assert (read.input_tokens, read.output_tokens) == (123, 7)
    assert (read.cache_read_input_tokens, read.cache_creation_input_tokens) == (100, 20)
    assert (read.reasoning_output_tokens, read.reported) == (4, usage)


def test_counting_tokens_is_an_operation_of_its_own(ask: Ask) -> None:
    """The count is the input; nothing is generated."""
    view = ask(f"{URL}/count_tokens?beta=true", HI, {"input_tokens": 42})
    assert (view.operation, view.output) == ("count_tokens", ())
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (42, None)


def test_vertex_names_the_model_in_the_path(ask: Ask) -> None:
    """The body on Vertex AI has a version in place of the model."""
    body = {"anthropic_version": "vertex-2023-10-16", "messages": HI["messages"]}
    host = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l"
    view = ask(f"{host}/publishers/anthropic/models/claude-x@1:streamRawPredict", body, {})
    assert (view.provider, view.request_model) == ("gcp.vertex_ai", "claude-x@1")


def test_tools_offered_are_listed(ask: Ask) -> None:
    """A tool of the caller is a function; a provider's tool keeps its versioned type."""
    mine = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    theirs = {"type": "web_search_20250305", "name": "web_search"}
    view = ask(URL, HI | {"tools": [mine, theirs]}, {})
    assert view.tools == (
        ToolDefinition("function", "f", "d", {"type": "object"}),
        ToolDefinition("web_search_20250305", "web_search"),
    )
