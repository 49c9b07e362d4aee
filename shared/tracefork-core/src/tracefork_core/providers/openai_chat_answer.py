"""Write chat completions: make one from text and tool calls, and stream any of them."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.draft import CREATED, Draft
from tracefork_core.providers.lenient import Json, count, mapping, mappings, text
from tracefork_core.providers.parts import joined_text
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import pieces, sse_bytes

_MOST_CHOICES = 128
_REASONING = ("reasoning_content", "reasoning")


def chat_document(draft: Draft) -> dict[str, Json]:
    """Return the completion, with as many equal choices as the request asks for (at most 128)."""
    asked = count(draft.question.wire.request.get("n")) or 1
    choices: list[Json] = [_choice(draft, index) for index in range(min(asked, _MOST_CHOICES))]
    return {
        "id": draft.id("chatcmpl-", 29),
        "created": CREATED,
        "model": draft.model,
        **_scalars(draft.before),
        "object": "chat.completion",
        "choices": choices,
        "usage": _usage(draft),
    }


def chat_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a completion as chunks; the usage comes last, if the request asks for it."""
    options = mapping(question.wire.request.get("stream_options"))
    counted = options.get("include_usage") is True
    head = _scalars(document) | {"object": "chat.completion.chunk"}
    tail: dict[str, Json] = {"usage": None} if counted else {}
    for position, choice in enumerate(mappings(document.get("choices"))):
        index = count(choice.get("index"))
        at: dict[str, Json] = {"index": position if index is None else index}
        for delta in _deltas(mapping(choice.get("message"))):
            piece: Json = {**at, "delta": delta, "logprobs": None, "finish_reason": None}
            yield sse_bytes({**head, "choices": [piece], **tail})
        last: Json = {
            **at,
            "delta": {},
            "logprobs": choice.get("logprobs"),
            "finish_reason": choice.get("finish_reason"),
        }
        yield sse_bytes({**head, "choices": [last], **tail})
    if counted:
        yield sse_bytes({**head, "choices": [], "usage": document.get("usage")})
    yield b"data: [DONE]\n\n"


def _scalars(document: dict[str, Json]) -> dict[str, Json]:
    return {
        key: value
        for key, value in document.items()
        if value is not None and not isinstance(value, list | dict)
    }


def _choice(draft: Draft, index: int) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": draft.text, "refusal": None}
    request = draft.question.wire.request
    reason = "stop"
    if draft.calls and "functions" in request and "tools" not in request:
        call = draft.calls[0]
        message["function_call"] = {"name": call.name, "arguments": call.written}
        reason = "function_call"
    elif draft.calls:
        message["tool_calls"] = _calls(draft, _custom(request))
        # If the request forces a tool by name, OpenAI's reason is `stop`.
        reason = "stop" if isinstance(request.get("tool_choice"), dict) else "tool_calls"
    return {
        "index": index,
        "message": message | _reasoning(draft),
        "logprobs": None,
        "finish_reason": reason,
    }


def _reasoning(draft: Draft) -> dict[str, Json]:
    # Some servers refuse a request with a tool call but not the thinking before it.
    if not (draft.is_unchanged or draft.calls):
        return {}
    before = next(iter(mappings(draft.before.get("choices"))), {})
    message = mapping(before.get("message"))
    return {name: message[name] for name in _REASONING if message.get(name)}


def _custom(request: dict[str, Json]) -> set[str | None]:
    tools = mappings(request.get("tools"))
    return {text(mapping(tool.get("custom")).get("name")) for tool in tools}


def _calls(draft: Draft, custom: set[str | None]) -> list[Json]:
    calls: list[Json] = []
    for part, call in enumerate(draft.calls):
        kind, field_name = ("custom", "input") if call.name in custom else ("function", "arguments")
        calls.append(
            {
                "id": draft.call_id("call_", 24, part),
                "type": kind,
                kind: {"name": call.name, field_name: call.written},
            }
        )
    return calls


def _usage(draft: Draft) -> dict[str, Json]:
    if draft.is_unchanged and draft.reported:
        return draft.reported
    shown = {key: value for key, value in draft.reported.items() if not key.startswith("compl")}
    return {
        **shown,
        "prompt_tokens": draft.input_tokens,
        "completion_tokens": draft.output_tokens,
        "total_tokens": draft.input_tokens + draft.output_tokens,
    }


def _deltas(message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    content = message.get("content")
    opening: dict[str, Json] = {"role": message.get("role") or "assistant"}
    opening["content"] = "" if isinstance(content, str) else content
    if "refusal" in message:
        opening["refusal"] = None
    parts = ("role", "content", "refusal", "tool_calls", "function_call", *_REASONING)
    yield opening | {key: value for key, value in message.items() if key not in parts and value}
    for name in _REASONING:
        for piece in pieces(joined_text(message.get(name))):
            yield {name: piece}
    for name in ("content", "refusal"):
        for piece in pieces(text(message.get(name)) or ""):
            yield {name: piece}
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        for part in _call_deltas(call):
            yield {"tool_calls": [{"index": index, **part}]}
    if legacy := mapping(message.get("function_call")):
        yield {"function_call": {**legacy, "arguments": ""}}
        for piece in pieces(text(legacy.get("arguments")) or ""):
            yield {"function_call": {"arguments": piece}}


def _call_deltas(call: dict[str, Json]) -> Iterator[dict[str, Json]]:
    kind = "custom" if call.get("custom") else "function"
    name = "input" if kind == "custom" else "arguments"
    body = mapping(call.get(kind))
    yield {**call, kind: {**body, name: ""}}
    for piece in pieces(text(body.get(name)) or ""):
        yield {kind: {name: piece}}
