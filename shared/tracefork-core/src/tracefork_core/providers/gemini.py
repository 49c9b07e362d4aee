"""Decode Gemini's content, token counts and embeddings, on its own API and on Vertex AI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    count,
    field,
    items,
    mapping,
    mappings,
    text,
    total,
)
from tracefork_core.providers.parts import failure, from_base64, from_url, parameters, vector
from tracefork_core.providers.remembered import remembered
from tracefork_core.providers.wire import Wire

_COLLECTIONS = ("models", "tunedModels", "endpoints")
_SHOWN = (
    "model",
    "contents",
    "content",
    "requests",
    "tools",
    "systemInstruction",
    "system_instruction",
    "generationConfig",
    "generation_config",
)


def decode_generate_content(wire: Wire, provider: str | None) -> ModelCall:
    """Read a generation: whole, or streamed as events or as a JSON array."""
    body = fold(wire.chunks) if wire.chunks else wire.body
    candidates = mappings(body.get("candidates"))
    usage = mapping(field(body, "usageMetadata", "usage_metadata"))
    tier = text(usage.get("serviceTier"))
    return ModelCall(
        operation="generate_content",
        api="gemini",
        provider=provider,
        request_model=wire.after(*_COLLECTIONS),
        response_model=text(body.get("modelVersion")),
        response_id=text(body.get("responseId")),
        stream=wire.streamed or wire.path.endswith(":streamGenerateContent"),
        system=_system(wire.request),
        input=_contents(wire.request.get("contents")),
        output=tuple(_message(mapping(c.get("content")), "assistant") for c in candidates),
        tools=tuple(_tools(wire.request.get("tools"))),
        parameters=_parameters(wire.request),
        usage=_usage(usage),
        finish_reasons=tuple(_finish_reasons(body, candidates)),
        service_tier=tier.lower() if tier else None,
        error=failure(wire.status, body),
    )


def decode_count_tokens(wire: Wire, provider: str | None) -> ModelCall:
    """Read a request that counts the tokens of a generation."""
    request = mapping(wire.request.get("generateContentRequest")) or wire.request
    counted = count(wire.body.get("totalTokens"))
    return ModelCall(
        operation="count_tokens",
        api="gemini",
        provider=provider,
        request_model=wire.after(*_COLLECTIONS),
        system=_system(request),
        input=_contents(request.get("contents")),
        tools=tuple(_tools(request.get("tools"))),
        parameters=_parameters(request),
        usage=None if counted is None else Usage(input_tokens=counted, reported=wire.body),
        error=failure(wire.status, wire.body),
    )


def decode_embed_content(wire: Wire, provider: str | None) -> ModelCall:
    """Read a request for embeddings, single or batched."""
    requests = mappings(wire.request.get("requests")) or [wire.request]
    contents = [mapping(entry.get("content")) for entry in requests if entry.get("content")]
    embeddings = mappings(wire.body.get("embeddings")) or mappings([wire.body.get("embedding")])
    return ModelCall(
        operation="embeddings",
        api="gemini",
        provider=provider,
        request_model=wire.after(*_COLLECTIONS),
        input=tuple(_message(content, "user") for content in contents),
        output=tuple(vector(embedding.get("values")) for embedding in embeddings),
        parameters=_parameters(wire.request),
        usage=_usage(mapping(field(wire.body, "usageMetadata", "usage_metadata"))),
        error=failure(wire.status, wire.body),
    )


def _parameters(request: dict[str, Json]) -> dict[str, Json]:
    settings = mapping(field(request, "generationConfig", "generation_config"))
    return parameters(request, _SHOWN) | parameters(settings, ())


def _system(request: dict[str, Json]) -> tuple[Part, ...]:
    return _parts(mapping(field(request, "systemInstruction", "system_instruction")))


def _contents(value: Json) -> tuple[Message, ...]:
    return tuple(_content(content) for content in mappings(value))


@remembered
def _content(content: dict[str, Json]) -> Message:
    return _message(content, "user")


def _message(content: dict[str, Json], default: str) -> Message:
    role = text(content.get("role")) or default
    parts = _parts(content)
    if default == "assistant":
        parts = join_fragments(parts)
    return Message("assistant" if role == "model" else role, parts)


def _parts(content: dict[str, Json]) -> tuple[Part, ...]:
    return tuple(_part(part) for part in mappings(content.get("parts")))


def _part(part: dict[str, Json]) -> Part:
    written = part.get("text")
    if isinstance(written, str):
        return ReasoningPart(written) if part.get("thought") is True else TextPart(written)
    if call := mapping(field(part, "functionCall", "function_call")):
        return ToolCallPart(text(call.get("id")), text(call.get("name")) or "", call.get("args"))
    if answer := mapping(field(part, "functionResponse", "function_response")):
        return ToolCallResponsePart(text(field(answer, "id", "name")), answer.get("response"))
    return _attachment(part) or _server_part(part)


def _attachment(part: dict[str, Json]) -> Part | None:
    source = mapping(field(part, "inlineData", "inline_data", "fileData", "file_data"))
    mime_type = text(field(source, "mimeType", "mime_type"))
    if data := text(source.get("data")):
        return from_base64(data, "document", mime_type)
    if uri := text(field(source, "fileUri", "file_uri")):
        return from_url(uri, "document", mime_type)
    return None


def _server_part(part: dict[str, Json]) -> Part:
    if code := mapping(field(part, "executableCode", "executable_code")):
        return ServerToolCallPart(text(code.get("id")), "code_execution", code)
    if result := mapping(field(part, "codeExecutionResult", "code_execution_result")):
        return ServerToolCallResponsePart(text(result.get("id")), result)
    if call := mapping(part.get("toolCall")):
        return ServerToolCallPart(text(call.get("id")), text(call.get("toolType")) or "", call)
    if answer := mapping(part.get("toolResponse")):
        return ServerToolCallResponsePart(text(answer.get("id")), answer)
    return GenericPart(next(iter(part), "unknown"), part)


def _tools(value: Json) -> Iterator[ToolDefinition]:
    for tool in mappings(value):
        for kind, settings in tool.items():
            if kind not in ("functionDeclarations", "function_declarations"):
                yield ToolDefinition(kind, kind, None, settings)
                continue
            for body in mappings(settings):
                schema = field(body, "parameters", "parametersJsonSchema", "parameters_json_schema")
                name = text(body.get("name")) or ""
                yield ToolDefinition("function", name, text(body.get("description")), schema)


def _finish_reasons(body: dict[str, Json], candidates: list[dict[str, Json]]) -> Iterator[str]:
    # A refused prompt has no candidates, so its reason is in `promptFeedback`.
    refused = mapping(body.get("promptFeedback")).get("blockReason")
    for reason in (*(candidate.get("finishReason") for candidate in candidates), refused):
        if named := text(reason):
            yield named


def _usage(usage: dict[str, Json]) -> Usage | None:
    if not usage:
        return None
    thoughts = count(usage.get("thoughtsTokenCount"))
    prompt, tools = usage.get("promptTokenCount"), usage.get("toolUsePromptTokenCount")
    return Usage(
        input_tokens=total(count(prompt), count(tools)),
        # Gemini's count of candidate tokens leaves out thoughts.
        output_tokens=total(count(usage.get("candidatesTokenCount")), thoughts),
        cache_read_input_tokens=count(usage.get("cachedContentTokenCount")),
        reasoning_output_tokens=thoughts,
        reported=usage,
    )


def fold(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Fold the chunks of a stream into the document of the whole answer."""
    body: dict[str, Json] = {}
    usage: dict[str, Json] = {}
    parts: dict[int, list[Json]] = {}
    reasons: dict[int, Json] = {}
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if value is not None}
        usage |= mapping(field(chunk, "usageMetadata", "usage_metadata"))
        for candidate in mappings(chunk.get("candidates")):
            index = count(candidate.get("index")) or 0
            content = mapping(candidate.get("content"))
            parts.setdefault(index, []).extend(items(content.get("parts")))
            reasons[index] = candidate.get("finishReason") or reasons.get(index)
    candidates: list[Json] = [
        {"content": {"role": "model", "parts": parts[index]}, "finishReason": reasons[index]}
        for index in sorted(parts)
    ]
    return body | {"candidates": candidates, "usageMetadata": usage}
