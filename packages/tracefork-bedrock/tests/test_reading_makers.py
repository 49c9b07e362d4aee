"""The bodies and streams of each maker's models read alike, and embeddings read as vectors."""

from __future__ import annotations

from typing import Any

import pytest

from tracefork_core.adapters.formats import (
    GenericPart,
    TextPart,
)

from .wire import answered, chunked, of_model, read

HI: Any = [{"role": "user", "content": [{"text": "Hi"}]}]
ANTHROPIC = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9}
CLAUDE = {**ANTHROPIC, "messages": [{"role": "user", "content": "Hi"}]}
CHAT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
NOVA = {"messages": HI, "inferenceConfig": {"maxTokens": 9}}
INVOKED: list[tuple[str, str, Any, Any]] = [
    (
        "anthropic.messages",
        "anthropic.claude-v9",
        CLAUDE,
        {
            "content": [{"type": "text", "text": "Hello"}],
            "stop_reason": "end",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
    ),
    (
        "openai.chat_completions",
        "openai.gpt-oss",
        CHAT,
        {
            "choices": [{"message": {"content": "Hello"}, "finish_reason": "end"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        },
    ),
    (
        "bedrock.nova",
        "amazon.nova-lite",
        NOVA,
        {
            "output": {"message": {"content": [{"text": "Hello"}]}},
            "stopReason": "end",
            "usage": {"inputTokens": 3, "outputTokens": 4},
        },
    ),
    (
        "bedrock.text",
        "amazon.titan-text",
        {"inputText": "Hi", "textGenerationConfig": {"maxTokenCount": 9}},
        {
            "inputTextTokenCount": 3.0,
            "results": [{"outputText": "Hello", "tokenCount": 4.0, "completionReason": "end"}],
        },
    ),
    (
        "bedrock.text",
        "meta.llama4",
        {"prompt": "Hi", "max_gen_len": 9},
        {
            "generation": "Hello",
            "prompt_token_count": 3,
            "generation_token_count": 4,
            "stop_reason": "end",
        },
    ),
    (
        "bedrock.text",
        "mistral.mistral-7b",
        {"prompt": "Hi", "max_tokens": 9},
        {"outputs": [{"text": "Hello", "stop_reason": "end"}]},
    ),
    (
        "bedrock.text",
        "cohere.command-text",
        {"prompt": "Hi", "max_tokens": 9},
        {"generations": [{"text": "Hello", "finish_reason": "end"}]},
    ),
    (
        "bedrock.text",
        "anthropic.claude-v2",
        {"prompt": "Hi", "max_tokens_to_sample": 9},
        {"completion": "Hello", "stop_reason": "end"},
    ),
    (
        "bedrock.text",
        "ai21.j2-mid",
        {"prompt": "Hi", "maxTokens": 9},
        {"completions": [{"data": {"text": "Hello"}, "finishReason": {"reason": "end"}}]},
    ),
    (
        "cohere.chat",
        "cohere.command-r",
        {"message": "Hi", "max_tokens": 9},
        {"text": "Hello", "finish_reason": "end", "generation_id": "g"},
    ),
]
COUNTS: Any = {"x_amzn_bedrock_input_token_count": "3", "x_amzn_bedrock_output_token_count": "4"}


@pytest.mark.parametrize(
    ("api", "model", "request_body", "body"), INVOKED, ids=lambda v: str(v)[:22]
)
def test_each_makers_body_reads_alike(api: str, model: str, request_body: Any, body: Any) -> None:
    """InvokeModel passes bodies on. Where they tell no token counts, the headers do."""
    call = read(of_model("invoke", request_body, model), answered(body, **COUNTS))
    assert (call.provider, call.api, call.request_model) == ("aws.bedrock", api, model)
    assert (call.input[0].parts, call.text) == ((TextPart("Hi"),), "Hello")
    assert (call.parameters["max_tokens"], call.finish_reasons) == (9, ("end",))
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (3, 4)


PIECES: list[tuple[str, Any, list[dict[str, Any]]]] = [
    (
        "anthropic.claude-v9",
        CLAUDE,
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "Hel"},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "lo"},
            },
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end"},
                "usage": {"output_tokens": 4},
            },
        ],
    ),
    (
        "amazon.nova-lite",
        NOVA,
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hel"}}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "lo"}}},
            {"messageStop": {"stopReason": "end"}},
        ],
    ),
    (
        "openai.gpt-oss",
        CHAT,
        [
            {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
            {"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "end"}]},
        ],
    ),
    (
        "amazon.titan-text",
        {"inputText": "Hi", "textGenerationConfig": {"maxTokenCount": 9}},
        [
            {"outputText": "Hel", "index": 0, "inputTextTokenCount": 3},
            {"outputText": "lo", "completionReason": "end", "totalOutputTextTokenCount": 4},
        ],
    ),
    (
        "meta.llama4",
        {"prompt": "Hi", "max_gen_len": 9},
        [
            {"generation": "Hel", "prompt_token_count": 3, "generation_token_count": 1},
            {"generation": "lo", "generation_token_count": 4, "stop_reason": "end"},
        ],
    ),
    (
        "cohere.command-r",
        {"message": "Hi", "max_tokens": 9},
        [
            {"event_type": "stream-start", "generation_id": "g"},
            {"event_type": "text-generation", "text": "Hel"},
            {"event_type": "text-generation", "text": "lo"},
            {"event_type": "stream-end", "finish_reason": "end", "response": {"text": "Hello"}},
        ],
    ),
]
METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3, "outputTokenCount": 4}}


@pytest.mark.parametrize(("model", "request_body", "events"), PIECES, ids=lambda v: str(v)[:20])
def test_each_makers_stream_reads_alike(
    model: str, request_body: Any, events: list[dict[str, Any]]
) -> None:
    """Where the events tell no token counts, the service's own at the end do."""
    sent = [*events[:-1], events[-1] | METRICS]
    request = of_model("invoke-with-response-stream", request_body, model)
    call = read(request, chunked(sent))
    assert (call.text, call.finish_reasons, call.stream) == ("Hello", ("end",), True)
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (3, 4)


@pytest.mark.parametrize(
    ("model", "body", "vectors", "inputs"),
    [
        ("amazon.titan-embed-text-v2:0", {"inputText": "Hi"}, {"embedding": [1, 2]}, 1),
        (
            "cohere.embed-v4",
            {"texts": ["Hi", "Ho"], "input_type": "search_query"},
            {"embeddings": {"float": [[1, 2]]}},
            2,
        ),
        (
            "cohere.embed-v3",
            {"texts": ["Hi"], "input_type": "search_query"},
            {"embeddings": [[1, 2]]},
            1,
        ),
        (
            "amazon.nova-2-multimodal-embeddings",
            {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": {"text": {"value": "Hi"}}},
            {"embeddings": [{"embedding": [1, 2], "embeddingType": "TEXT"}]},
            1,
        ),
    ],
)
def test_embeddings_read_as_vectors(model: str, body: Any, vectors: Any, inputs: int) -> None:
    """The count of tokens is in a header."""
    counts: Any = {"x_amzn_bedrock_input_token_count": "3"}
    call = read(of_model("invoke", body, model), answered(vectors, **counts))
    assert (call.operation, len(call.input)) == ("embeddings", inputs)
    assert [message.parts for message in call.output] == [(GenericPart("embedding", [1, 2]),)]
    assert call.usage is not None
    assert call.usage.input_tokens == 3
