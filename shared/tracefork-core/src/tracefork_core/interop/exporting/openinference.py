"""The attributes of model calls, tools and steps in OpenInference's conventions.

Lists are flat: `llm.input_messages.0.message.role`. What was said is content: it is only written
where that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracefork_core.interop.exporting import gen_ai
from tracefork_core.providers.call import (
    BlobPart,
    Message,
    ModelCall,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolUse,
    UriPart,
)
from tracefork_core.providers.lenient import Json, compact

KIND = "openinference.span.kind"

_STEP_KINDS = {
    "agent": "AGENT",
    "crew": "AGENT",
    "evaluator": "EVALUATOR",
    "guardrail": "GUARDRAIL",
    "knowledge": "RETRIEVER",
    "retrieval": "RETRIEVER",
    "retriever": "RETRIEVER",
    "tool": "TOOL",
}
_PROVIDERS = {
    "azure.ai.openai": "azure",
    "aws.bedrock": "aws",
    "gcp.gemini": "google",
    "gcp.vertex_ai": "google",
    "mistral_ai": "mistralai",
    "x_ai": "xai",
    "moonshot_ai": "moonshot",
}
"""Providers that OpenInference names differently than OpenTelemetry."""
_JSON = "application/json"


def of_step(kind: str, name: str) -> dict[str, Json]:
    """Return the attributes of a step."""
    written: dict[str, Json] = {KIND: _STEP_KINDS.get(kind, "CHAIN")}
    if written[KIND] == "AGENT":
        written["agent.name"] = name
    elif kind == "tool":
        written["tool.name"] = name
    elif kind == "node":
        written["graph.node.id"] = name
    return written


def of_call(call: ModelCall, *, content: bool) -> dict[str, Json]:
    """Return the attributes of a model call."""
    is_embedding = call.operation == "embeddings"
    provider = _PROVIDERS.get(call.provider or "", call.provider)
    named: dict[str, Json] = {
        KIND: "EMBEDDING" if is_embedding else "LLM",
        "embedding.model_name" if is_embedding else "llm.model_name": (
            call.response_model or call.request_model
        ),
        "llm.request.model_name": call.request_model,
        "llm.response.model_name": call.response_model,
        "llm.provider": provider,
        "llm.invocation_parameters": _parameters(call, content=content),
        "llm.finish_reason": next(iter(call.finish_reasons), None),
        **_counts(call),
    }
    if content and is_embedding:
        named |= dict(_embeddings(call)) | _values(_said(call.input), "")
    elif content:
        system = (Message("system", call.system),) if call.system else ()
        named |= dict(_messages("llm.input_messages", (*system, *call.input)))
        named |= dict(_messages("llm.output_messages", call.output))
        for n, tool in enumerate(call.tools):
            schema: Json = {
                "type": tool.type,
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            named[f"llm.tools.{n}.tool.json_schema"] = compact(schema)
        named |= _values(_said(call.input[-1:]), _said(call.output))
    return {name: value for name, value in named.items() if value is not None}


def _parameters(call: ModelCall, *, content: bool) -> str | None:
    """Return the settings; without content those that are numbers, since others may say a lot."""
    named = call.parameters if content else gen_ai.settings(call)
    written = {
        name: value for name, value in named.items() if content or isinstance(value, int | float)
    }
    return compact(written) if written else None


def _embeddings(call: ModelCall) -> Iterator[tuple[str, Json]]:
    """Yield each text with its vector, if that is on the wire as numbers."""
    prefix = "embedding.embeddings"
    for n, message in enumerate(call.input):
        yield f"{prefix}.{n}.embedding.text", _said([message])
    for n, message in enumerate(call.output):
        vector = getattr(message.parts[0], "content", None) if message.parts else None
        if isinstance(vector, list):
            yield f"{prefix}.{n}.embedding.vector", vector


def of_tool(use: ToolUse, *, content: bool) -> dict[str, Json]:
    """Return the attributes of a call of a tool."""
    named: dict[str, Json] = {KIND: "TOOL", "tool.name": use.name}
    if content:
        named |= {
            "tool.parameters": compact(use.arguments),
            "input.value": compact(use.arguments),
            "input.mime_type": _JSON,
        }
        if use.result is not None:
            is_text = isinstance(use.result, str)
            named["output.value"] = use.result if is_text else compact(use.result)
            named["output.mime_type"] = "text/plain" if is_text else _JSON
    return {name: value for name, value in named.items() if value is not None}


def _counts(call: ModelCall) -> dict[str, Json]:
    usage = call.usage
    if usage is None:
        return {}
    asked, answered = usage.input_tokens, usage.output_tokens
    known = None not in (asked, answered)
    prefix = "llm.token_count"
    return {
        f"{prefix}.prompt": asked,
        f"{prefix}.completion": answered,
        f"{prefix}.total": (asked or 0) + (answered or 0) if known else None,
        f"{prefix}.prompt_details.cache_read": usage.cache_read_input_tokens,
        f"{prefix}.prompt_details.cache_write": usage.cache_creation_input_tokens,
        f"{prefix}.completion_details.reasoning": usage.reasoning_output_tokens,
    }


def _values(asked: str, answered: str) -> dict[str, Json]:
    """Return what viewers show in one line."""
    values: dict[str, Json] = {"input.value": asked or None, "output.value": answered or None}
    return values | {
        f"{side}.mime_type": "text/plain" for side in ("input", "output") if values[f"{side}.value"]
    }


def _said(messages: Iterable[Message]) -> str:
    parts = (part for message in messages for part in message.parts)
    return "\n".join(part.content for part in parts if isinstance(part, TextPart))


def _messages(prefix: str, messages: Iterable[Message]) -> Iterator[tuple[str, Json]]:
    flat = (each for message in messages for each in _apart(message))
    for n, message in enumerate(flat):
        start = f"{prefix}.{n}.message"
        yield f"{start}.role", message.role
        if message.name:
            yield f"{start}.name", message.name
        for name, value in _contents(message.parts):
            yield f"{start}.{name}", value


def _apart(message: Message) -> Iterator[Message]:
    """Yield a message for each result of a tool, which OpenInference has no part for."""
    results = [part for part in message.parts if isinstance(part, ToolCallResponsePart)]
    others = tuple(part for part in message.parts if not isinstance(part, ToolCallResponsePart))
    for result in results:
        yield Message("tool", (result,), message.name)
    if others or not results:
        yield Message(message.role, others, message.name)


def _contents(parts: tuple[Part, ...]) -> Iterator[tuple[str, Json]]:
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    rest = [part for part in parts if not isinstance(part, ToolCallPart)]
    if len(rest) == 1 and isinstance(rest[0], TextPart):
        yield "content", rest[0].content
    elif len(rest) == 1 and isinstance(rest[0], ToolCallResponsePart):
        response = rest[0].response
        yield "content", response if isinstance(response, str) else compact(response)
        yield "tool_call_id", rest[0].id
    else:
        for n, part in enumerate(rest):
            for name, value in _content(part):
                yield f"contents.{n}.message_content.{name}", value
    for n, call in enumerate(calls):
        start = f"tool_calls.{n}.tool_call"
        yield f"{start}.id", call.id
        yield f"{start}.function.name", call.name
        written = call.arguments if isinstance(call.arguments, str) else compact(call.arguments)
        yield f"{start}.function.arguments", written


def _content(part: Part) -> Iterator[tuple[str, Json]]:
    match part:
        case TextPart(content):
            yield "type", "text"
            yield "text", content
        case ReasoningPart(content):
            yield "type", "reasoning"
            yield "text", content
        case BlobPart(modality, mime_type, content):
            yield "type", modality
            yield f"{modality}.{modality}.url", f"data:{mime_type or ''};base64,{content}"
        case UriPart(modality, _, uri):
            yield "type", modality
            yield f"{modality}.{modality}.url", uri
        case _:  # OpenInference has no names for other parts: here is what they are.
            import msgspec

            written: dict[str, Json] = msgspec.to_builtins(part)
            yield "type", str(written.pop("type"))
            yield "text", compact(written)
