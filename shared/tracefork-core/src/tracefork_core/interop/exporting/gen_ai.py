"""The attributes of model calls and tools in OpenTelemetry's conventions for generative AI.

What was said is content: it is only written where that is asked for. Attributes with structure are
JSON texts, because the attributes of spans are flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tracefork_core.providers.call import (
    Message,
    ModelCall,
    Part,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    ToolDefinition,
    ToolUse,
)
from tracefork_core.providers.lenient import Json, compact

UNKNOWN_REASON = "unknown"
"""The reason that an answer ended, if its provider gives none: embeddings, a stream cut off."""
VALUE = "tracefork.value"
"""The type of a record of a server's tool that is not the object that the conventions ask for."""

_SETTINGS = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "max_tokens",
    "seed",
    "top_k",
    "stop_sequences",
    "encoding_formats",
    "choice.count",
)
_WHOLE = ("top_k", "max_tokens", "seed", "choice.count")
_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read.input_tokens",
    "cache_creation_input_tokens": "cache_creation.input_tokens",
    "reasoning_output_tokens": "reasoning.output_tokens",
}


def of_call(call: ModelCall, *, content: bool) -> dict[str, Json]:
    """Return the attributes of a model call."""
    named: dict[str, Json] = {
        "operation.name": call.operation,
        "provider.name": call.provider or _maker(call.api),
        "request.model": call.request_model,
        "request.stream": call.stream or None,
        "response.model": call.response_model,
        "response.id": call.response_id,
        "response.finish_reasons": list(call.finish_reasons) or None,
        "embeddings.dimension.count": _dimensions(call),
        **{
            f"request.{name}": value
            for name, value in settings(call).items()
            if content or name != "stop_sequences"
        },
        **{f"usage.{name}": count for name, count in _counts(call).items()},
    }
    if content:
        named |= {
            "system_instructions": _json([_part(part) for part in call.system]),
            "input.messages": _json([_message(message) for message in call.input]),
            "output.messages": _json(
                [
                    {**_message(message), "finish_reason": _reason(call, n)}
                    for n, message in enumerate(call.output)
                ]
            ),
            "tool.definitions": _json([_tool(tool) for tool in call.tools]),
        }
    return {f"gen_ai.{name}": value for name, value in named.items() if value is not None}


def of_tool(use: ToolUse, *, content: bool) -> dict[str, Json]:
    """Return the attributes of a call of a tool."""
    named: dict[str, Json] = {"operation.name": "execute_tool", "tool.name": use.name}
    if content:
        named["tool.call.arguments"] = _json(use.arguments)
        named["tool.call.result"] = None if use.result is None else compact(use.result)
    return {f"gen_ai.{name}": value for name, value in named.items() if value is not None}


def _maker(api: str) -> str:
    """Return whose wire format a call has, where its provider is unknown: a proxy, say."""
    maker = api.partition(".")[0]
    return "gcp.gemini" if maker == "gemini" else maker


def _dimensions(call: ModelCall) -> int | None:
    """Return the length of the first vector, if it is on the wire as numbers."""
    parts = call.output[0].parts if call.operation == "embeddings" and call.output else ()
    vector = getattr(parts[0], "content", None) if parts else None
    return len(vector) if isinstance(vector, list) else None


def settings(call: ModelCall) -> dict[str, Json]:
    """Return the settings that the conventions name."""
    known: dict[str, Json] = {}
    for name in _SETTINGS:
        value = call.parameters.get(name)
        if isinstance(value, list):
            value = [each for each in value if isinstance(each, str)]
        elif isinstance(value, bool) or not isinstance(value, int | float):
            continue
        elif name in _WHOLE:
            value = int(value)
        if name != "choice.count" or value != 1:
            known[name] = value
    return known


def _counts(call: ModelCall) -> dict[str, int]:
    if call.usage is None:
        return {}
    counts = {name: getattr(call.usage, field) for field, name in _COUNTS.items()}
    return {name: count for name, count in counts.items() if count is not None}


def _json(value: Json | Sequence[Json]) -> str | None:
    """Return a structure as JSON text; None if it is empty."""
    return compact(value) if value else None


def _reason(call: ModelCall, n: int) -> str:
    """Return why an answer ended; the conventions ask for a word where there is none, too."""
    if n < len(call.finish_reasons):
        return call.finish_reasons[n]
    return "error" if call.error is not None else UNKNOWN_REASON


def _message(message: Message) -> dict[str, Json]:
    written: dict[str, Json] = {
        "role": message.role,
        "parts": [_part(part) for part in message.parts],
    }
    return written | ({"name": message.name} if message.name else {})


def _part(part: Part) -> Json:
    written: dict[str, Any] = msgspec.to_builtins(part)
    if isinstance(part, ServerToolCallPart | ServerToolCallResponsePart):
        record = written[part.type]
        if not (isinstance(record, dict) and isinstance(record.get("type"), str)):
            written[part.type] = {"type": VALUE, "value": record}
    return written


def _tool(tool: ToolDefinition) -> Json:
    written: dict[str, Any] = msgspec.to_builtins(tool)
    return {name: value for name, value in written.items() if value is not None}
