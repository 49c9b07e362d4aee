"""A model call of which only the meaning is known: read from a trace or a log, not from the wire.

The trace has messages, settings and counts, and no bodies. On a tape such a call is
an exchange in a format of this project: `POST trace://PROVIDER/OPERATION`, with the fields of
`ModelCall` as JSON, those of the question as the request and those of the answer as the response.
So `show`, `diff` and `report` read it like any other model call, and it cannot pass for bytes
that a provider sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from tracefork_core.providers.call import (
    BlobPart,
    FilePart,
    GenericPart,
    Message,
    ModelCall,
    ModelError,
    Part,
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
from tracefork_core.providers.lenient import Json, count, items, mapping, mappings, text
from tracefork_core.providers.wire import Wire

SCHEME = "trace"

_ASKED = ("operation", "api", "provider", "request_model", "stream", "system", "input", "tools")
_ANSWERED = ("response_model", "response_id", "output", "usage", "finish_reasons", "service_tier")
_COUNTS = tuple(name for name in Usage.__dataclass_fields__ if name != "reported")


def url_of(call: ModelCall) -> str:
    """Return `trace://openai/chat`."""
    return f"{SCHEME}://{quote(call.provider or 'unknown')}/{quote(call.operation)}"


def encode(call: ModelCall) -> tuple[bytes, bytes]:
    """Return the bodies of the request and of the response that `decode` reads as this call."""
    fields: dict[str, Any] = msgspec.to_builtins(call)
    asked = {name: fields[name] for name in (*_ASKED, "parameters") if fields[name]}
    answered = {name: fields[name] for name in (*_ANSWERED, "error") if fields[name]}
    return msgspec.json.encode(asked), msgspec.json.encode(answered)


def decode(wire: Wire) -> ModelCall:
    """Read an exchange whose URL has this scheme."""
    asked, answered = wire.request, wire.body
    return ModelCall(
        operation=text(asked.get("operation")) or "chat",
        api=text(asked.get("api")) or SCHEME,
        provider=text(asked.get("provider")),
        request_model=text(asked.get("request_model")),
        response_model=text(answered.get("response_model")),
        response_id=text(answered.get("response_id")),
        stream=asked.get("stream") is True,
        system=_parts(asked.get("system")),
        input=_messages(asked.get("input")),
        output=_messages(answered.get("output")),
        tools=tuple(_tool(tool) for tool in mappings(asked.get("tools"))),
        parameters=mapping(asked.get("parameters")),
        usage=_usage(answered.get("usage")),
        finish_reasons=tuple(
            reason for reason in items(answered.get("finish_reasons")) if isinstance(reason, str)
        ),
        service_tier=text(answered.get("service_tier")),
        error=_error(answered.get("error")),
    )


def _messages(value: Json) -> tuple[Message, ...]:
    return tuple(
        Message(
            text(message.get("role")) or "user",
            _parts(message.get("parts")),
            text(message.get("name")),
        )
        for message in mappings(value)
    )


def _parts(value: Json) -> tuple[Part, ...]:
    return tuple(part_of(part) for part in mappings(value))


def _string(part: Mapping[str, Json], name: str) -> str:
    return text(part.get(name)) or ""


_PARTS: dict[str, Callable[[dict[str, Json]], Part]] = {
    "text": lambda part: TextPart(_string(part, "content")),
    "reasoning": lambda part: ReasoningPart(_string(part, "content")),
    "tool_call": lambda part: ToolCallPart(
        text(part.get("id")), _string(part, "name"), part.get("arguments")
    ),
    "tool_call_response": lambda part: ToolCallResponsePart(
        text(part.get("id")), part.get("response")
    ),
    "server_tool_call": lambda part: ServerToolCallPart(
        text(part.get("id")), _string(part, "name"), part.get("server_tool_call")
    ),
    "server_tool_call_response": lambda part: ServerToolCallResponsePart(
        text(part.get("id")), part.get("server_tool_call_response")
    ),
    "blob": lambda part: BlobPart(
        text(part.get("modality")) or "document",
        text(part.get("mime_type")),
        _string(part, "content"),
    ),
    "uri": lambda part: UriPart(
        text(part.get("modality")) or "document", text(part.get("mime_type")), _string(part, "uri")
    ),
    "file": lambda part: FilePart(
        text(part.get("modality")) or "document",
        text(part.get("mime_type")),
        _string(part, "file_id"),
    ),
}


def part_of(part: dict[str, Json]) -> Part:
    """Read a part with the names of the GenAI conventions; one of another type is generic."""
    kind = text(part.get("type")) or "unknown"
    if read := _PARTS.get(kind):
        return read(part)
    return GenericPart(kind, part["content"] if part.keys() == {"type", "content"} else part)


def _tool(tool: Mapping[str, Json]) -> ToolDefinition:
    return ToolDefinition(
        text(tool.get("type")) or "function",
        _string(tool, "name"),
        text(tool.get("description")),
        tool.get("parameters"),
    )


def _usage(value: Json) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        **{name: count(value.get(name)) for name in _COUNTS}, reported=value.get("reported")
    )


def _error(value: Json) -> ModelError | None:
    if not isinstance(value, dict):
        return None
    return ModelError(text(value.get("type")) or "error", text(value.get("message")))
