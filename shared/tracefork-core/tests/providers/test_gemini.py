"""Gemini: contents, both kinds of stream, its token arithmetic, counts and embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tracefork_core.providers import (
    BlobPart,
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

BASE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-x"
URL = f"{BASE}:generateContent"
STREAM = f"{BASE}:streamGenerateContent"
HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def chunk(*parts: dict[str, Any], reason: str | None = None, **body: object) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}
    return {"candidates": [candidate], "responseId": "g1", "modelVersion": "gemini-x-1", **body}


def test_a_whole_answer_becomes_the_neutral_view(ask: Ask) -> None:
    """The model is in the path, its role becomes assistant, and settings have neutral names."""
    request = HI | {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"maxOutputTokens": 5, "topP": 0.5, "stopSequences": ["x"]},
        "safetySettings": [],
    }
    thought = {"text": "hmm", "thought": True}
    call = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}
    view = ask(URL, request, chunk(thought, {"text": "yo"}, call, reason="STOP"))
    assert (view.operation, view.api, view.provider) == ("generate_content", "gemini", "gcp.gemini")
    assert (view.request_model, view.response_model) == ("gemini-x", "gemini-x-1")
    assert (view.response_id, view.stream, view.finish_reasons) == ("g1", False, ("STOP",))
    assert view.system == (TextPart("be brief"),)
    assert view.output == (
        Message(
            "assistant",
            (ReasoningPart("hmm"), TextPart("yo"), ToolCallPart(None, "f", {"a": 1})),
        ),
    )
    assert view.parameters == {
        "max_tokens": 5,
        "top_p": 0.5,
        "stop_sequences": ["x"],
        "safetySettings": [],
    }


@pytest.mark.parametrize("snake", [False, True])
def test_both_spellings_of_a_request_are_read(ask: Ask, snake: bool) -> None:
    """The API accepts camelCase and snake_case, so clients send either."""
    answer, inline = (
        ("function_response", "inline_data")
        if snake
        else (
            "functionResponse",
            "inlineData",
        )
    )
    mime = "mime_type" if snake else "mimeType"
    file, uri = ("file_data", "file_uri") if snake else ("fileData", "fileUri")
    parts = [
        {answer: {"name": "f", "response": {"result": 2}}},
        {inline: {mime: "image/png", "data": "AAAA"}},
        {file: {mime: "video/mp4", uri: "gs://b/v.mp4"}},
    ]
    view = ask(URL, {"contents": [{"role": "user", "parts": parts}]}, {})
    assert view.input[0].parts == (
        ToolCallResponsePart("f", {"result": 2}),
        BlobPart("image", "image/png", "AAAA"),
        UriPart("video", "video/mp4", "gs://b/v.mp4"),
    )


@pytest.mark.parametrize("form", ["events", "array"])
def test_a_stream_reads_like_the_whole_answer(ask: Ask, form: str) -> None:
    """As events and as a JSON array; the last usage counts."""
    first = {"promptTokenCount": 4, "candidatesTokenCount": 1}
    chunks = [
        chunk({"text": "h", "thought": True}, usageMetadata=first),
        chunk({"text": "m", "thought": True}),
        chunk({"text": "y"}),
        chunk({"text": "o"}, reason="STOP", usageMetadata=first | {"candidatesTokenCount": 6}),
    ]
    view = ask(STREAM, HI, chunks if form == "events" else json.dumps(chunks).encode())
    assert view.output[0].parts == (ReasoningPart("hm"), TextPart("yo"))
    assert (view.stream, view.finish_reasons, view.response_id) == (True, ("STOP",), "g1")
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (4, 6)


def test_a_truncated_array_gives_its_complete_chunks(ask: Ask) -> None:
    """A stream abandoned inside a chunk still gives the chunks before it."""
    body = json.dumps([chunk({"text": "y"}), chunk({"text": "o"}), chunk({"text": "!"})]).encode()
    assert ask(STREAM, HI, body[:-40]).text == "yo"
    assert ask(STREAM, HI, body[:3]).output == ()


def test_thoughts_and_tool_prompts_are_counted(ask: Ask) -> None:
    """Gemini's counts of candidates and prompt leave them out."""
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "cachedContentTokenCount": 3,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 20,
        "serviceTier": "STANDARD",
    }
    view = ask(URL, HI, {"usageMetadata": usage})
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (15, 27)
    assert (view.usage.cache_read_input_tokens, view.usage.reasoning_output_tokens) == (3, 20)
    assert (view.usage.reported, view.service_tier) == (usage, "standard")


def test_code_run_by_the_provider_is_a_server_tool(ask: Ask) -> None:
    """The caller must not run it again."""
    code: Json = {"language": "PYTHON", "code": "1+1"}
    view = ask(URL, HI, chunk({"executableCode": code}, {"novelty": {}}))
    assert view.tool_calls == ()
    assert view.output[0].parts == (
        ServerToolCallPart(None, "code_execution", code),
        GenericPart("novelty", {"novelty": {}}),
    )


def test_a_refused_prompt_has_its_reason(ask: Ask) -> None:
    """There is no candidate, so the finish reason is that of the prompt."""
    view = ask(URL, HI, {"promptFeedback": {"blockReason": "SAFETY"}})
    assert (view.output, view.finish_reasons, view.error) == ((), ("SAFETY",), None)


def test_tools_offered_are_listed(ask: Ask) -> None:
    """Every declaration is a function; a built-in tool keeps its own name."""
    one = {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}
    view = ask(URL, HI | {"tools": [{"functionDeclarations": [one]}, {"googleSearch": {}}]}, {})
    assert [(tool.type, tool.name) for tool in view.tools] == [
        ("function", "f"),
        ("googleSearch", "googleSearch"),
    ]
    assert view.tools[0].parameters == {"type": "object"}


def test_an_error_has_googles_word_for_it(ask: Ask) -> None:
    """The status word is the type, also if an array surrounds the error."""
    error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    for body in (error, json.dumps([error]).encode()):
        found = ask(URL, HI, body, 429).error
        assert found is not None
        assert (found.type, found.message) == ("RESOURCE_EXHAUSTED", "slow down")


def test_vertex_and_tuned_models_are_named(ask: Ask) -> None:
    """The model is the path segment before the method, at any depth."""
    vertex = "https://aiplatform.googleapis.com/v1/projects/p/locations/l"
    view = ask(f"{vertex}/publishers/google/models/gemini-x:generateContent", HI, {})
    assert (view.provider, view.request_model) == ("gcp.vertex_ai", "gemini-x")
    tuned = ask(f"{vertex}/endpoints/123%3AgenerateContent", HI, {})
    assert tuned.request_model == "123"


def test_counts_and_embeddings_are_operations_of_their_own(ask: Ask) -> None:
    """Neither generates text, and both keep their input."""
    counted = ask(f"{BASE}:countTokens", HI, {"totalTokens": 8})
    assert (counted.operation, counted.text) == ("count_tokens", "")
    assert counted.usage is not None
    assert counted.usage.input_tokens == 8
    content = {"parts": [{"text": "hi"}]}
    one = ask(f"{BASE}:embedContent", {"content": content}, {"embedding": {"values": [0.5]}})
    batch = {"requests": [{"content": content}, {"content": content}]}
    answer = {"embeddings": [{"values": [0.5]}, {"values": [0.25]}]}
    many = ask(f"{BASE}:batchEmbedContents", batch, answer)
    assert one.input == (Message("user", (TextPart("hi"),)),)
    assert [len(view.output) for view in (one, many)] == [1, 2]
    assert many.output[1].parts == (GenericPart("embedding", [0.25]),)
