"""Ollama's POST /api/chat, which streams lines of JSON instead of events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tracefork_testkit.conversation import Message, ModelRequest, Tool, ToolCall, ToolResult
from tracefork_testkit.dialect import Headers, Json, arguments_of, encode, plain, words
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

DONE_REASONS = {"length": "length"}


class Ollama:
    """Speak POST /api/chat, which streams by default."""

    stream_type = "application/x-ndjson"

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a chat request."""
        turns = payload["messages"]
        return ModelRequest(
            provider="ollama",
            model=str(payload.get("model", "")),
            system="\n".join(plain(t.get("content")) for t in turns if t["role"] == "system"),
            messages=tuple(_turn(t) for t in turns if t["role"] != "system"),
            tools=tuple(
                Tool(t["function"]["name"], t["function"].get("parameters") or {})
                for t in payload.get("tools") or ()
            ),
            stream=bool(payload.get("stream", True)),
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the whole answer."""
        message: Json = {"role": "assistant", "content": reply.text}
        if reply.thinking:
            message["thinking"] = reply.thinking
        if reply.tool_calls:
            message["tool_calls"] = _calls(reply)
        return {**_head(request, message, stamp), **_tail(reply, usage, stamp)}

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield one line for each word, one for all tool calls, and the counts in the last."""

        def line(delta: Json, tail: Json | None = None) -> bytes:
            message = {"role": "assistant", "content": "", **delta}
            return encode({**_head(request, message, stamp), **(tail or {"done": False})}) + b"\n"

        for word in words(reply.thinking):
            yield line({"thinking": word})
        for word in words(reply.text):
            yield line({"content": word})
        if reply.tool_calls:
            yield line({"tool_calls": _calls(reply)})
        yield line({}, _tail(reply, usage, stamp))

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return Ollama's error body."""
        return {"error": message}

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the error as a line."""
        return encode({"error": message}) + b"\n"

    def headers(self, stamp: Stamp) -> Headers:
        """Return no headers: Ollama's own server adds none."""
        return []


def _turn(turn: Json) -> Message:
    text = plain(turn.get("content"))
    if turn["role"] == "tool":
        name = turn.get("tool_call_id") or turn.get("tool_name") or ""
        return Message("tool", tool_results=(ToolResult(str(name), text),))
    if turn["role"] == "user":
        return Message("user", text)
    functions = [call["function"] for call in turn.get("tool_calls") or ()]
    made = (ToolCall(f["name"], arguments_of(f.get("arguments"))) for f in functions)
    return Message("assistant", text, tuple(made))


def _calls(reply: Reply) -> list[Json]:
    """Return the tool calls, which have no ids here."""
    return [
        {"function": {"name": call.name, "arguments": dict(call.arguments)}}
        for call in reply.tool_calls
    ]


def _head(request: ModelRequest, message: Json, stamp: Stamp) -> Json:
    created = datetime.fromtimestamp(stamp.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    return {"model": request.model, "created_at": created, "message": message}


def _tail(reply: Reply, usage: Usage, stamp: Stamp) -> Json:
    """Return the final fields of an answer; durations are nanoseconds."""
    return {
        "done": True,
        "done_reason": DONE_REASONS.get(reply.finish, "stop"),
        "total_duration": 10**9 + stamp.below(10**9, "total"),
        "load_duration": stamp.below(10**8, "load"),
        "prompt_eval_count": usage.input_tokens,
        "prompt_eval_duration": stamp.below(10**8, "prompt"),
        "eval_count": usage.output_tokens,
        "eval_duration": stamp.below(10**9, "eval"),
    }
