"""Hostile bytes: random, truncated, of wrong types, or nested too deep."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core.providers import ModelCall, decode

PATHS = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1beta/models/m:generateContent",
    "/v1beta/models/m:streamGenerateContent",
    "/v1beta/models/m:countTokens",
    "/v1beta/models/m:batchEmbedContents",
    "/publishers/anthropic/models/m:rawPredict",
]
WORDS = re.findall(
    r"[\w.]+",
    """
    messages input contents content parts text type role choices delta index message usage
    tool_calls function arguments error code output item response candidates functionCall
    content_block message_start content_block_delta message_delta response.completed
    response.output_text.delta output_index reasoning summary requests embeddings data
    embedding usageMetadata promptTokenCount prompt_tokens prompt_tokens_details image_url
    cached_tokens source tools system name id status input_json_delta partial_json
    text_delta tool_result function_call_output
    """,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda child: (
        st.lists(child, max_size=4) | st.dictionaries(st.sampled_from(WORDS), child, max_size=6)
    ),
    max_leaves=40,
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["content-type", "Content-Encoding", "x"]),
        st.sampled_from(["text/event-stream", "gzip", "br, zstd", "deflate", "\u00e9", ""]),
    ),
    max_size=3,
)


def url(path: str) -> str:
    return "https://generativelanguage.googleapis.com" + path


@given(
    st.sampled_from(PATHS) | st.text(max_size=9),
    HEADERS,
    st.binary(max_size=200),
    st.none() | st.integers(),
    st.binary(max_size=200),
)
def test_random_bytes_never_raise(
    path: str, headers: list[tuple[str, str]], request: bytes, status: int | None, answer: bytes
) -> None:
    """Any request and response bytes decode to a call or to None."""
    call = decode("POST", url(path), headers, request, status, headers, answer)
    assert call is None or isinstance(call, ModelCall)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PATHS), VALUES, st.lists(VALUES, max_size=4), st.booleans())
def test_wrong_types_in_every_place_never_raise(
    path: str, request: Any, answers: list[Any], streamed: bool
) -> None:
    """Known fields with values of any type, whole or streamed, are read or left out."""
    lines = [b"data: " + json.dumps(answer).encode() + b"\n\n" for answer in answers]
    body = b"".join(lines) if streamed else json.dumps((answers or [None])[0]).encode()
    headers = [("content-type", "text/event-stream" if streamed else "application/json")]
    call = decode("POST", url(path), [], json.dumps(request).encode(), 200, headers, body)
    assert isinstance(call, ModelCall)
    assert isinstance(call.text, str)
    repr(call)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("depth", [200, 100_000])
def test_a_body_nested_too_deep_is_not_read(path: str, depth: int) -> None:
    """It causes no RecursionError."""
    hi = b'{"messages": [{"content": "hi"}], "choices": [{"message": {"content": "yo"}}], "x":'
    deep = hi + b"[" * depth + b"]" * depth + b"}"
    call = decode("POST", url(path), [], deep, 200, [], deep)
    assert isinstance(call, ModelCall)
    assert (call.input, call.output) == ((), ())


def test_a_body_nested_within_the_limit_is_read() -> None:
    """Schemas of tools may be deep."""
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {"properties": schema}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    request = json.dumps({"messages": [], "tools": [tool]}).encode()
    call = decode("POST", url(PATHS[0]), [], request, 200, [], b"{}")
    assert call is not None
    assert call.tools[0].parameters == schema


@pytest.mark.parametrize(
    "number", ["-1", "1.5", "true", '"7"', "1e999", "1e300", "9" * 400, "9" * 5000, "null", "{}"]
)
def test_an_invalid_count_is_not_reported(number: str) -> None:
    """Usage holds exact whole numbers, or None."""
    body = f'{{"usage": {{"prompt_tokens": {number}, "completion_tokens": 2}}}}'.encode()
    call = decode("POST", url(PATHS[0]), [], b"{}", 200, [], body)
    assert call is not None
    assert call.usage is None or call.usage.input_tokens is None


def test_a_huge_index_in_a_stream_costs_no_memory() -> None:
    """The indexes of a stream are used as keys, not as sizes."""
    choice = {"index": 10**15, "delta": {"content": "a", "tool_calls": [{"index": 10**15}]}}
    body = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    call = decode("POST", url(PATHS[0]), [], b"{}", 200, [], body)
    assert call is not None
    assert call.text == "a"


def test_a_body_of_too_many_values_is_not_parsed() -> None:
    """As JSON, an empty list takes twenty times the memory that its bytes take."""
    request = b'{"messages": [{"role": "user", "content": "hi"}], "x": [%b0]}'
    url = "https://api.openai.com/v1/chat/completions"
    few = decode("POST", url, [], request % (b"[]," * 1000), None, (), b"")
    many = decode("POST", url, [], request % (b"[]," * 400_000), None, (), b"")
    assert few is not None
    assert many is not None
    assert (len(few.input), len(many.input)) == (1, 0)
