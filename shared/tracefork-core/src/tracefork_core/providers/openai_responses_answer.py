"""Write answers of OpenAI's Responses API: make one from text and tool calls, and stream any."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.draft import CREATED, Call, Draft
from tracefork_core.providers.lenient import Json, mapping, mappings, text
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import pieces, sse_bytes

# The answer repeats these fields of its request; the values here are the provider's defaults.
_ECHOED: dict[str, Json] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}
# Built-in tools that the caller runs: the item type of their calls, and the field with the action.
_BUILT_IN = {
    "computer": ("computer_call", "action"),
    "computer_use_preview": ("computer_call", "action"),
    "local_shell": ("local_shell_call", "action"),
    "shell": ("shell_call", "action"),
    "apply_patch": ("apply_patch_call", "operation"),
}

_Event = tuple[str, dict[str, Json]]

_ENDINGS = ("completed", "incomplete", "failed")
_UNDONE: dict[str, Json] = {
    "status": "in_progress",
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
    "output": [],
    "usage": None,
}
# Items with a streamed text: the field that holds it, and its name in the events.
_WRITTEN = {
    "function_call": ("arguments", "function_call_arguments"),
    "mcp_call": ("arguments", "mcp_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
    "code_interpreter_call": ("code", "code_interpreter_call_code"),
}


def responses_document(draft: Draft) -> dict[str, Json]:
    """Return the response, with new ids if its content differs from the recorded response.

    The provider stores its responses and items by id. A later request with a recorded id would
    refer to the stored content. The provider refuses an id that it does not know.
    """
    request = draft.question.wire.request
    echoed = {key: request.get(key, value) for key, value in _ECHOED.items()}
    created = draft.before.get("created_at") or CREATED
    return {
        **echoed,
        **draft.before,
        "id": _known_id(draft, draft.before) or draft.id("resp_", 48),
        "object": "response",
        "created_at": created,
        "status": "completed",
        "completed_at": draft.before.get("completed_at") or created,
        "error": None,
        "incomplete_details": None,
        "model": draft.model,
        "output": _output(draft),
        "usage": _usage(draft),
    }


def _known_id(draft: Draft, before: dict[str, Json]) -> str | None:
    is_stored = draft.question.wire.request.get("store") is not False
    return text(before.get("id")) if draft.is_unchanged or not is_stored else None


def _output(draft: Draft) -> list[Json]:
    before = mappings(draft.before.get("output"))
    output: list[Json] = []
    if draft.is_unchanged:
        output += [item for item in before if item.get("type") == "reasoning"]
    if draft.text is not None or not draft.calls:
        messages = [item for item in before if item.get("type") == "message"]
        output.append(_message(draft, messages[0] if messages else {}))
    callers = [item for item in before if item.get("call_id")]
    for part, call in enumerate(draft.calls):
        item = _call(draft, call, part)
        known = _known_id(draft, callers[part]) if part < len(callers) else None
        prefix = "ctc_" if item["type"] == "custom_tool_call" else "fc_"
        output.append({"id": known or draft.id(prefix, 48, part), **item})
    return output


def _message(draft: Draft, before: dict[str, Json]) -> dict[str, Json]:
    part: Json = {
        "type": "output_text",
        "annotations": [],
        "logprobs": [],
        "text": draft.text or "",
    }
    return {
        "id": _known_id(draft, before) or draft.id("msg_", 48),
        "type": "message",
        "status": "completed",
        "content": [part],
        "role": "assistant",
    }


def _call(draft: Draft, call: Call, part: int) -> dict[str, Json]:
    tools = mappings(draft.question.wire.request.get("tools"))
    named = {text(tool.get("name")): tool.get("type") for tool in tools}
    offered = {text(tool.get("type")) for tool in tools}
    linked: dict[str, Json] = {
        "status": "completed",
        "call_id": draft.call_id("call_", 24, part),
    }
    if named.get(call.name) == "custom":
        return {"type": "custom_tool_call", **linked, "name": call.name, "input": call.written}
    built_in = call.name in offered or f"{call.name}_use_preview" in offered
    if call.name not in named and built_in and call.name in _BUILT_IN:
        kind, action = _BUILT_IN[call.name]
        return {"type": kind, **linked, action: call.object_for("a built-in tool")}
    return {"type": "function_call", **linked, "name": call.name, "arguments": call.written}


def _usage(draft: Draft) -> dict[str, Json]:
    if draft.is_unchanged and draft.reported:
        return draft.reported
    return {
        "input_tokens_details": mapping(draft.reported.get("input_tokens_details"))
        or {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        "input_tokens": draft.input_tokens,
        "output_tokens": draft.output_tokens,
        "total_tokens": draft.input_tokens + draft.output_tokens,
    }


def responses_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a response as events, numbered from response.created to its last."""
    for number, (kind, fields) in enumerate(_events(document)):
        yield sse_bytes({"type": kind, **fields, "sequence_number": number}, kind)


def _events(document: dict[str, Json]) -> Iterator[_Event]:
    opened = document | _UNDONE
    yield "response.created", {"response": opened}
    yield "response.in_progress", {"response": opened}
    for index, item in enumerate(mappings(document.get("output"))):
        yield "response.output_item.added", {"output_index": index, "item": _opening(item)}
        at: dict[str, Json] = {"item_id": item.get("id"), "output_index": index}
        for kind, fields in _of_item(item):
            yield f"response.{kind}", at | fields
        yield "response.output_item.done", {"output_index": index, "item": item}
    status = document.get("status")
    ending = status if isinstance(status, str) and status in _ENDINGS else "completed"
    yield f"response.{ending}", {"response": document}


def _opening(item: dict[str, Json]) -> dict[str, Json]:
    kind = text(item.get("type")) or "message"
    blank: dict[str, Json] = {"status": "in_progress"} if "status" in item else {}
    if kind == "message":
        blank["content"] = []
    elif kind == "reasoning":
        blank |= {name: [] for name in ("summary", "content") if item.get(name)}
    elif kind in _WRITTEN:
        blank[_WRITTEN[kind][0]] = ""
    return {**item, **blank}


def _of_item(item: dict[str, Json]) -> Iterator[_Event]:
    kind = text(item.get("type")) or "message"
    if kind in _WRITTEN:
        field, event = _WRITTEN[kind]
        yield from _written(event, {}, field, item.get(field))
    for index, part in enumerate(mappings(item.get("summary"))):
        at: dict[str, Json] = {"summary_index": index}
        yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        yield from _written("reasoning_summary_text", at, "text", part.get("text"))
        yield "reasoning_summary_part.done", {**at, "part": part}
    if kind in ("message", "reasoning"):
        for index, part in enumerate(mappings(item.get("content"))):
            yield from _of_part({"content_index": index}, part)


def _of_part(at: dict[str, Json], part: dict[str, Json]) -> Iterator[_Event]:
    field = "refusal" if part.get("type") == "refusal" else "text"
    blank: dict[str, Json] = {"annotations": []} if "annotations" in part else {}
    yield "content_part.added", {**at, "part": {**part, field: "", **blank}}
    if part.get("type") == "output_text":
        yield from _written("output_text", at | {"logprobs": []}, "text", part.get("text"))
        for index, annotation in enumerate(mappings(part.get("annotations"))):
            noted: dict[str, Json] = {"annotation_index": index, "annotation": annotation}
            yield "output_text.annotation.added", at | noted
    else:
        kind = text(part.get("type")) or "output_text"
        yield from _written(kind, at, field, part.get(field))
    yield "content_part.done", {**at, "part": part}


def _written(event: str, at: dict[str, Json], field: str, value: Json) -> Iterator[_Event]:
    if not isinstance(value, str):
        return
    for piece in pieces(value):
        yield f"{event}.delta", {**at, "delta": piece}
    yield f"{event}.done", {**at, field: value}
