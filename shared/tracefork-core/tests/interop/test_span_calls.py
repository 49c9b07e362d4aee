"""What a span says is read, in whichever convention it says it."""

from __future__ import annotations

import json

import pytest

from tracefork_core.interop.importing.otlp import read_otlp
from tracefork_core.interop.importing.span_calls import call_of, step_of
from tracefork_core.interop.span import Span, SpanEvent
from tracefork_core.providers.call import (
    Message,
    ModelCall,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolUse,
)
from tracefork_core.providers.lenient import Json

ASKED = (
    Message("user", (TextPart("Weather in Oslo?"),)),
    Message("assistant", (ToolCallPart("c1", "look_up", {"city": "Oslo"}),)),
    Message("tool", (ToolCallResponsePart("c1", "sunny"),)),
)
ANSWERED = (Message("assistant", (ReasoningPart("Easy."), TextPart("Sunny."))),)

TODAY: dict[str, Json] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": [
        {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]},
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "tool_call",
                    "id": ["run_1", "c1"],
                    "name": "look_up",
                    "arguments": {"city": "Oslo"},
                }
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": "sunny"}],
        },
    ],
    "gen_ai.output.messages": [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Easy."},
                {"type": "text", "content": "Sunny."},
            ],
            "finish_reason": "stop",
        }
    ],
}
OPENINFERENCE: dict[str, Json] = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Weather in Oslo?",
    "llm.input_messages.1.message.role": "assistant",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "look_up",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city":"Oslo"}',
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.tool_call_id": "c1",
    "llm.input_messages.2.message.content": "sunny",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
    "llm.output_messages.0.message.contents.0.message_content.text": "Easy.",
    "llm.output_messages.0.message.contents.1.message_content.type": "text",
    "llm.output_messages.0.message.contents.1.message_content.text": "Sunny.",
}
OPENLLMETRY: dict[str, Json] = {
    "llm.request.type": "chat",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Weather in Oslo?",
    "gen_ai.prompt.1.role": "assistant",
    "gen_ai.prompt.1.tool_calls.0.id": "c1",
    "gen_ai.prompt.1.tool_calls.0.name": "look_up",
    "gen_ai.prompt.1.tool_calls.0.arguments": '{"city":"Oslo"}',
    "gen_ai.prompt.2.role": "tool",
    "gen_ai.prompt.2.tool_call_id": "c1",
    "gen_ai.prompt.2.content": "sunny",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.reasoning": "Easy.",
    "gen_ai.completion.0.content": "Sunny.",
}
AI_SDK: dict[str, Json] = {
    "ai.operationId": "ai.generateText.doGenerate",
    "ai.prompt.messages": json.dumps(
        [
            {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool-call",
                        "toolCallId": "c1",
                        "toolName": "look_up",
                        "input": {"city": "Oslo"},
                    }
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "look_up",
                        "output": {"type": "text", "value": "sunny"},
                    }
                ],
            },
        ]
    ),
    "ai.response.reasoning": "Easy.",
    "ai.response.text": "Sunny.",
}


def read(attributes: dict[str, Json], events: tuple[SpanEvent, ...] = ()) -> ModelCall:
    """Return the model call that a span with these attributes is."""
    call = call_of(Span("1", "a span", attributes=attributes, events=list(events)))
    assert isinstance(call, ModelCall)
    return call


def as_texts(attributes: dict[str, Json]) -> dict[str, Json]:
    """Return attributes whose structures are JSON texts, as OTLP without structures has them."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in attributes.items()
    }


@pytest.mark.parametrize(
    "attributes",
    [TODAY, as_texts(TODAY), OPENINFERENCE, OPENLLMETRY, AI_SDK],
    ids=["today", "today as texts", "OpenInference", "OpenLLMetry", "AI SDK"],
)
def test_each_convention_gives_the_same_messages(attributes: dict[str, Json]) -> None:
    """Text, reasoning, a tool call and its result, with the call's id."""
    call = read(attributes)
    assert call.input == ASKED
    assert call.output == ANSWERED


def test_a_tool_call_among_the_contents_is_read_once() -> None:
    """OpenInference's Anthropic has it among the contents and beside them."""
    start = "llm.output_messages.0.message"
    call = read(
        {
            "openinference.span.kind": "LLM",
            f"{start}.role": "assistant",
            f"{start}.contents.0.message_content.type": "tool_use",
            f"{start}.contents.0.tool_call.id": "c1",
            f"{start}.contents.0.tool_call.function.name": "look_up",
            f"{start}.contents.0.tool_call.function.arguments": '{"city":"Oslo"}',
            f"{start}.tool_calls.0.tool_call.id": "c1",
            f"{start}.tool_calls.0.tool_call.function.name": "look_up",
            f"{start}.tool_calls.0.tool_call.function.arguments": '{"city":"Oslo"}',
        }
    )
    expected = ToolCallPart("c1", "look_up", {"city": "Oslo"})
    assert call.output == (Message("assistant", (expected,)),)


def test_messages_that_are_events_are_read() -> None:
    """So it was before 1.37 of the conventions."""
    call = read(
        {"gen_ai.operation.name": "chat"},
        (
            SpanEvent("gen_ai.user.message", {"content": "Weather in Oslo?"}),
            SpanEvent(
                "gen_ai.assistant.message",
                {
                    "tool_calls": [
                        {
                            "id": "c1",
                            "function": {"name": "look_up", "arguments": '{"city":"Oslo"}'},
                        }
                    ]
                },
            ),
            SpanEvent("gen_ai.tool.message", {"id": "c1", "content": "sunny"}),
            SpanEvent(
                "gen_ai.choice",
                {"index": 0, "message": '{"role":"assistant","content":"Sunny."}'},
            ),
        ),
    )
    assert call.input == ASKED
    assert call.output == (Message("assistant", (TextPart("Sunny."),)),)


def test_events_that_are_logged_belong_to_their_span() -> None:
    """OTLP has them apart, with the id of the span."""
    logged: dict[str, Json] = {
        "eventName": "gen_ai.user.message",
        "spanId": "00000000000000aa",
        "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi"}}]}},
    }
    other: Json = {**logged, "spanId": "00000000000000bb"}
    attributes: Json = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    span: Json = {"spanId": "00000000000000aa", "name": "chat", "attributes": attributes}
    (found,) = read_otlp(
        [
            {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
            {"resourceLogs": [{"scopeLogs": [{"logRecords": [logged, other]}]}]},
        ]
    )
    call = call_of(found)
    assert isinstance(call, ModelCall)
    assert call.input == (Message("user", (TextPart("Hi"),)),)


def test_an_answer_that_is_json_stays_a_text() -> None:
    """A structured output has no shape of a message."""
    answer = '{"steps":["one","two"]}'
    call = read({"gen_ai.operation.name": "chat", "gen_ai.output": answer})
    assert call.output == (Message("assistant", (TextPart(answer),)),)


def test_the_settings_and_counts_have_their_names_of_today() -> None:
    """Older names for the same."""
    call = read(
        {
            "openinference.span.kind": "LLM",
            "llm.system": "vertexai",
            "llm.model_name": "gemini-3",
            "llm.invocation_parameters": '{"temperature":0.5,"maxOutputTokens":9}',
            "llm.token_count.prompt": 5,
            "llm.token_count.completion": 7,
            "llm.token_count.prompt_details.cache_read": 3,
            "llm.tools.0.tool.json_schema": (
                '{"type":"function","function":{"name":"look_up","parameters":{"type":"object"}}}'
            ),
        }
    )
    assert (call.provider, call.request_model) == ("gcp.vertex_ai", "gemini-3")
    assert call.parameters == {"temperature": 0.5, "max_tokens": 9}
    assert [(tool.name, tool.parameters) for tool in call.tools] == [
        ("look_up", {"type": "object"})
    ]
    usage = call.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (5, 7)
    assert usage.cache_read_input_tokens == 3


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look_up",
            "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
            "gen_ai.tool.call.result": "sunny",
        },
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "look_up",
            "input.value": '{"city":"Oslo"}',
            "output.value": "sunny",
        },
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "look_up",
            "ai.toolCall.args": '{"city":"Oslo"}',
            "ai.toolCall.result": '"sunny"',
        },
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "look_up",
            "traceloop.entity.input": '{"input_str":"{\\"city\\":\\"Oslo\\"}"}',
            "traceloop.entity.output": "sunny",
        },
    ],
    ids=["GenAI", "OpenInference", "AI SDK", "OpenLLMetry"],
)
def test_each_convention_gives_the_same_tool(attributes: dict[str, Json]) -> None:
    """Its name, arguments and result."""
    use = call_of(Span("1", "a span", attributes=attributes))
    assert use == ToolUse("look_up", {"city": "Oslo"}, result="sunny")


def test_an_agent_is_a_step_with_its_name() -> None:
    """No exchange: what it asks has spans of its own."""
    span = Span(
        "1",
        "invoke_agent desk",
        "0",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
    )
    assert call_of(span) is None
    assert step_of(span) == ("agent", "desk")


def test_values_of_any_type_are_read_without_an_error() -> None:
    """Attributes of a hostile trace."""
    odd: list[Json] = [None, 1, [], {}, [[[]]], [1, "a", None], {"role": 3}, "[{", "{}", True]
    for value in odd:
        span = Span("1", "chat", attributes=dict.fromkeys([*TODAY, *AI_SDK, "events"], value))
        span.attributes["gen_ai.operation.name"] = "chat"
        assert isinstance(call_of(span), ModelCall)
