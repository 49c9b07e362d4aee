"""Read the messages of a trace, in whichever shape the program that wrote it had them.

Traces keep messages as the instrumentation found them: those of the GenAI conventions, of the APIs
of OpenAI, Anthropic, Gemini and Bedrock, of LangChain, of Vercel's AI SDK, as JSON or as text that
holds JSON. Nothing is dropped: what no shape fits is a part of its own that shows the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.call import (
    BlobPart,
    GenericPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    UriPart,
)
from tracefork_core.providers.lenient import (
    Json,
    arguments,
    field,
    items,
    mapping,
    mappings,
    parse,
    text,
)
from tracefork_core.providers.parts import content_parts, from_base64, from_url, tool_answer
from tracefork_core.providers.traced import part_of

_ROLES = {
    "model": "assistant",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "HumanMessage": "user",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "function": "tool",
}
_LANGCHAIN = {**_ROLES, "system": "system", "tool": "tool"}
_LISTS = ("messages", "contents", "choices", "candidates", "output", "input", "items")
"""Names under which a request or a response holds its messages."""
_OPENAI_CALLS = ("function_call", "custom_tool_call", "mcp_call")
_OPENAI_RESULTS = ("function_call_output", "custom_tool_call_output", "mcp_call_output")
_CONVENTIONS = frozenset(
    {"tool_call", "tool_call_response", "blob", "uri", "file", "server_tool_call"}
    | {"server_tool_call_response"}
)
_WRAPPED = ("toolUse", "toolResult", "functionCall", "functionResponse", "function_call")


def decoded(value: Json) -> Json:
    """Return the JSON that a text holds; another value, and a plain text, unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        parsed = parse(value)
        return value if parsed is None else parsed
    return value


def messages_of(value: Json, role: str) -> tuple[Message, ...]:
    """Return the messages in a value; one that names no role has this one."""
    if isinstance(value, str) and (held := decoded(value)) is not value:
        read = messages_of(held, role)
        # An answer may be JSON: a text of its own, and no message.
        is_answer = all(message.parts[:1] == (_json_part(held),) for message in read)
        return (Message(role, (TextPart(value),)),) if is_answer else read
    if value is None or value in ("", [], {}):
        return ()
    if isinstance(value, list):
        return tuple(_of_list(value, role))
    if isinstance(value, dict):
        return tuple(_of_object(value, role))
    return (Message(role, (TextPart(value if isinstance(value, str) else str(value)),)),)


def _json_part(value: Json) -> Part:
    """Return the part of a value that has none of the shapes of a message."""
    return GenericPart("json", value)


def parts_of(value: Json) -> tuple[Part, ...]:
    """Return the parts in instructions or in the content of one message."""
    value = decoded(value)
    if isinstance(value, dict):
        return tuple(_parts(value.get("parts"))) if "parts" in value else (_part(value),)
    if isinstance(value, list):
        return tuple(_parts(value))
    return (TextPart(str(value)),) if value not in (None, "") else ()


def _of_list(values: list[Json], role: str) -> Iterator[Message]:
    if any(isinstance(value, list) for value in values):  # LangChain has a list for each prompt.
        for value in values:
            yield from messages_of(value, role)
        return
    decoded_values = [decoded(value) for value in values]
    if all(isinstance(value, dict) and _is_part(value) for value in decoded_values):
        yield Message(role, tuple(_parts(decoded_values)))
        return
    for value in decoded_values:
        yield from messages_of(value, role)


def _is_part(value: dict[str, Json]) -> bool:
    """Return whether an object is a part of a message, and not a message or what holds some."""
    if "role" in value or ("content" in value and "type" not in value):
        return False
    kind = value.get("type")
    if kind in _LANGCHAIN or kind in (*_OPENAI_CALLS, *_OPENAI_RESULTS, "message", "constructor"):
        return False
    if isinstance(kind, str) or any(name in value for name in ("toolName", "tool.name", *_WRAPPED)):
        return "message" not in value
    return value.keys() <= {"text", "annotations", "thought"}


def _of_object(value: dict[str, Json], role: str) -> Iterator[Message]:
    if value.get("type") == "constructor" and "kwargs" in value:  # LangChain's serialisation.
        kind = items(value.get("id"))[-1:]
        yield from _of_object({**mapping(value["kwargs"]), "type": kind[0] if kind else None}, role)
        return
    if isinstance(value.get("data"), dict) and value.get("type") in _LANGCHAIN:
        yield from _of_object({**mapping(value["data"]), "type": value["type"]}, role)
        return
    if message := _message(value, role):
        yield message
        return
    held = [value[name] for name in _LISTS if isinstance(value.get(name), list | dict)]
    inner = held[0] if held else field(value, "message", "generations", "prompts")
    if inner is None:
        yield from _of_prompt(value, role)
        return
    yield from _instructions(field(value, "system", "systemInstruction", "instructions"))
    yield from messages_of(inner, role)


def _instructions(value: Json) -> Iterator[Message]:
    if parts := parts_of(value):
        yield Message("system", parts)


def _of_prompt(value: dict[str, Json], role: str) -> Iterator[Message]:
    """Read an object with a prompt, with a text, or of no known shape."""
    yield from _instructions(value.get("system"))
    known = text(field(value, "prompt", "text", "input", "output", "content"))
    if known is not None and not (value.keys() - {"prompt", "text", "input", "output", "system"}):
        yield Message(role, (TextPart(known),))
    else:
        yield Message(role, (_part(value),))


def _message(value: dict[str, Json], role: str) -> Message | None:
    kind = text(value.get("type"))
    if kind in _OPENAI_CALLS or kind in _OPENAI_RESULTS or kind == "reasoning":
        return Message("assistant" if kind not in _OPENAI_RESULTS else "tool", (_part(value),))
    said = text(value.get("role")) or (kind if kind in _LANGCHAIN else None)
    if said is None and (kind != "message" and "content" not in value and "parts" not in value):
        return None
    if said is None and kind not in (None, "message"):
        return None
    role = _ROLES.get(said or role, said or role)
    return Message(role, tuple(_content(value, role)), text(value.get("name")))


def _content(message: dict[str, Json], role: str) -> Iterator[Part]:
    if thought := text(field(message, "reasoning_content", "reasoning", "thinking")):
        yield ReasoningPart(thought)
    content = field(message, "parts", "content", "contents")
    call = text(field(message, "tool_call_id", "tool_use_id"))
    if role == "tool" and "parts" not in message and (call or not _has_results(content)):
        yield ToolCallResponsePart(call, tool_answer(content))
    elif isinstance(content, dict):
        yield from parts_of(content)
    else:
        yield from _parts(content)
    extra = mapping(message.get("additional_kwargs"))
    calls = field(message, "tool_calls", "toolCalls") or extra.get("tool_calls")
    yield from _tool_calls(calls, {_id(part) for part in mappings(content)})
    if legacy := field(message, "function_call") or extra.get("function_call"):
        yield _call(mapping(legacy))
    if refusal := text(message.get("refusal")):
        yield GenericPart("refusal", refusal)


def _tool_calls(value: Json, known: set[str | None]) -> Iterator[Part]:
    """Read tool calls that stand beside the content, without those that stand in it too."""
    for call in mappings(decoded(value)):
        if _id(call) is None or _id(call) not in known:
            yield _call(call)


def _has_results(content: Json) -> bool:
    return any(
        part.get("type") in ("tool_result", "tool-result", "tool_call_response")
        or "functionResponse" in part
        or "toolResult" in part
        for part in mappings(content)
    )


def _parts(value: Json) -> Iterator[Part]:
    if isinstance(value, str):
        if value:
            yield TextPart(value)
        return
    for part in items(value):
        if isinstance(part, dict):
            yield _part(part)
        elif isinstance(part, str):
            yield TextPart(part)
        elif part is not None:
            yield _json_part(part)


def _part(block: dict[str, Json]) -> Part:
    for name in _WRAPPED:
        if isinstance(block.get(name), dict):
            inner = mapping(block[name])
            return _result(inner) if name.endswith(("Result", "Response")) else _call(inner)
    kind = text(block.get("type"))
    if kind in ("tool_use", "tool-call", "function", *_OPENAI_CALLS) or (
        kind in (None, "tool_call") and _named(block)
    ):
        return _call(block)
    if kind in ("tool_result", "tool-result", "tool_call_response", *_OPENAI_RESULTS):
        return _result(block)
    if kind in _CONVENTIONS:
        return part_of(block)
    return _said(block, kind) or _attached(block) or _other(block)


def _named(block: dict[str, Json]) -> bool:
    return any(
        text(block.get(name)) or isinstance(block.get(name), dict)
        for name in ("toolName", "tool.name", "function_name", "function", "name")
    )


def _said(block: dict[str, Json], kind: str | None) -> Part | None:
    """Read text and reasoning."""
    written = field(block, "content", "text", "thinking")
    if kind == "reasoning" and not isinstance(written, str):
        summary = mappings(field(block, "summary", "content"))
        return ReasoningPart("".join(text(piece.get("text")) or "" for piece in summary))
    if not isinstance(written, str):
        return None
    if kind in ("reasoning", "thinking") or block.get("thought") is True:
        return ReasoningPart(written)
    if kind in (None, "text", "input_text", "output_text", "summary_text"):
        return TextPart(written)
    return None


def _attached(block: dict[str, Json]) -> Part | None:
    """Read an attachment of Gemini, Anthropic or Vercel's SDK."""
    inline, linked = mapping(block.get("inlineData")), mapping(block.get("fileData"))
    if data := text(inline.get("data")):
        return from_base64(data, "document", text(inline.get("mimeType")))
    if uri := text(linked.get("fileUri")):
        return from_url(uri, "document", text(linked.get("mimeType")))
    source, kind = mapping(block.get("source")), text(block.get("type")) or "document"
    if data := text(source.get("data")):
        return from_base64(data, kind, text(source.get("media_type")))
    if url := text(source.get("url")):
        return from_url(url, kind)
    return None


def _other(block: dict[str, Json]) -> Part:
    if isinstance(block.get("type"), str):
        read = content_parts([block])[0]
        if isinstance(read, BlobPart | UriPart) or block.keys() != {"type", "content"}:
            return read
        return part_of(block)
    return _json_part(block)


def _call(block: dict[str, Json]) -> ToolCallPart:
    body = mapping(field(block, "function", "custom")) or block
    name = text(field(body, "name", "toolName", "tool.name", "function_name"))
    given = field(body, "arguments", "args", "input", "tool.args")
    return ToolCallPart(_id(block), name or "", arguments(given))


def _result(block: dict[str, Json]) -> ToolCallResponsePart:
    answer = field(block, "response", "result", "output", "content")
    # Vercel's SDK wraps a result as {"type": "json", "value": …}.
    if isinstance(answer, dict) and answer.keys() == {"type", "value"}:
        answer = answer["value"]
    return ToolCallResponsePart(_id(block), tool_answer(answer))


def _id(block: dict[str, Json]) -> str | None:
    # OpenAI's items have an id of their own beside the id of the call.
    value = field(block, "call_id", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "id")
    if isinstance(value, list):  # Microsoft's exporter writes the id of the run before it.
        value = value[-1] if value else None
    return text(value)
