"""OpenAI's Responses API."""

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
from tracefork_testkit.openai_chat import openai_error, openai_headers
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp


class OpenAIResponses:
    """Speak POST /v1/responses."""

    stream_type = EVENT_STREAM

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a response request; `previous_response_id` is not followed."""
        given = payload.get("input", "")
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        system = [payload.get("instructions") or ""]
        system += [plain(i["content"]) for i in items if i.get("role") in ("system", "developer")]
        return ModelRequest(
            provider="openai.responses",
            model=str(payload.get("model", "")),
            system="\n".join(filter(None, system)),
            messages=tuple(_turns(items)),
            tools=tuple(
                Tool(t["name"], t.get("parameters") or {})
                for t in payload.get("tools") or ()
                if t.get("type") == "function"
            ),
            stream=bool(payload.get("stream")),
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the finished response object."""
        return _response(request, reply, usage, stamp, _output(reply, stamp))

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield the typed events from response.created to response.completed."""
        sequence = 0

        def event(kind: str, **fields: object) -> bytes:
            nonlocal sequence
            data = {"type": kind, **fields, "sequence_number": sequence}
            sequence += 1
            return sse(data, kind)

        opened = _response(request, reply, None, stamp, [])
        yield event("response.created", response=opened)
        yield event("response.in_progress", response=opened)
        output = _output(reply, stamp)
        for index, item in enumerate(output):
            yield event("response.output_item.added", item=_empty(item), output_index=index)
            for kind, fields in _item_events(item):
                yield event(kind, item_id=item["id"], output_index=index, **fields)
            yield event("response.output_item.done", item=item, output_index=index)
        done = _response(request, reply, usage, stamp, output)
        yield event(f"response.{done['status']}", response=done)

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return OpenAI's error body."""
        return openai_error(status, message)

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the error event."""
        data = {"type": "error", "code": "server_error", "message": message, "param": None}
        return sse({**data, "sequence_number": 0}, "error")

    def headers(self, stamp: Stamp) -> Headers:
        """Return OpenAI's headers."""
        return openai_headers(stamp)


def _turns(items: list[Any]) -> Iterator[Message]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            call = ToolCall(item["name"], arguments_of(item.get("arguments")), item["call_id"])
            yield Message("assistant", tool_calls=(call,))
        elif kind == "function_call_output":
            result = ToolResult(item["call_id"], plain(item.get("output")))
            yield Message("tool", tool_results=(result,))
        elif kind == "message" and item.get("role") in ("user", "assistant"):
            yield Message(item["role"], plain(item.get("content")))


def _output(reply: Reply, stamp: Stamp) -> list[Json]:
    items: list[Json] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"id": stamp.id("rs_", 48), "type": "reasoning", "summary": summary})
    if reply.text or not reply.tool_calls:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
        items.append(
            {
                "id": stamp.id("msg_", 48),
                "type": "message",
                "status": "completed",
                "content": [part],
                "role": "assistant",
            }
        )
    for index, call in enumerate(reply.tool_calls):
        items.append(
            {
                "id": stamp.id("fc_", 48, index),
                "type": "function_call",
                "status": "completed",
                "arguments": compact(dict(call.arguments)),
                "call_id": call.id or stamp.id("call_", part=index),
                "name": call.name,
            }
        )
    return items


def _empty(item: Json) -> Json:
    blank: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
    if item["type"] == "reasoning":
        return {**item, "summary": []}
    return {**item, "status": "in_progress", **blank}


def _item_events(item: Json) -> Iterator[tuple[str, Json]]:
    if item["type"] == "function_call":
        for piece in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {"delta": piece}
        yield (
            "response.function_call_arguments.done",
            {"arguments": item["arguments"], "name": item["name"]},
        )
    elif item["type"] == "reasoning":
        at = {"summary_index": 0}
        part = item["summary"][0]
        yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        for word in words(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": word}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}
    else:
        at = {"content_index": 0}
        part = item["content"][0]
        yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
        for word in words(part["text"]):
            yield "response.output_text.delta", {**at, "delta": word, "logprobs": []}
        yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**at, "part": part}


def _response(
    request: ModelRequest, reply: Reply, usage: Usage | None, stamp: Stamp, output: list[Json]
) -> Json:
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish)
    status = "in_progress" if usage is None else "incomplete" if cut else "completed"
    asked = request.payload
    return {
        "id": stamp.id("resp_", 48),
        "object": "response",
        "created_at": stamp.created,
        "status": status,
        "background": False,
        "completed_at": stamp.created if usage else None,
        "error": None,
        "incomplete_details": {"reason": cut} if cut and usage else None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "metadata": asked.get("metadata") or {},
        "model": request.model,
        "output": output,
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": asked.get("previous_response_id"),
        "reasoning": asked.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": "default",
        "store": asked.get("store", True),
        "temperature": asked.get("temperature", 1.0),
        "text": asked.get("text") or {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice") or "auto",
        "tools": asked.get("tools") or [],
        "top_p": asked.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": _usage(usage) if usage else None,
        "user": None,
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
