"""Exchanges with Bedrock's models read as calls of models, whatever the maker of the model."""

from __future__ import annotations

from typing import Any

import pytest

from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.wire_format import FORMAT
from tracefork_core.adapters.formats import (
    Answer,
    BlobPart,
    ReasoningPart,
    ServerToolCallPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolUse,
    UriPart,
)
from tracefork_core.providers.prices import cost

from .test_reading_makers import CLAUDE, INVOKED, PIECES
from .wire import HOST, answered, asked, chunked, of_model, read, streamed

HI: Any = [{"role": "user", "content": [{"text": "Hi"}]}]
CONVERSE: dict[str, Any] = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "stopSequences": ["."]},
    "additionalModelRequestFields": {"top_k": 3},
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}},
            {"systemTool": {"name": "nova_code_interpreter"}},
        ]
    },
    "messages": [
        *HI,
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"q": 1}}}],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"json": {"found": 2}}]}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"document": {"format": "pdf", "name": "bill", "source": {"bytes": "aGk="}}},
                {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
                {"guardContent": {"text": {"text": "guarded"}}},
            ],
        },
    ],
}
CONVERSED: dict[str, Any] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"text": "Found "},
                {"citationsContent": {"content": [{"text": "it."}], "citations": []}},
                {"toolUse": {"toolUseId": "t2", "name": "look", "input": {"q": "ü"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 22,
        "cacheReadInputTokens": 4,
        "cacheWriteInputTokens": 3,
    },
}
CONVERSED_IN_PIECES: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant", "p": "ab"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "h"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "m"}}}},
    {
        "contentBlockDelta": {
            "contentBlockIndex": 0,
            "delta": {"reasoningContent": {"signature": "s"}},
        }
    },
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "Found"}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": " it."}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {
        "contentBlockStart": {
            "contentBlockIndex": 2,
            "start": {"toolUse": {"toolUseId": "t2", "name": "look"}},
        }
    },
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"q":'}}}},
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ' "ü"}'}}}},
    {"contentBlockStop": {"contentBlockIndex": 2}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": CONVERSED["usage"], "metrics": {"latencyMs": 3}}},
]
MODEL = "us.amazon.nova-lite-v1%3A0"


@pytest.mark.parametrize("streams", [False, True])
def test_a_conversation_reads_like_one_of_any_provider(streams: bool) -> None:
    """Messages, system prompt, tools, attachments, thoughts, token counts and settings."""
    if streams:
        request = of_model("converse-stream", CONVERSE, MODEL)
        call = read(request, streamed(CONVERSED_IN_PIECES))
    else:
        call = read(of_model("converse", CONVERSE, MODEL), answered(CONVERSED))
    assert (call.provider, call.api, call.stream) == ("aws.bedrock", "bedrock.converse", streams)
    assert call.request_model == "us.amazon.nova-lite-v1:0"
    assert call.system == (TextPart("Be brief."),)
    assert [tool.name for tool in call.tools] == ["look", "nova_code_interpreter"]
    assert call.parameters == {
        "max_tokens": 9,
        "temperature": 0.5,
        "stop_sequences": ["."],
        "additionalModelRequestFields": {"top_k": 3},
    }
    assert call.input[1].parts == (ToolCallPart("t1", "look", {"q": 1}),)
    assert call.input[2].parts == (
        ToolCallResponsePart("t1", {"found": 2}),
        BlobPart("image", "image/png", "aGk="),
        BlobPart("document", "application/pdf", "aGk="),
        UriPart("video", "video/mp4", "s3://b/v.mp4"),
        TextPart("guarded"),
    )
    assert call.output[0].parts[0] == ReasoningPart("hm")
    assert call.text == "Found it."
    assert call.tool_calls == (ToolCallPart("t2", "look", {"q": "ü"}),)
    assert call.finish_reasons == ("tool_use",)
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (17, 5)
    assert (call.usage.cache_read_input_tokens, call.usage.cache_creation_input_tokens) == (4, 3)


def test_a_request_alone_is_a_model_call_too() -> None:
    """A fork asks before there is an answer: asking a model has no side effect."""
    call = read(of_model("converse", {"messages": HI}))
    assert (call.input[0].parts, call.output) == ((TextPart("Hi"),), ())


def test_a_tool_that_the_service_ran_is_not_a_call_of_the_agent() -> None:
    """The code interpreter of Nova runs on Amazon's side; the agent has nothing to do."""
    begun = {"toolUseId": "t", "name": "nova_code_interpreter", "type": "server_tool_use"}
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": begun}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}},
        {
            "contentBlockStart": {
                "contentBlockIndex": 1,
                "start": {"toolResult": {"toolUseId": "t", "type": "x_result"}},
            }
        },
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolResult": [{"json": {}}]}}},
    ]
    call = read(of_model("converse-stream", {"messages": HI}), streamed(events))
    assert not call.tool_calls
    assert isinstance(call.output[0].parts[0], ServerToolCallPart)
    assert call.output[0].parts[1].type == "server_tool_call_response"


def test_counting_tokens_is_no_generation() -> None:
    """The request to count is inside the request."""
    request = of_model("count-tokens", {"input": {"converse": {"messages": HI}}})
    call = read(request, answered({"inputTokens": 7}))
    assert (call.operation, call.input[0].parts) == ("count_tokens", (TextPart("Hi"),))
    assert call.usage is not None
    assert call.usage.input_tokens == 7
    assert cost(call, None) == 0


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("anthropic.claude-v2%3A1", "anthropic.claude-v2:1"),
        ("us.amazon.nova-lite-v1:0", "us.amazon.nova-lite-v1:0"),
        (
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Afoundation-model%2Famazon.nova-lite-v1%3A0",
            "amazon.nova-lite-v1:0",
        ),
        (
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0",
            "eu.amazon.nova-lite-v1:0",
        ),
        (
            "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/mi1dadi0g15f",
            "application-inference-profile/mi1dadi0g15f",
        ),
    ],
)
def test_the_url_names_the_model(written: str, name: str) -> None:
    """Escaped or not, as an id, as a profile across regions, or as a resource of an account."""
    assert read(of_model("converse", {"messages": HI}, written)).request_model == name


def test_the_cost_is_that_of_the_region() -> None:
    """A profile of a region costs more than one of the world."""
    document = CONVERSED | {"usage": {"inputTokens": 1_000_000, "outputTokens": 0}}
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    prices = [
        cost(
            read(of_model("converse", {"messages": HI}, f"{place}{model}"), answered(document)),
            None,
        )
        for place in ("us.", "global.")
    ]
    assert None not in prices
    assert str(prices[0]) > str(prices[1])


def test_a_profile_of_ones_own_has_no_price() -> None:
    """Its ARN ends with a random id. Claude names itself in the body of InvokeModel."""
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/mi1dadi0g15f"
    assert cost(read(of_model("converse", CONVERSE, arn), answered(CONVERSED)), None) is None
    named = INVOKED[0][3] | {"model": "claude-sonnet-4-5-20250929"}
    assert cost(read(of_model("invoke", CLAUDE, arn), answered(named)), None) is not None


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({"x_amzn_errortype": "ThrottlingException:http://internal.amazon.com/"}, "Throttling"),
        ({}, "429"),
    ],
)
def test_an_error_has_the_name_that_the_service_gives_it(headers: Any, kind: str) -> None:
    """The name is what a client raises; a proxy may leave it out."""
    request = of_model("converse", {"messages": HI})
    call = read(request, answered({"message": "slow down"}, 429, **headers))
    assert call.error is not None
    assert call.error.type.startswith(kind)
    assert call.error.message == "slow down"
    assert not call.output


BROKEN = event_stream.exception("modelStreamErrorException", b'{"message": "the model died"}')


def test_an_error_in_the_middle_of_a_stream_is_named() -> None:
    """What came before it is still what the model said."""
    told = streamed(CONVERSED_IN_PIECES[:7], BROKEN)
    call = read(of_model("converse-stream", {"messages": HI}), told)
    assert call.text == "Found it."
    assert call.error is not None
    assert (call.error.type, call.error.message) == (BROKEN.name, "the model died")
    told = chunked(PIECES[0][2][:3], BROKEN)
    call = read(of_model("invoke-with-response-stream", CLAUDE), told)
    assert call.text == "Hel"
    assert call.error is not None


def test_a_stream_that_was_cut_off_reads_up_to_there() -> None:
    """An agent may stop reading, and a connection may break, in the middle of a frame."""
    body = streamed(CONVERSED_IN_PIECES).body
    request = of_model("converse-stream", {"messages": HI})
    for length in range(0, len(body), 37):
        call = read(request, Answer(200, (), (body[:length],)))
        assert "Found it.".startswith(call.text)
        assert call.error is None
    call = read(request, Answer(200, (), (body[:-5] + b"xxxxx",)))
    assert call.error is not None
    assert "checksum" in (call.error.message or "")


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", f"{HOST}/model/m/converse"),
        ("POST", f"{HOST}/model/m/converse/x"),
        ("POST", f"{HOST}/model//converse"),
        ("POST", "https://shop.example/agents/17"),
        ("POST", "https://shop.example/rerank"),
        ("POST", "mcp:model/m/invoke"),
        ("POST", "http://[broken/model/m/invoke"),
    ],
)
def test_other_requests_are_left_alone(method: str, url: str) -> None:
    """A path that another server may have is Bedrock's at Amazon's hosts only."""
    assert not FORMAT.reads(method, url)


def test_a_gateway_in_front_of_bedrock_reads_alike() -> None:
    """A proxy of a company has a host and a path of its own."""
    request = of_model("converse", {"messages": HI}, "m", "https://llm.example/bedrock")
    assert read(request).provider == "aws.bedrock"
    assert FORMAT.decode(request._replace(body=b"not JSON"), None) is None


@pytest.mark.parametrize(
    ("path", "host", "body", "answer", "name", "place", "result"),
    [
        (
            "/agents/A1/agentAliases/B2/sessions/s/text",
            "bedrock-agent-runtime",
            {"inputText": "Hi"},
            chunked([]),
            "InvokeAgent",
            "agent A1",
            None,
        ),
        (
            "/knowledgebases/K1/retrieve",
            "bedrock-agent-runtime",
            {"retrievalQuery": {"text": "Hi"}},
            answered(
                {"retrievalResults": [{"content": {"text": "a"}}, {"content": {"text": "b"}}]}
            ),
            "Retrieve",
            "K1",
            "a\nb",
        ),
        (
            "/retrieveAndGenerate",
            "bedrock-agent-runtime",
            {"input": {"text": "Hi"}},
            answered({"output": {"text": "Hello"}, "sessionId": "s"}),
            "RetrieveAndGenerate",
            None,
            "Hello",
        ),
        (
            "/flows/F1/aliases/A1",
            "bedrock-agent-runtime",
            {"inputs": []},
            streamed([{"flowOutputEvent": {"content": {"document": "Hello"}}}]),
            "InvokeFlow",
            "flow F1",
            "Hello",
        ),
        (
            "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A1%3Aruntime%2Fr/invocations",
            "bedrock-agentcore",
            {"prompt": "Hi"},
            answered({"result": "Hello"}),
            "InvokeAgentRuntime",
            "r",
            {"result": "Hello"},
        ),
        (
            "/guardrail/G1/version/1/apply",
            "bedrock-runtime",
            {"source": "INPUT"},
            answered({"message": "no"}, 403, x_amzn_errortype="AccessDeniedException"),
            "ApplyGuardrail",
            "G1",
            "AccessDeniedException: no",
        ),
    ],
)
def test_what_bedrock_runs_itself_reads_as_a_tool(
    path: str, host: str, body: Any, answer: Any, name: str, place: str, result: Any
) -> None:
    """An agent, a flow, a knowledge base, a guardrail or a runtime, by its operation."""
    use = FORMAT.decode(asked(path, body, f"https://{host}.us-east-1.amazonaws.com"), answer)
    assert isinstance(use, ToolUse)
    assert (use.name, use.place, use.arguments, use.result) == (name, place, body, result)


def test_an_agents_answer_is_its_text() -> None:
    """Its trace, which is longer, is in the answer that `show --raw` prints."""
    request = asked("/agents/A/agentAliases/B/sessions/s/text", {"inputText": "Hi"})
    said = event_stream.event("chunk", b'{"bytes": "SGVsbG8="}')
    use = FORMAT.decode(request, streamed([{"trace": {"agentId": "A"}}], said))
    assert isinstance(use, ToolUse)
    assert (use.result, use.is_error) == ("Hello", False)
    use = FORMAT.decode(request, streamed([], said, BROKEN))
    assert isinstance(use, ToolUse)
    assert use.is_error
