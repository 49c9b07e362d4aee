"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracefork_testkit.conversation import Message, ModelRequest, Tool, ToolCall, ToolResult
from tracefork_testkit.dialect import (
    EVENT_STREAM,
    Headers,
    Json,
    arguments_of,
    compact,
    pieces,
    plain,
    sse,
    words,
)
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Anthropic:
    """Speak POST /v1/messages, and :rawPredict of Vertex AI, whose path names the model."""

    stream_type = EVENT_STREAM

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a messages request."""
        return ModelRequest(
            provider="anthropic",
            model=str(payload.get("model") or path.rpartition("/")[2].partition(":")[0]),
            system=plain(payload.get("system")),
            messages=tuple(_turn(turn) for turn in payload["messages"]),
            tools=tuple(
                Tool(t["name"], t.get("input_schema") or {}) for t in payload.get("tools") or ()
            ),
            stream=bool(payload.get("stream")),
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the message object."""
        return {
            **_head(request, stamp),
            "content": _content(reply, stamp),
            "stop_reason": STOP_REASONS[reply.finish],
            "stop_sequence": None,
            "usage": _usage(usage),
        }

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield the events from message_start to message_stop."""

        def event(kind: str, **fields: object) -> bytes:
            return sse({"type": kind, **fields}, kind)

        opened = {
            **_head(request, stamp),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_usage(usage), "output_tokens": 1},
        }
        yield event("message_start", message=opened)
        for index, block in enumerate(_content(reply, stamp)):
            yield event("content_block_start", index=index, content_block=_empty(block))
            if index == 0:
                yield event("ping")
            for delta in _deltas(block):
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        end = {"stop_reason": STOP_REASONS[reply.finish], "stop_sequence": None}
        yield event("message_delta", delta=end, usage={"output_tokens": usage.output_tokens})
        yield event("message_stop")

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return Anthropic's error body."""
        kind = ERROR_TYPES.get(status, "api_error")
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": stamp.id("req_")}

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the overloaded event."""
        error = {"type": "overloaded_error", "message": message}
        return sse({"type": "error", "error": error}, "error")

    def headers(self, stamp: Stamp) -> Headers:
        """Return Anthropic's headers."""
        return [
            ("request-id", stamp.id("req_")),
            ("anthropic-organization-id", "00000000-0000-4000-8000-000000000000"),
            ("anthropic-ratelimit-requests-limit", "4000"),
            ("anthropic-ratelimit-requests-remaining", str(3000 + stamp.below(1000, "left"))),
        ]


def _turn(turn: Json) -> Message:
    content = turn["content"]
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(b["text"] for b in blocks if b.get("type") == "text")
    calls = tuple(
        ToolCall(b["name"], arguments_of(b.get("input")), b.get("id"))
        for b in blocks
        if b.get("type") == "tool_use"
    )
    results = tuple(
        ToolResult(b["tool_use_id"], plain(b.get("content")))
        for b in blocks
        if b.get("type") == "tool_result"
    )
    if results:
        return Message("tool", text, calls, results)
    return Message("assistant" if turn["role"] == "assistant" else "user", text, calls)


def _content(reply: Reply, stamp: Stamp) -> list[Json]:
    blocks: list[Json] = []
    if reply.thinking:
        signature = stamp.letters("signature", 40)
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.tool_calls):
        identity = call.id or stamp.id("toolu_", part=index)
        given = dict(call.arguments)
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": given})
    return blocks


def _empty(block: Json) -> Json:
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        for word in words(block["text"]):
            yield {"type": "text_delta", "text": word}
    elif block["type"] == "thinking":
        for word in words(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": word}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in pieces(compact(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _head(request: ModelRequest, stamp: Stamp) -> Json:
    return {
        "model": request.model,
        "id": stamp.id("msg_01", 22),
        "type": "message",
        "role": "assistant",
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }
