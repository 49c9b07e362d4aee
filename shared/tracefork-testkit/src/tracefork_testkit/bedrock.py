"""Amazon Bedrock's Converse, plain and streamed.

The other operations of Bedrock are in `bedrock_invoke`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from tracefork_testkit.conversation import Message, ModelRequest, Tool, ToolCall, ToolResult
from tracefork_testkit.dialect import Headers, Json, arguments_of, compact, pieces, plain, words
from tracefork_testkit.event_stream import MEDIA_TYPE, event, exception
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
}
ERRORS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


class Bedrock:
    """What all operations of Bedrock have in common."""

    stream_type = MEDIA_TYPE

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return an error that botocore turns into an exception of that name."""
        return {"__type": ERRORS.get(status, "InternalServerException"), "message": message}

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the frame that ends a stream with an error of the model."""
        fields: Json = {"message": message, "originalStatusCode": 424}
        return exception("modelStreamErrorException", fields)

    def headers(self, stamp: Stamp) -> Headers:
        """Return the id of the request."""
        return [("x-amzn-requestid", request_id(stamp))]


class BedrockConverse(Bedrock):
    """Speak POST /model/{model}/converse and /model/{model}/converse-stream."""

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a request of Converse."""
        offered = (payload.get("toolConfig") or {}).get("tools") or ()
        return ModelRequest(
            provider="bedrock.converse",
            model=model_in(path),
            system=plain(payload.get("system")),
            messages=tuple(_turn(turn) for turn in payload["messages"]),
            tools=tuple(_tool(tool["toolSpec"]) for tool in offered if "toolSpec" in tool),
            stream=path.partition("?")[0].endswith("-stream"),
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the whole message."""
        return {
            "metrics": {"latencyMs": stamp.below(2000, "latency")},
            "output": {"message": {"content": _content(reply, stamp), "role": "assistant"}},
            "stopReason": STOP_REASONS[reply.finish],
            "usage": _usage(usage),
        }

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield a frame for each event, padded as Bedrock pads them."""

        def framed(name: str, **fields: object) -> bytes:
            padding = stamp.letters(f"p{name}{fields.get('delta')}", 12)
            return event(name, {**fields, "p": padding[: 1 + stamp.below(12, padding)]})

        yield framed("messageStart", role="assistant")
        for index, block in enumerate(_content(reply, stamp)):
            if "toolUse" in block:
                begun = {key: block["toolUse"][key] for key in ("name", "toolUseId")}
                start = {"toolUse": begun}
                yield framed("contentBlockStart", contentBlockIndex=index, start=start)
            for delta in _deltas(block):
                yield framed("contentBlockDelta", contentBlockIndex=index, delta=delta)
            yield framed("contentBlockStop", contentBlockIndex=index)
        yield framed("messageStop", stopReason=STOP_REASONS[reply.finish])
        metrics = {"latencyMs": stamp.below(2000, "latency")}
        yield framed("metadata", metrics=metrics, usage=_usage(usage))


def model_in(path: str) -> str:
    """Return the model that a path names."""
    return unquote(path.split("/model/", 1)[1].split("/", 1)[0])


def request_id(stamp: Stamp) -> str:
    """Return an id in the form of a UUID."""
    digits = stamp.seed.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def _turn(turn: Json) -> Message:
    blocks: list[Any] = turn["content"]
    calls = tuple(
        ToolCall(use["name"], arguments_of(use.get("input")), use["toolUseId"])
        for block in blocks
        if (use := block.get("toolUse"))
    )
    results = tuple(
        ToolResult(result["toolUseId"], "\n".join(map(_shown, result["content"])))
        for block in blocks
        if (result := block.get("toolResult"))
    )
    text = "\n".join(block["text"] for block in blocks if "text" in block)
    if results:
        return Message("tool", text, calls, results)
    return Message("assistant" if turn["role"] == "assistant" else "user", text, calls)


def _shown(part: Json) -> str:
    return str(part["text"]) if "text" in part else compact(part.get("json"))


def _tool(spec: Json) -> Tool:
    return Tool(spec["name"], (spec.get("inputSchema") or {}).get("json") or {})


def _content(reply: Reply, stamp: Stamp) -> list[Json]:
    blocks: list[Json] = []
    if reply.thinking:
        thought = {"text": reply.thinking, "signature": stamp.letters("signature", 40)}
        blocks.append({"reasoningContent": {"reasoningText": thought}})
    if reply.text:
        blocks.append({"text": reply.text})
    for index, call in enumerate(reply.tool_calls):
        identity = call.id or stamp.id("tooluse_", 22, part=index)
        use = {"input": dict(call.arguments), "name": call.name, "toolUseId": identity}
        blocks.append({"toolUse": use})
    return blocks


def _deltas(block: Json) -> Iterator[Json]:
    if "text" in block:
        for word in words(block["text"]):
            yield {"text": word}
    elif "toolUse" in block:
        for piece in pieces(compact(block["toolUse"]["input"])):
            yield {"toolUse": {"input": piece}}
    else:
        thought = block["reasoningContent"]["reasoningText"]
        for word in words(thought["text"]):
            yield {"reasoningContent": {"text": word}}
        yield {"reasoningContent": {"signature": thought["signature"]}}


def _usage(usage: Usage) -> Json:
    fresh = usage.input_tokens - usage.cached_tokens
    return {
        "cacheReadInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": 0,
        "inputTokens": fresh,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
    }
