"""An agent that an instrumentation traces: it asks OpenAI and Anthropic for the weather.

    agent.py INSTRUMENTATION SERVER TRACE

writes the spans as OTLP JSON to TRACE.
"""

from __future__ import annotations

import base64
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anthropic
import openai
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

INSTRUMENTATIONS = {
    "genai": "opentelemetry.instrumentation.genai",
    "openinference": "openinference.instrumentation",
    "openllmetry": "opentelemetry.instrumentation",
}
TOOL = {
    "name": "look_up",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def ask_openai(server: str) -> None:
    """Call the tool, answer with its result, then stream an answer and ask the Responses API."""
    client = openai.OpenAI(api_key="none", base_url=f"{server}/v1")
    tools: Any = [{"type": "function", "function": TOOL}]
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather in Oslo?"},
    ]
    first = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=tools)
    said = first.choices[0].message
    assert said.tool_calls
    messages += [
        said.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "sunny"},
    ]
    stream = client.chat.completions.create(
        model="gpt-5-mini", messages=messages, tools=tools, temperature=0.5, stream=True
    )
    for _ in stream:
        pass
    client.responses.create(
        model="gpt-5-mini",
        instructions="Be brief.",
        input=[{"role": "user", "content": "And now?"}],
    )


def ask_anthropic(server: str) -> None:
    """Call the tool, and answer with its result."""
    client = anthropic.Anthropic(api_key="none", base_url=server)
    schema = {key: value for key, value in TOOL.items() if key != "parameters"}
    settings: Any = {
        "model": "claude-5",
        "max_tokens": 99,
        "system": "Be brief.",
        "tools": [{**schema, "input_schema": TOOL["parameters"]}],
    }
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
    said = client.messages.create(messages=messages, **settings)
    call = next(block for block in said.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    messages += [
        {"role": "assistant", "content": [block.model_dump() for block in said.content]},
        {"role": "user", "content": [result]},
    ]
    client.messages.create(messages=messages, **settings)


def with_hex_ids(value: Any) -> Any:
    """Return OTLP JSON as its specification has it, with ids in hexadecimal."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(held).hex() if key.endswith("Id") else with_hex_ids(held)
            for key, held in value.items()
        }
    return [with_hex_ids(each) for each in value] if isinstance(value, list) else value


def main(instrumentation: str, server: str, trace: str) -> None:
    """Run the agent under an instrumentation and write the trace."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    for sdk, name in (("openai", "OpenAIInstrumentor"), ("anthropic", "AnthropicInstrumentor")):
        module = import_module(f"{INSTRUMENTATIONS[instrumentation]}.{sdk}")
        getattr(module, name)().instrument(tracer_provider=provider)
    ask_openai(server)
    ask_anthropic(server)
    document = MessageToDict(encode_spans(spans.get_finished_spans()))
    Path(trace).write_text(json.dumps(with_hex_ids(document)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
