"""Responses: input and output items, provider tools, and streams that end early."""

from __future__ import annotations

from collections.abc import Callable

from tracefork_core.providers import (
    GenericPart,
    Json,
    Message,
    ModelCall,
    ReasoningPart,
    ServerToolCallPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    UriPart,
)

Ask = Callable[..., ModelCall]

URL = "https://api.openai.com/v1/responses"
HI = {"model": "gpt-5", "input": "hi"}
TEXT: dict[str, Json] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "yo"}],
}
CALL: dict[str, Json] = {
    "type": "function_call",
    "id": "fc",
    "call_id": "t1",
    "name": "f",
    "arguments": '{"a": 1}',
}


def test_a_whole_response_becomes_the_neutral_view(ask: Ask) -> None:
    """Instructions are the system prompt, and all output items are one message."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hmm"}]}
    search: Json = {"type": "web_search_call", "id": "ws", "status": "completed"}
    body = {
        "id": "r1",
        "model": "gpt-5-2025",
        "status": "completed",
        "error": None,
        "output": [thought, search, TEXT, CALL],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 1},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
        },
    }
    view = ask(URL, HI | {"instructions": "be brief", "max_output_tokens": 7}, body)
    assert (view.operation, view.api) == ("chat", "openai.responses")
    assert (view.response_id, view.response_model) == ("r1", "gpt-5-2025")
    assert view.system == (TextPart("be brief"),)
    assert view.input == (Message("user", (TextPart("hi"),)),)
    assert view.output[0].parts == (
        ReasoningPart("hmm"),
        ServerToolCallPart("ws", "web_search", search),
        TextPart("yo"),
        ToolCallPart("t1", "f", {"a": 1}),
    )
    assert (view.finish_reasons, view.parameters) == (("completed",), {"max_tokens": 7})
    assert view.usage is not None
    assert view.error is None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (9, 5)
    assert (view.usage.cache_read_input_tokens, view.usage.cache_creation_input_tokens) == (3, 1)
    assert view.usage.reasoning_output_tokens == 2


def test_each_input_item_is_a_message(ask: Ask) -> None:
    """Its role fits the kind of the item."""
    image: Json = {"type": "input_image", "image_url": "https://x/y.png"}
    items: list[Json] = [
        {"role": "developer", "content": "rules"},
        {"role": "user", "content": [{"type": "input_text", "text": "see"}, image]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        CALL,
        {"type": "function_call_output", "call_id": "t1", "output": "2"},
        {"type": "item_reference", "id": "i1"},
    ]
    view = ask(URL, {"input": items}, {})
    assert [message.role for message in view.input] == [
        "developer",
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    assert view.input[1].parts == (TextPart("see"), UriPart("image", None, "https://x/y.png"))
    assert view.input[2].parts == (ReasoningPart(""),)
    assert view.input[4].parts == (ToolCallResponsePart("t1", "2"),)
    assert view.input[5].parts == (GenericPart("item_reference", items[5]),)


def test_a_stream_gives_its_final_response(ask: Ask) -> None:
    """The completed event counts, whatever the deltas contain."""
    chunks = [
        {"type": "response.created", "response": {"id": "r1", "model": "m", "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "wrong"},
        {"type": "response.completed", "response": {"id": "r1", "model": "m", "output": [TEXT]}},
    ]
    view = ask(URL, HI | {"stream": True}, chunks)
    assert (view.text, view.response_id, view.stream) == ("yo", "r1", True)


def test_a_truncated_stream_gives_what_arrived(ask: Ask) -> None:
    """Finished items are read as sent; an unfinished one is joined from its deltas."""
    added = CALL | {"arguments": ""}
    arguments = "response.function_call_arguments.delta"
    summary = "response.reasoning_summary_text.delta"
    chunks = [
        {"type": "response.created", "response": {"id": "r1", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}},
        {"type": summary, "output_index": 0, "summary_index": 0, "delta": "h"},
        {"type": summary, "output_index": 0, "summary_index": 0, "delta": "m"},
        {"type": "response.output_item.done", "output_index": 1, "item": TEXT},
        {"type": "response.output_item.added", "output_index": 2, "item": added},
        {"type": arguments, "output_index": 2, "delta": '{"a'},
    ]
    view = ask(URL, HI, chunks)
    assert view.output[0].parts == (
        ReasoningPart("hm"),
        TextPart("yo"),
        ToolCallPart("t1", "f", '{"a'),
    )
    assert (view.finish_reasons, view.usage, view.error) == ((), None, None)


def test_an_unfinished_response_has_its_reason(ask: Ask) -> None:
    """The reason replaces the bare status `incomplete`."""
    why = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert ask(URL, HI, why).finish_reasons == ("max_output_tokens",)


def test_a_failure_is_read_from_a_body_or_an_event(ask: Ask) -> None:
    """Both have a code and a message."""
    error = {"code": "server_error", "message": "oops"}
    whole = ask(URL, HI, {"status": "failed", "error": error})
    event = ask(URL, HI, [{"type": "error", **error}])
    for view in (whole, event):
        assert view.error is not None
        assert (view.error.type, view.error.message) == ("server_error", "oops")


def test_tools_inside_a_namespace_are_listed_after_it(ask: Ask) -> None:
    """The model can call the tools inside a namespace."""
    inner = {"type": "function", "name": "rate", "parameters": {"type": "object"}}
    tools = [{"type": "namespace", "name": "fx", "tools": [inner]}, {"type": "tool_search"}]
    view = ask(URL, HI | {"tools": tools}, {})
    assert [(tool.type, tool.name) for tool in view.tools] == [
        ("namespace", "fx"),
        ("function", "rate"),
        ("tool_search", "tool_search"),
    ]


def test_a_conversation_that_is_made_shorter_is_a_model_call(ask: Ask) -> None:
    """It only reads, so a fork may ask for it again, and its tokens have a price."""
    answer = {
        "object": "response.compaction",
        "output": [{"type": "compaction", "id": "c1", "encrypted_content": "x"}],
        "usage": {"input_tokens": 40, "output_tokens": 2},
    }
    view = ask(f"{URL}/compact", HI, answer)
    assert (view.operation, view.api, view.text) == ("compact", "openai.responses", "")
    assert view.input == ask(URL, HI, {}).input
    assert view.usage is not None
    assert view.usage.input_tokens == 40
