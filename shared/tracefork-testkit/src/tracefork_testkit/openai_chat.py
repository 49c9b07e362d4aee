"""OpenAI's chat completions."""

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

ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def openai_headers(stamp: Stamp) -> Headers:
    """Return the headers of every answer of OpenAI's API."""
    return [
        ("openai-organization", "org-testkit"),
        ("openai-processing-ms", str(20 + stamp.below(400, "ms"))),
        ("openai-version", "2020-10-01"),
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-remaining-requests", str(9000 + stamp.below(1000, "left"))),
        ("x-request-id", stamp.id("req_", 32)),
    ]


def openai_error(status: int, message: str) -> Json:
    """Return OpenAI's error body."""
    kind, code = ERROR_TYPES.get(status, ("server_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class OpenAIChat:
    """Speak POST /v1/chat/completions."""

    stream_type = EVENT_STREAM

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a chat completion request."""
        turns = payload["messages"]
        system = [plain(t.get("content")) for t in turns if t["role"] in ("system", "developer")]
        return ModelRequest(
            provider="openai.chat",
            model=str(payload.get("model", "")),
            system="\n".join(system),
            messages=tuple(_turn(t) for t in turns if t["role"] not in ("system", "developer")),
            tools=tuple(
                Tool(t["function"]["name"], t["function"].get("parameters") or {})
                for t in payload.get("tools") or ()
                if t.get("type") == "function"
            ),
            stream=bool(payload.get("stream")),
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the completion object."""
        message: Json = {
            "role": "assistant",
            "content": reply.text if reply.text or not reply.tool_calls else None,
            "refusal": None,
            "annotations": [],
        }
        if reply.tool_calls:
            message["tool_calls"] = [
                _call(call, index, stamp) for index, call in enumerate(reply.tool_calls)
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return {
            **_head(request, stamp, "chat.completion"),
            "choices": [choice],
            "usage": _usage(usage),
        }

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield chunks and `[DONE]`, with a usage chunk if the request asks for it."""
        head = _head(request, stamp, "chat.completion.chunk")
        options = request.payload.get("stream_options")
        counted = isinstance(options, dict) and bool(options.get("include_usage"))
        tail: Json = {"usage": None} if counted else {}

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return sse({**head, "choices": [choice], **tail})

        yield chunk({"role": "assistant", "content": None if reply.tool_calls else ""})
        for word in words(reply.text):
            yield chunk({"content": word})
        for index, call in enumerate(reply.tool_calls):
            full = _call(call, index, stamp)
            if request.model.startswith("mistral"):  # Mistral's server does not divide a call.
                yield chunk({"tool_calls": [{"index": index, **full}]})
                continue
            arguments = full["function"].pop("arguments")
            full["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": index, **full}]})
            for piece in pieces(arguments):
                delta = {"index": index, "function": {"arguments": piece}}
                yield chunk({"tool_calls": [delta]})
        yield chunk({}, reply.finish)
        if counted:
            yield sse({**head, "choices": [], "usage": _usage(usage)})
        yield b"data: [DONE]\n\n"

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return OpenAI's error body."""
        return openai_error(status, message)

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the error chunk."""
        return sse(openai_error(500, message))

    def headers(self, stamp: Stamp) -> Headers:
        """Return OpenAI's headers."""
        return openai_headers(stamp)


def _turn(turn: Json) -> Message:
    text = plain(turn.get("content"))
    if turn["role"] == "tool":
        return Message("tool", tool_results=(ToolResult(str(turn.get("tool_call_id")), text),))
    if turn["role"] == "user":
        return Message("user", text)
    calls: list[Any] = turn.get("tool_calls") or []
    return Message("assistant", text, tuple(_read_call(call) for call in calls))


def _read_call(call: Json) -> ToolCall:
    function = call.get("function") or {}
    return ToolCall(
        str(function.get("name")), arguments_of(function.get("arguments")), call.get("id")
    )


def _call(call: ToolCall, index: int, stamp: Stamp) -> Json:
    return {
        "id": call.id or stamp.id("call_", part=index),
        "type": "function",
        "function": {"name": call.name, "arguments": compact(dict(call.arguments))},
    }


def _head(request: ModelRequest, stamp: Stamp, kind: str) -> Json:
    return {
        "id": stamp.id("chatcmpl-", 29),
        "object": kind,
        "created": stamp.created,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_testkit",
    }


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
