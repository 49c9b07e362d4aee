"""Read and answer Cohere's Command R: a message with the history before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracefork_bedrock.formats.reading import (
    Dialect,
    derived_id,
    metrics_of,
    pieces,
    settings,
    usage_of,
)
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    Carried,
    Json,
    Message,
    ModelCall,
    Part,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    Wanted,
    set_values,
)
from tracefork_core.adapters.formats import lenient as le

API = "cohere.chat"
_SHOWN = ("message", "chat_history", "preamble", "tools", "tool_results")
_ROLES = {"CHATBOT": "assistant", "USER": "user", "SYSTEM": "system", "TOOL": "tool"}


def read(carried: Carried, model: str) -> ModelCall:
    """Read a message with its history, and the answer."""
    request = carried.request
    body = _whole(carried)
    reason = le.text(body.get("finish_reason"))
    preamble = le.text(request.get("preamble"))
    said = (*_said(le.text(body.get("text"))), *_calls(body.get("tool_calls")))
    return ModelCall(
        operation="chat",
        api=API,
        provider=None,
        request_model=model,
        response_id=le.text(le.field(body, "generation_id", "response_id")),
        stream=carried.streams,
        system=(TextPart(preamble),) if preamble else (),
        input=tuple(_asked(request)),
        output=(Message("assistant", said),) if said else (),
        tools=tuple(
            ToolDefinition(
                "function",
                le.text(tool.get("name")) or "function",
                le.text(tool.get("description")),
                tool.get("parameter_definitions"),
            )
            for tool in le.mappings(request.get("tools"))
        ),
        parameters=settings(request, _SHOWN),
        usage=usage_of(metrics_of(carried.events)),
        finish_reasons=(reason,) if reason else (),
    )


def answer(carried: Carried, wanted: Wanted, model: str) -> dict[str, Json]:
    """Return another answer, under the recorded ids.

    Raises:
        UsageError: there is nothing to answer with.
    """
    if wanted.text is None and not wanted.tool_calls:
        raise UsageError("an answer needs a text (which may be empty) or a tool call")
    before = _whole(carried)
    made = str(derived_id(carried.request, wanted.text, list(wanted.tool_calls)))
    calls: list[Json] = [
        {"name": name, "parameters": le.parse(le.compact(arguments))}
        for name, arguments in wanted.tool_calls
    ]
    document = {"response_id": made, "generation_id": made, **before}
    document.pop("tool_calls", None)
    document |= {"text": wanted.text or "", "finish_reason": "COMPLETE"}
    return document | {"tool_calls": calls} if calls else document


def events(carried: Carried, document: dict[str, Json]) -> list[dict[str, Json]]:
    """Return an answer as the events of a stream."""
    identity = document.get("generation_id")
    made: list[dict[str, Json]] = [
        {"event_type": "stream-start", "is_finished": False, "generation_id": identity}
    ]
    made.extend(
        {"event_type": "text-generation", "is_finished": False, "text": piece}
        for piece in pieces(le.text(document.get("text")) or "")
    )
    if calls := document.get("tool_calls"):
        made.append(
            {"event_type": "tool-calls-generation", "is_finished": False, "tool_calls": calls}
        )
    reason = document.get("finish_reason") or "COMPLETE"
    ended: dict[str, Json] = {"event_type": "stream-end", "is_finished": True}
    made.append({**ended, "finish_reason": reason, "response": document})
    return made


def change(carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return the request with changes.

    Raises:
        UsageError: the request has no such part.
    """
    body = le.mapping(le.parse(le.compact(carried.request)))
    for name in ("drop_message", "tools"):
        if name in changes:
            raise UsageError(f"a request to Command R has no {name!r} that a fork can change")
    for name, field in (
        ("system", "preamble"),
        ("prompt", "message"),
        ("temperature", "temperature"),
    ):
        if name in changes:
            body[field] = changes[name]
    set_values(body, changes.get("values", {}))
    return body


def _whole(carried: Carried) -> dict[str, Json]:
    if not carried.events:
        return carried.body
    body: dict[str, Json] = {}
    texts: list[str] = []
    for event in carried.events:
        texts.append(le.text(event.get("text")) or "")
        if calls := event.get("tool_calls"):
            body["tool_calls"] = calls
        if event.get("event_type") == "stream-end":
            body |= {**le.mapping(event.get("response"))}
            body["finish_reason"] = event.get("finish_reason")
        elif identity := event.get("generation_id"):
            body["generation_id"] = identity
    return {**body, "text": "".join(texts) or body.get("text")}


def _asked(request: dict[str, Json]) -> list[Message]:
    messages = []
    for turn in le.mappings(request.get("chat_history")):
        role = le.text(turn.get("role")) or "USER"
        parts = (
            *_said(le.text(turn.get("message"))),
            *_calls(turn.get("tool_calls")),
            *_results(turn.get("tool_results")),
        )
        messages.append(Message(_ROLES.get(role, role.lower()), parts))
    last = (*_said(le.text(request.get("message"))), *_results(request.get("tool_results")))
    return [*messages, Message("user", last)] if last else messages


def _said(text: str | None) -> tuple[Part, ...]:
    return (TextPart(text),) if text else ()


def _calls(calls: Json) -> tuple[Part, ...]:
    return tuple(
        ToolCallPart(None, le.text(call.get("name")) or "", call.get("parameters"))
        for call in le.mappings(calls)
    )


def _results(results: Json) -> tuple[Part, ...]:
    return tuple(
        ToolCallResponsePart(None, result.get("outputs")) for result in le.mappings(results)
    )


COMMAND = Dialect("text", read, answer, events, change)
