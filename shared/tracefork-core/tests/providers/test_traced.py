"""A call that a trace reported reads on a tape as the call that was written."""

from __future__ import annotations

from tracefork_core.providers import ModelCall, decode, traced
from tracefork_core.providers.call import (
    BlobPart,
    FilePart,
    GenericPart,
    Message,
    ModelError,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    UriPart,
    Usage,
)

CALL = ModelCall(
    operation="chat",
    api="openai.chat_completions",
    provider="openai",
    request_model="gpt-5-mini",
    response_model="gpt-5-mini-2025-08-07",
    response_id="resp_1",
    stream=True,
    system=(TextPart("Be brief."),),
    input=(
        Message(
            "user",
            (
                TextPart("What is this?"),
                BlobPart("image", "image/png", "AA=="),
                UriPart("image", None, "https://example.com/cat.png"),
                FilePart("document", "application/pdf", "file_1"),
            ),
            "anna",
        ),
        Message("tool", (ToolCallResponsePart("call_0", {"rows": [1, None]}),)),
    ),
    output=(
        Message(
            "assistant",
            (
                ReasoningPart("A cat?"),
                ToolCallPart("call_1", "look_up", {"what": "cat"}),
                ServerToolCallPart("s_1", "web_search", {"query": "cat"}),
                ServerToolCallResponsePart("s_1", ["https://example.com"]),
                GenericPart("refusal", "No."),
                GenericPart("citation", {"type": "citation", "url": "https://example.com"}),
            ),
        ),
    ),
    tools=(ToolDefinition("function", "look_up", "Look it up.", {"type": "object"}),),
    parameters={"temperature": 0.2},
    usage=Usage(11, 7, 3, None, 2, {"prompt_tokens": 11}),
    finish_reasons=("tool_calls",),
    service_tier="default",
)


def read_back(call: ModelCall) -> ModelCall | None:
    """Return the call that an exchange with the bodies of `call` reads as."""
    asked, answered = traced.encode(call)
    return decode("POST", traced.url_of(call), (), asked, 200, (), answered)


def test_every_kind_of_part_and_every_field_comes_back() -> None:
    """Nothing that a call says is lost on a tape."""
    assert read_back(CALL) == CALL


def test_a_failed_call_comes_back() -> None:
    """The provider's error is part of the answer."""
    error = ModelError("overloaded_error", "Try later.")
    failed = ModelCall("chat", "anthropic.messages", "anthropic", "claude", error=error)
    assert read_back(failed) == failed


def test_bytes_that_are_not_json_read_as_an_empty_call() -> None:
    """A hostile tape cannot make the reader raise."""
    read = decode("POST", "trace://openai/chat", (), b"\xff[", 200, (), b'{"output":{"a":1}}')
    assert read == ModelCall("chat", traced.SCHEME, None, None)
