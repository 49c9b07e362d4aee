"""What an answer copies from the recorded one, and what it must not copy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracefork_core.providers import Answer
from tracefork_core.providers.answering import answer

from .asked import CHAT, GEMINI, MESSAGES, RESPONSES, WAYS, Ask

CALL = [("f", {"a": 1})]
THOUGHT = {"type": "thinking", "thinking": "hmm", "signature": "s1g"}
USED = {
    "input_tokens": 7,
    "output_tokens": 5,
    "cache_read_input_tokens": 90,
    "cache_creation_input_tokens": 0,
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-1",
    "content": [THOUGHT, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}],
    "stop_reason": "tool_use",
    "usage": USED,
}
RESPONSE = {
    "id": "resp_1",
    "model": "gpt-5-2025",
    "status": "completed",
    "created_at": 5,
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a": 1}',
        },
    ],
}


def recorded(body: Any, *headers: tuple[str, str], status: int = 200) -> Answer:
    return Answer(status, headers, (json.dumps(body).encode(),))


def streamed(request: Ask, answer_: Answer) -> tuple[Ask, Answer]:
    """Return the request and its answer as a stream."""
    request = request.but(stream=True)
    return request, answer(request, answer_, text=None, tool_calls=CALL)


def test_ids_model_and_headers_are_copied_from_the_recording() -> None:
    """So an agent that uses them sends the recorded request next. Headers of the body go."""
    call = {"id": "call_7", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    before = recorded(
        {
            "id": "chatcmpl-1",
            "model": "gpt-5-2025",
            "created": 5,
            "system_fingerprint": "fp_1",
            "choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43},
        },
        ("X-Request-Id", "req_1"),
        ("Content-Encoding", "gzip"),
        ("Content-Length", "9"),
        ("x-should-retry", "true"),
    )
    for request in (CHAT, CHAT.but(stream=True, stream_options={"include_usage": True})):
        made = answer(request, before, text=None, tool_calls=[*CALL, *CALL])
        read = request.read(made)
        assert (read.response_id, read.response_model) == ("chatcmpl-1", "gpt-5-2025")
        assert read.tool_calls[0].id == "call_7"
        assert read.tool_calls[1].id not in (None, "call_7")
        assert read.usage is not None
        assert read.usage.input_tokens == 40
        assert read.usage.output_tokens != 3
        assert b"fp_1" in made.body
        names = [name.lower() for name, _ in made.headers]
        assert "x-request-id" in names
        assert not {"content-encoding", "x-should-retry"} & set(names)
        assert dict(made.headers).get("content-length") in (None, str(len(made.body)))


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_thinking_is_kept_before_a_call_but_not_before_another_text(
    stream: bool,
) -> None:
    """A call without its thinking is refused; another text did not follow from it."""
    request, before = MESSAGES, recorded(MESSAGE)
    if stream:
        request, before = streamed(request, before)
    kept = answer(request, before, text=None, tool_calls=[("g", {})])
    assert b"hmm" in kept.body
    assert b"s1g" in kept.body
    assert request.read(kept).tool_calls[0].id == "toolu_1"
    gone = answer(request, before, text="yo")
    assert b"s1g" not in gone.body
    usage = request.read(gone).usage
    assert usage is not None
    assert usage.input_tokens == 97


def test_thinking_of_a_chat_is_kept_before_a_call_but_not_before_another_text() -> None:
    """Some servers refuse a call without its thinking."""
    message = {"content": "yes", "reasoning_content": "hmm"}
    before = recorded({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert b"hmm" in answer(CHAT, before, text=None, tool_calls=CALL).body
    assert b"hmm" in answer(CHAT, before, text="yes").body
    assert b"hmm" not in answer(CHAT, before, text="no").body


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_stored_by_the_provider_gets_a_new_id(stream: bool) -> None:
    """With the recorded id, the next request would continue from the recorded response."""
    request, before = RESPONSES, recorded(RESPONSE)
    if stream:
        request, before = streamed(request, before)
    same = request.read(answer(request, before, text=None, tool_calls=CALL))
    assert (same.response_id, same.tool_calls[0].id) == ("resp_1", "call_1")
    other = answer(request, before, text=None, tool_calls=[("f", {"a": 2})])
    read = request.read(other)
    assert read.response_id not in (None, "resp_1")
    assert b"fc_1" not in other.body
    assert b"rs_1" not in other.body
    # The link between a call and its answer is the agent's own affair.
    assert read.tool_calls[0].id == "call_1"
    unkept = request.but(store=False)
    assert unkept.read(answer(unkept, before, text="yo")).response_id == "resp_1"


def test_geminis_signature_stays_with_the_call_it_signs() -> None:
    """Another call gets the placeholder. Calls have ids if the recorded ones had."""
    part = {"functionCall": {"name": "f", "args": {"a": 1}, "id": "x1"}, "thoughtSignature": "s1g"}
    body = {"candidates": [{"content": {"parts": [part]}}], "responseId": "r1"}
    same = answer(GEMINI, recorded(body), text=None, tool_calls=CALL)
    assert json.loads(same.body)["candidates"][0]["content"]["parts"] == [part]
    other = answer(GEMINI, recorded(body), text=None, tool_calls=[("f", {"a": 2})])
    assert b"s1g" not in other.body
    assert GEMINI.read(other).tool_calls[0].id == "x1"
    assert GEMINI.read(other).response_id == "r1"


@pytest.mark.parametrize("way", sorted(WAYS))
def test_nothing_is_copied_from_an_error_or_unreadable_bytes(way: str) -> None:
    """The answer is then generated as a whole."""
    request = WAYS[way]
    plain = answer(request, text="yo")
    failed = recorded({"error": {"message": "no"}}, ("retry-after", "9"), status=429)
    assert answer(request, failed, text="yo") == plain
    for noise in (b"\xff", b"{}", b"[]", b'{"choices": 3, "content": 3, "output": 3}', b""):
        made = answer(request, Answer(200, (), (noise,)), text="yo")
        assert request.read(made).text == "yo"
