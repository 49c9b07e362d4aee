"""Decode OpenAI's Responses API, as OpenAI, Azure and compatible servers use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracefork_core.providers.call import (
    GenericPart,
    Message,
    ModelCall,
    Part,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    Usage,
)
from tracefork_core.providers.lenient import Json, arguments, count, field, mapping, mappings, text
from tracefork_core.providers.parts import (
    content_parts,
    failure,
    joined_text,
    parameters,
    tool_answer,
    tool_definitions,
)
from tracefork_core.providers.remembered import remembered
from tracefork_core.providers.wire import Wire

_SHOWN = ("model", "input", "instructions", "tools", "stream", "type")
"""Fields that have a place of their own; `type` is that of a frame on a websocket."""
_FINAL = ("completed", "failed", "cancelled")
_CALLER_RUNS = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
)
_BLOCK_DELTAS = {
    "response.output_text.delta": ("content", "output_text", "text"),
    "response.refusal.delta": ("content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "text"),
}
_FIELD_DELTAS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}


def decode_responses(wire: Wire, provider: str | None) -> ModelCall:
    """Read a response, whole or streamed; all its output items become one message."""
    body = fold(wire.chunks) if wire.chunks else wire.body
    output = tuple(part for item in mappings(body.get("output")) for part in _parts(item))
    return ModelCall(
        operation="chat",
        api="openai.responses",
        provider=provider,
        request_model=wire.request_model,
        response_model=text(body.get("model")),
        response_id=text(body.get("id")),
        stream=wire.streamed,
        system=content_parts(wire.request.get("instructions")),
        input=_input(wire.request.get("input")),
        output=(Message("assistant", output),) if output else (),
        tools=tool_definitions(wire.request.get("tools")),
        parameters=parameters(wire.request, _SHOWN),
        usage=_usage(body.get("usage")),
        finish_reasons=_finish_reasons(body),
        service_tier=text(body.get("service_tier")),
        error=failure(wire.status, body),
    )


def decode_compaction(wire: Wire, provider: str | None) -> ModelCall:
    """Read a request to shorten a conversation; the answer is the shorter one."""
    return replace(decode_responses(wire, provider), operation="compact")


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    read = mapping(usage.get("input_tokens_details"))
    written = mapping(usage.get("output_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_input_tokens=count(read.get("cached_tokens")),
        cache_creation_input_tokens=count(read.get("cache_write_tokens")),
        reasoning_output_tokens=count(written.get("reasoning_tokens")),
        reported=usage,
    )


def _finish_reasons(body: dict[str, Json]) -> tuple[str, ...]:
    status = text(body.get("status"))
    if status == "incomplete":
        return (text(mapping(body.get("incomplete_details")).get("reason")) or status,)
    return (status,) if status in _FINAL else ()


def _input(value: Json) -> tuple[Message, ...]:
    if isinstance(value, str):
        return (Message("user", (TextPart(value),)),)
    return tuple(_message(item) for item in mappings(value))


@remembered
def _message(item: dict[str, Json]) -> Message:
    kind = text(item.get("type")) or "message"
    default = "tool" if kind.endswith("_output") else "assistant"
    return Message(text(item.get("role")) or default, _parts(item))


def _parts(item: dict[str, Json]) -> tuple[Part, ...]:
    kind = text(item.get("type")) or "message"
    call = text(field(item, "call_id", "id"))
    if kind == "message":
        return content_parts(item.get("content"))
    if kind == "reasoning":
        return (ReasoningPart(_reasoning(item)),)
    on_server = item.get("execution") == "server"
    if kind.endswith("_output"):
        if on_server:
            return (ServerToolCallResponsePart(call, item),)
        return (ToolCallResponsePart(call, tool_answer(field(item, "output", "tools"))),)
    if kind in _CALLER_RUNS or item.get("execution") == "client":
        name = text(item.get("name")) or kind.removesuffix("_call")
        written = arguments(field(item, "arguments", "input", "action", "operation"))
        return (ToolCallPart(call, name, written),)
    if kind.endswith("_call"):
        name = text(item.get("name")) or kind.removesuffix("_call")
        return (ServerToolCallPart(call, name, item),)
    return (GenericPart(kind, item),)


def _reasoning(item: dict[str, Json]) -> str:
    # Open models return their thinking; OpenAI's own models return only summaries of it.
    summaries = (joined_text([block]) for block in mappings(item.get("summary")))
    return joined_text(item.get("content")) or "\n".join(summaries)


def fold(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Fold the events of a stream into the document of the whole answer."""
    body: dict[str, Json] = {}
    items: dict[int, _Item] = {}
    for chunk in chunks:
        kind = text(chunk.get("type")) or ""
        body = mapping(chunk.get("response")) or body
        if kind == "error":
            stated = mapping(chunk.get("error"))
            body = body | {"error": stated or {k: chunk.get(k) for k in ("code", "message")}}
        index = count(chunk.get("output_index"))
        if index is not None:
            items.setdefault(index, _Item()).add(kind, chunk)
    if not body.get("output"):
        body = body | {"output": [items[index].whole() for index in sorted(items)]}
    return body


class _Item:
    """Collect the deltas of an output item, for a stream that ends before its final event."""

    def __init__(self) -> None:
        self._item: dict[str, Json] = {}
        self._blocks: dict[tuple[str, int], list[str]] = {}
        self._fields: dict[str, list[str]] = {}

    def add(self, kind: str, chunk: dict[str, Json]) -> None:
        delta = text(chunk.get("delta"))
        if item := mapping(chunk.get("item")):
            self._item = item
            if kind == "response.output_item.done":
                self._blocks, self._fields = {}, {}
        elif delta and kind in _BLOCK_DELTAS:
            position = count(field(chunk, "content_index", "summary_index")) or 0
            self._blocks.setdefault((kind, position), []).append(delta)
        elif delta and kind in _FIELD_DELTAS:
            self._fields.setdefault(_FIELD_DELTAS[kind], []).append(delta)

    def whole(self) -> Json:
        item = self._item | {name: "".join(pieces) for name, pieces in self._fields.items()}
        blocks: dict[str, list[Json]] = {}
        for kind, position in sorted(self._blocks, key=lambda key: key[1]):
            name, block_type, text_name = _BLOCK_DELTAS[kind]
            written = "".join(self._blocks[kind, position])
            blocks.setdefault(name, []).append({"type": block_type, text_name: written})
        return {**item, **blocks}
