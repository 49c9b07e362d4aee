"""Responses to be sent, made of text and tool calls."""

from __future__ import annotations

from tracefork_core.providers.draft import CREATED, Call, Draft
from tracefork_core.providers.lenient import Json, mapping, mappings, text

# What a request says of itself is said again by its answer.
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
# Tools of the provider's design that the caller runs, and where their calls hold what to do.
_BUILT_IN = {
    "computer": ("computer_call", "action"),
    "computer_use_preview": ("computer_call", "action"),
    "local_shell": ("local_shell_call", "action"),
    "shell": ("shell_call", "action"),
    "apply_patch": ("apply_patch_call", "operation"),
}


def responses_document(draft: Draft) -> dict[str, Json]:
    """Give the response, with ids of its own where it says something else than was recorded.

    The provider keeps what it answered, and would take a recorded id for what it kept; an id
    it does not know it refuses.
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
    kept = draft.question.wire.request.get("store") is not False
    return text(before.get("id")) if draft.is_unchanged or not kept else None


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
        kind, place = _BUILT_IN[call.name]
        return {"type": kind, **linked, place: call.object_for("a built-in tool")}
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
