"""Decode Anthropic's messages and token counts, on its own API and on Vertex AI."""

from __future__ import annotations

from collections.abc import Iterable

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
    ToolDefinition,
    Usage,
    join_fragments,
)
from tracefork_core.providers.lenient import (
    Json,
    arguments,
    count,
    field,
    items,
    mapping,
    mappings,
    text,
    total,
)
from tracefork_core.providers.parts import (
    failure,
    from_base64,
    from_file,
    from_url,
    parameters,
    tool_answer,
)
from tracefork_core.providers.remembered import remembered
from tracefork_core.providers.wire import Wire

_SHOWN = ("model", "messages", "system", "tools", "stream")
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "input",
}


def decode_messages(wire: Wire, provider: str | None) -> ModelCall:
    """Read a message, whole or streamed."""
    body = fold(wire.chunks) if wire.chunks else wire.body
    content = join_fragments(_parts(body.get("content")))
    reason = text(body.get("stop_reason"))
    return ModelCall(
        operation="chat",
        api="anthropic.messages",
        provider=provider,
        request_model=_model(wire),
        response_model=text(body.get("model")),
        response_id=text(body.get("id")),
        stream=wire.streamed,
        system=_parts(wire.request.get("system")),
        input=_input(wire),
        output=(Message(text(body.get("role")) or "assistant", content),) if content else (),
        tools=_tools(wire),
        parameters=parameters(wire.request, _SHOWN),
        usage=_usage(body.get("usage")),
        finish_reasons=(reason,) if reason else (),
        service_tier=text(mapping(body.get("usage")).get("service_tier")),
        error=failure(wire.status, body),
    )


def decode_count_tokens(wire: Wire, provider: str | None) -> ModelCall:
    """Read a request that counts the tokens of a message."""
    counted = count(wire.body.get("input_tokens"))
    return ModelCall(
        operation="count_tokens",
        api="anthropic.messages",
        provider=provider,
        request_model=_model(wire),
        system=_parts(wire.request.get("system")),
        input=_input(wire),
        tools=_tools(wire),
        parameters=parameters(wire.request, _SHOWN),
        usage=None if counted is None else Usage(input_tokens=counted, reported=wire.body),
        error=failure(wire.status, wire.body),
    )


def _model(wire: Wire) -> str | None:
    return text(wire.request.get("model")) or wire.after("models")


def _input(wire: Wire) -> tuple[Message, ...]:
    return tuple(_message(message) for message in mappings(wire.request.get("messages")))


@remembered
def _message(message: dict[str, Json]) -> Message:
    return Message(text(message.get("role")) or "user", _parts(message.get("content")))


def _tools(wire: Wire) -> tuple[ToolDefinition, ...]:
    return tuple(_tool(tool) for tool in mappings(wire.request.get("tools")))


def _tool(tool: dict[str, Json]) -> ToolDefinition:
    kind = text(tool.get("type")) or "custom"
    return ToolDefinition(
        type="function" if kind == "custom" else kind,
        name=text(tool.get("name")) or kind,
        description=text(tool.get("description")),
        parameters=tool.get("input_schema"),
    )


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    read = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    output_details = mapping(usage.get("output_tokens_details"))
    return Usage(
        # Anthropic's input_tokens leave out tokens read from and written to the cache.
        input_tokens=total(count(usage.get("input_tokens")), read, written),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_input_tokens=read,
        cache_creation_input_tokens=written,
        reasoning_output_tokens=count(output_details.get("thinking_tokens")),
        reported=usage,
    )


def _parts(content: Json) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(_part(block) for block in mappings(items(content)))


def _part(block: dict[str, Json]) -> Part:
    kind = text(block.get("type")) or "unknown"
    name = text(block.get("name")) or ""
    if kind == "text":
        return TextPart(text(block.get("text")) or "")
    if kind in ("thinking", "redacted_thinking"):
        return ReasoningPart(text(block.get("thinking")) or "")
    if kind == "tool_use":
        return ToolCallPart(text(block.get("id")), name, arguments(block.get("input")))
    if kind == "tool_result":
        answer = tool_answer(block.get("content"))
        return ToolCallResponsePart(text(block.get("tool_use_id")), answer)
    if kind.endswith("_tool_use"):
        return ServerToolCallPart(text(block.get("id")), name, block)
    if kind.endswith("_tool_result"):
        return ServerToolCallResponsePart(text(block.get("tool_use_id")), block)
    return _attachment(kind, block) or GenericPart(kind, block)


def _attachment(kind: str, block: dict[str, Json]) -> Part | None:
    source = mapping(block.get("source"))
    modality = "image" if kind == "image" else "document"
    mime_type = text(source.get("media_type"))
    if file_id := text(field(source, "file_id") or block.get("file_id")):
        return from_file(file_id, modality, mime_type)
    if url := text(source.get("url")):
        return from_url(url, modality, mime_type)
    if source.get("type") == "base64" and (data := text(source.get("data"))):
        return from_base64(data, modality, mime_type)
    return None


def fold(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Fold the events of a stream into the document of the whole answer."""
    body: dict[str, Json] = {}
    usage: dict[str, Json] = {}
    blocks: dict[int, _Block] = {}
    for chunk in chunks:
        kind = chunk.get("type")
        if kind == "message_start":
            body = dict(mapping(chunk.get("message")))
            usage |= mapping(body.get("usage"))
        elif kind == "message_delta":
            body |= mapping(chunk.get("delta"))
            # The counts are cumulative; a count that the delta leaves out keeps its value.
            reported = mapping(chunk.get("usage"))
            usage |= {key: value for key, value in reported.items() if value is not None}
        elif kind == "error":
            body["error"] = chunk.get("error")
        elif (index := count(chunk.get("index"))) is not None:
            blocks.setdefault(index, _Block()).add(chunk)
    body["usage"] = usage or None
    body["content"] = [blocks[index].whole() for index in sorted(blocks)]
    return body


class _Block:
    """Collect the deltas of one content block."""

    def __init__(self) -> None:
        self._block: dict[str, Json] = {}
        self._pieces: dict[str, list[str]] = {}

    def add(self, chunk: dict[str, Json]) -> None:
        self._block = mapping(chunk.get("content_block")) or self._block
        delta = mapping(chunk.get("delta"))
        name = _DELTAS.get(text(delta.get("type")) or "")
        piece = field(delta, "text", "thinking", "signature", "partial_json")
        if name and isinstance(piece, str):
            self._pieces.setdefault(name, []).append(piece)

    def whole(self) -> Json:
        written: dict[str, Json] = {}
        for name, pieces in self._pieces.items():
            start = self._block.get(name)
            joined = "".join([start if isinstance(start, str) else "", *pieces])
            written[name] = arguments(joined) if name == "input" else joined
        if not self._block and "text" in written:
            written["type"] = "text"
        return {**self._block, **{k: v for k, v in written.items() if v != ""}}
