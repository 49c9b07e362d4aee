"""The messages of a span: what a model was asked, and what it answered.

Each convention has other names for them, and some have them as events. They are asked in the order
in which they stand here, and the first that has messages decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.interop.importing.messages import decoded, messages_of
from tracefork_core.interop.importing.span_values import below
from tracefork_core.interop.span import Span
from tracefork_core.providers.call import (
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallResponsePart,
    ToolDefinition,
)
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text
from tracefork_core.providers.parts import tool_definitions

_ASKED = (
    "gen_ai.input.messages",
    "gen_ai.prompt",
    "ai.prompt.messages",
    "ai.prompt",
    "gcp.vertex.agent.llm_request",
    "langfuse.observation.input",
    "input.value",
    "input",
)
_ANSWERED = (
    "gen_ai.output.messages",
    "gen_ai.completion",
    "gcp.vertex.agent.llm_response",
    "langfuse.observation.output",
    "gen_ai.output",
    "output.value",
    "output",
)
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"


def conversation(span: Span) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the messages of the question and of the answer."""
    noted_asked, noted_answered = _of_events(span)
    listed = below(span.attributes, "llm.input_messages"), below(span.attributes, "gen_ai.prompt")
    given = (
        below(span.attributes, "llm.output_messages"),
        below(span.attributes, "gen_ai.completion"),
    )
    asked = (
        messages_of(span.get(_ASKED[0]), "user")
        or _unwrapped(listed, "user")
        or noted_asked
        or messages_of(span.get(*_ASKED[1:]), "user")
    )
    answered = (
        messages_of(span.get(_ANSWERED[0]), "assistant")
        or _unwrapped(given, "assistant")
        or noted_answered
        or _of_vercel(span)
        or messages_of(span.get(*_ANSWERED[1:]), "assistant")
    )
    return asked, answered


def _unwrapped(lists: tuple[Json, Json], role: str) -> tuple[Message, ...]:
    """Read messages that lie in numbered attributes, without OpenInference's wrappers."""
    found = next((items(each) for each in lists if items(each)), [])
    return tuple(message for each in found for message in messages_of(bare(each), role))


def without_tools(
    asked: tuple[Message, ...],
) -> tuple[tuple[Message, ...], tuple[ToolDefinition, ...]]:
    """Return messages without the definitions of tools that Langfuse's LangChain puts there."""
    kept: list[Message] = []
    offered: list[Json] = []
    for message in asked:
        response = message.parts[0] if len(message.parts) == 1 else None
        held = mapping(response.response) if isinstance(response, ToolCallResponsePart) else {}
        if held.get("type") == "function" and "function" in held:
            offered.append(held)
        else:
            kept.append(message)
    return tuple(kept), tool_definitions(offered)


def _of_events(span: Span) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    asked: list[Message] = []
    answered: list[Message] = []
    for name, attributes in _noted(span):
        if role := _EVENT_ROLES.get(name):
            asked += messages_of({"role": role, **_message_of(attributes)}, role)
        elif name == _CHOICE:
            inner = decoded(field(attributes, "message")) or _message_of(attributes)
            answered += messages_of(inner, "assistant")
        else:
            given = field(attributes, "gen_ai.input.messages", "gen_ai.prompt")
            said = field(attributes, "gen_ai.output.messages", "gen_ai.completion")
            asked += messages_of(given, "user")
            answered += messages_of(said, "assistant")
    return tuple(asked), tuple(answered)


def _noted(span: Span) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the events of a span; pydantic-ai has them as an attribute."""
    for event in span.events:
        yield event.name, event.attributes
    listed = decoded(span.get("events", "all_messages_events"))
    for each in mappings(listed):
        yield text(each.get("event.name")) or "", each


def _message_of(attributes: dict[str, Json]) -> dict[str, Json]:
    """Return an event's message; its values may be JSON in a text, and have a prefix."""
    return {
        name.removeprefix("gen_ai.event."): decoded(value) if name != "content" else value
        for name, value in attributes.items()
        if not name.startswith(("event.", "gen_ai.system", "gen_ai.message"))
    } | ({"tool_call_id": attributes["id"]} if "id" in attributes else {})


def _of_vercel(span: Span) -> tuple[Message, ...]:
    parts: list[Part] = []
    if thought := span.text("ai.response.reasoning"):
        parts.append(ReasoningPart(thought))
    if said := span.text("ai.response.text", "ai.response.object"):
        parts.append(TextPart(said))
    for message in messages_of(span.get("ai.response.toolCalls"), "assistant"):
        parts += message.parts
    return (Message("assistant", tuple(parts)),) if parts else ()


_WRAPPERS = ("message", "message_content", "tool_call", "tool", "image")


def bare(value: Json) -> Json:
    """Return a value without OpenInference's wrappers around messages, parts and tools."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() <= set(_WRAPPERS):
        # A part has a wrapper for its type, and may have one for the call of a tool beside it.
        inner = [bare(held) for held in value.values()]
        if len(inner) == 1:
            return inner[0]
        return {name: held for each in inner for name, held in mapping(each).items()}
    return {name: bare(item) for name, item in value.items()}
