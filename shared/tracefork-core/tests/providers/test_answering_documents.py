"""Response documents and errors in the format of each provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.providers import ReasoningPart, TextPart, ToolCallPart
from tracefork_core.providers.answering import failure_answer, from_document

from .asked import AZURE, CHAT, EMBEDDINGS, MESSAGES, RESPONSES, WAYS, Ask

CALLED = {"name": "f", "arguments": '{"a": 1}'}
COMPLETION = {
    "id": "c1",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "reasoning_content": "hmm",
                "content": "yo",
                "refusal": "no",
                "tool_calls": [{"id": "t1", "type": "function", "function": CALLED}],
            },
            "finish_reason": "length",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
MESSAGE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "hmm", "signature": "s"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "yo", "citations": [{"type": "char_location"}]},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "max_tokens",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
SAID = {"type": "output_text", "text": "yo", "annotations": [{"type": "url_citation"}]}
RESPONSE = {
    "id": "r1",
    "object": "response",
    "model": "m",
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hmm"}]},
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [SAID, {"type": "refusal", "refusal": "no"}],
        },
        {"type": "function_call", "id": "fc", "call_id": "t1", "status": "completed", **CALLED},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
GENERATION = {
    "responseId": "g1",
    "modelVersion": "m",
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "a long thought, of many words", "thought": True},
                    {"text": "yo", "thoughtSignature": "s"},
                    {"functionCall": {"name": "f", "args": {"a": 1}}},
                ],
            },
            "finishReason": "MAX_TOKENS",
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
}
DOCUMENTS = {"chat": COMPLETION, "messages": MESSAGE, "responses": RESPONSE, "gemini": GENERATION}
STREAMS = [
    ("chat", "chat-stream-usage"),
    ("messages", "messages-stream"),
    ("responses", "responses-stream"),
    ("gemini", "gemini-events"),
    ("gemini", "gemini-array"),
]


@pytest.mark.parametrize(("whole", "streamed"), STREAMS)
def test_a_document_reads_the_same_as_a_stream(whole: str, streamed: str) -> None:
    """Thinking, refusals, provider tools: a stream carries everything that a document holds."""
    document = DOCUMENTS[whole]
    one, other = WAYS[whole], WAYS[streamed]
    read, again = (ask.read(from_document(ask, document)) for ask in (one, other))
    assert again.output == read.output
    assert len(read.output[0].parts) >= 3
    assert (again.stream, read.stream) == (True, False)
    assert again.usage == read.usage
    assert again.finish_reasons == read.finish_reasons
    assert (again.response_id, again.response_model) == (read.response_id, read.response_model)
    assert (again.text, again.tool_calls[0].arguments) == ("yo", {"a": 1})
    kinds = {type(part) for part in again.output[0].parts}
    assert kinds >= {ReasoningPart, TextPart, ToolCallPart}


@pytest.mark.parametrize("way", sorted(DOCUMENTS))
def test_a_whole_document_is_sent_unchanged(way: str) -> None:
    """Nothing is added and nothing is left out."""
    assert json.loads(from_document(WAYS[way], DOCUMENTS[way]).body) == DOCUMENTS[way]


def test_geminis_signature_is_on_the_last_piece_of_its_text() -> None:
    """The pieces before it have none."""
    part = {"text": "a text of many words", "thoughtSignature": "s"}
    document = {"candidates": [{"content": {"parts": [part]}}]}
    made = json.loads(from_document(WAYS["gemini-array"], document).body)
    pieces = [one["candidates"][0]["content"]["parts"][0] for one in made]
    assert len(pieces) > 2
    signed = ["thoughtSignature" in piece for piece in pieces]
    assert signed == [False] * (len(pieces) - 1) + [True]


def test_vectors_counts_and_refused_prompts_are_documents_too() -> None:
    """They need none of the fields of a generation."""
    vectors = {"data": [{"embedding": [1.0]}], "model": "e"}
    assert EMBEDDINGS.read(from_document(EMBEDDINGS, vectors)).output
    counting = Ask(f"{MESSAGES.url}/count_tokens", MESSAGES.body)
    usage = counting.read(from_document(counting, {"input_tokens": 7})).usage
    assert usage is not None
    assert usage.input_tokens == 7
    refused = {"promptFeedback": {"blockReason": "SAFETY"}}
    for way in ("gemini", "gemini-events", "gemini-array"):
        read = WAYS[way].read(from_document(WAYS[way], refused))
        assert read.finish_reasons == ("SAFETY",)


@pytest.mark.parametrize(
    ("request_", "document", "why"),
    [
        (CHAT, MESSAGE, "'choices'.*'id'"),
        (RESPONSES, COMPLETION, "'output'"),
        (MESSAGES, {"error": {}}, "'content'.*'error'"),
        (WAYS["gemini"], {}, "'candidates'"),
        (CHAT, [COMPLETION], "a JSON object"),
        (CHAT, {"choices": [float("inf")]}, "as JSON"),
    ],
)
def test_a_document_of_another_kind_is_refused(request_: Ask, document: Any, why: str) -> None:
    """The message names the field that a response to this request needs."""
    with pytest.raises(UsageError, match=why):
        from_document(request_, document)


WORDS = {
    400: ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    401: ("invalid_request_error", "authentication_error", "UNAUTHENTICATED"),
    422: ("invalid_request_error", "invalid_request_error", "UNKNOWN"),
    429: ("requests", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    500: ("server_error", "api_error", "INTERNAL"),
    529: ("server_error", "overloaded_error", "UNKNOWN"),
}
"""What OpenAI, Anthropic and Google call a status."""


def word(way: str, status: int) -> str:
    """Return the provider's word for a status; Azure has only the number."""
    openai, anthropic, google = WORDS[status]
    if way.startswith("azure"):
        return str(status)
    if way.startswith("gemini") or way.endswith("vertex"):
        return google
    return anthropic if way.startswith("messages") else openai


@pytest.mark.parametrize("status", WORDS)
@pytest.mark.parametrize("way", sorted(WAYS))
def test_an_error_has_the_format_of_the_provider(way: str, status: int) -> None:
    """Its message and the provider's word for the status are read back."""
    request = WAYS[way]
    made = failure_answer(request, status, "not now \U0001f600")
    read = request.read(made)
    assert made.status == status
    assert read.error is not None
    assert read.error.message == "not now \U0001f600"
    assert read.output == ()
    assert read.error.type == word(way, status)


def test_retry_after_has_the_format_of_the_provider() -> None:
    """In seconds, and in milliseconds if they are fractional; Google puts it into the body."""
    plain = dict(failure_answer(CHAT, 429, "slow", 7).headers)
    assert plain["retry-after"] == "7"
    assert "retry-after-ms" not in plain
    short = dict(failure_answer(MESSAGES, 529, "busy", 0.25).headers)
    assert (short["retry-after"], short["retry-after-ms"]) == ("1", "250")
    google = json.loads(failure_answer(WAYS["gemini"], 429, "slow", 7).body)
    assert google["error"]["details"][0]["retryDelay"] == "7s"
    assert json.loads(failure_answer(AZURE, 429, "slow").body)["error"]["code"] == "429"


def test_an_error_of_a_gemini_array_stream_is_an_array() -> None:
    """An error of an event stream is a plain body."""
    array, events = (WAYS[way] for way in ("gemini-array", "gemini-events"))
    (refusal,) = json.loads(failure_answer(array, 503, "busy").body)
    assert refusal == json.loads(failure_answer(events, 503, "busy").body)
    assert refusal["error"]["status"] == "UNAVAILABLE"


def test_an_error_needs_an_error_status() -> None:
    """200 is refused."""
    with pytest.raises(UsageError, match="200"):
        failure_answer(CHAT, 200, "fine")
