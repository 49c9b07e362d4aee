"""Gemini's generateContent and streamGenerateContent, v1 and v1beta, and its embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_testkit.conversation import Message, ModelRequest, Tool, ToolCall, ToolResult
from tracefork_testkit.dialect import (
    EVENT_STREAM,
    Headers,
    Json,
    arguments_of,
    compact,
    encode,
    words,
)
from tracefork_testkit.openai_embeddings import vector
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

FINISH_REASONS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
ERROR_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Gemini:
    """Speak POST …/models/{model}:generateContent and :streamGenerateContent?alt=sse."""

    stream_type = EVENT_STREAM

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a request; the model and the streaming are in its path."""
        instruction = payload.get("systemInstruction") or payload.get("system_instruction") or {}
        declared = [
            one
            for tool in payload.get("tools") or ()
            for one in tool.get("functionDeclarations") or tool.get("function_declarations") or ()
        ]
        return ModelRequest(
            provider="gemini",
            model=_model(path),
            system=_text(instruction),
            messages=tuple(_turn(content) for content in payload["contents"]),
            tools=tuple(Tool(d["name"], _parameters(d)) for d in declared),
            stream=":streamGenerateContent" in path,
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the whole response."""
        return _response(request, _parts(reply, stamp), reply, usage, stamp)

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield partial responses; the last one carries the finish reason and full usage."""
        deltas: list[Json] = [
            {**part, "text": word}
            for part in _parts(reply, stamp)
            if "text" in part
            for word in words(part["text"]) or [""]
        ]
        deltas += [part for part in _parts(reply, stamp) if "functionCall" in part]
        for delta in deltas[:-1]:
            yield _sse(_response(request, [delta], None, Usage(usage.input_tokens, 0), stamp))
        yield _sse(_response(request, deltas[-1:], reply, usage, stamp))

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return Google's error body."""
        name = ERROR_STATUS.get(status, "UNKNOWN")
        return {"error": {"code": status, "message": message, "status": name}}

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the error as an event."""
        return _sse(self.error(503, message, stamp))

    def headers(self, stamp: Stamp) -> Headers:
        """Return the headers of Google's front end."""
        return [
            ("server", "scaffolding on HTTPServer2"),
            ("server-timing", f"gfet4t7; dur={200 + stamp.below(900, 'ms')}"),
            ("vary", "Origin"),
            ("x-content-type-options", "nosniff"),
        ]


class GeminiEmbeddings(Gemini):
    """Speak :embedContent and :batchEmbedContents."""

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode an embeddings request: one user turn for each content."""
        asked = payload.get("requests", [payload])
        return ModelRequest(
            provider="gemini.embeddings",
            model=_model(path),
            system="",
            messages=tuple(Message("user", _text(one["content"])) for one in asked),
            tools=(),
            stream=False,
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return one vector for each content."""
        first = next(iter(_list(request.payload.get("requests"))), request.payload)
        asked = first.get("outputDimensionality") if isinstance(first, dict) else None
        dimensions = asked if isinstance(asked, int) else 768
        vectors = [{"values": vector(m.text, dimensions)} for m in request.messages]
        if "requests" in request.payload:
            return {"embeddings": vectors}
        return {"embedding": vectors[0]}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _model(path: str) -> str:
    return path.split("/models/", 1)[-1].split(":", 1)[0]


def _parameters(declared: Json) -> Json:
    """Return the schema of a function, by the name that this version of the SDK gives it."""
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    found: Json = next((declared[name] for name in names if declared.get(name)), {})
    return found


def _text(content: Json | str) -> str:
    if isinstance(content, str):
        return content
    parts = content.get("parts") or ()
    return "\n".join(p["text"] for p in parts if "text" in p and not p.get("thought"))


def _turn(content: Json) -> Message:
    parts = content.get("parts") or ()
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if results:
        heard = (ToolResult(r.get("id") or r["name"], compact(r.get("response"))) for r in results)
        return Message("tool", _text(content), tool_results=tuple(heard))
    if content.get("role") == "model":
        made = (ToolCall(c["name"], arguments_of(c.get("args")), c.get("id")) for c in calls)
        return Message("assistant", _text(content), tuple(made))
    return Message("user", _text(content))


def _parts(reply: Reply, stamp: Stamp) -> list[Json]:
    parts: list[Json] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text or not reply.tool_calls:
        parts.append({"text": reply.text})
    for index, call in enumerate(reply.tool_calls):
        function: Json = {"name": call.name, "args": dict(call.arguments)}
        if call.id:
            function["id"] = call.id
        part: Json = {"functionCall": function}
        if index == 0:
            part["thoughtSignature"] = stamp.letters("thought", 40)
        parts.append(part)
    return parts


def _response(
    request: ModelRequest, parts: list[Json], reply: Reply | None, usage: Usage, stamp: Stamp
) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reply is not None:
        candidate["finishReason"] = FINISH_REASONS[reply.finish]
    counts: Json = {
        "promptTokenCount": usage.input_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input_tokens}],
    }
    if usage.output_tokens:
        counts["candidatesTokenCount"] = usage.output_tokens - usage.reasoning_tokens
    if usage.reasoning_tokens:
        counts["thoughtsTokenCount"] = usage.reasoning_tokens
    if usage.cached_tokens:
        counts["cachedContentTokenCount"] = usage.cached_tokens
    return {
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": request.model,
        "responseId": stamp.letters("response", 22),
    }


def _sse(value: Json) -> bytes:
    return b"data: " + encode(value) + b"\r\n\r\n"
