"""The interface between the server and each provider's wire format, with shared helpers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tracefork_testkit.conversation import ModelRequest
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

Json = dict[str, Any]
Headers = list[tuple[str, str]]
EVENT_STREAM = "text/event-stream; charset=utf-8"


class Dialect(Protocol):
    """Read a provider's requests and write its answers.

    Attributes:
        stream_type: the media type of a streamed answer.
    """

    stream_type: str

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a request body; raise KeyError, TypeError or ValueError if it does not fit."""

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the JSON answer."""

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield the events of the streamed answer, each for one network write."""

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return the JSON body of an error answer."""

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return the event that reports a failure in the middle of a stream."""

    def headers(self, stamp: Stamp) -> Headers:
        """Return the headers of every answer of this provider."""


# Created once: json.dumps would build an encoder for every event.
compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def encode(value: object) -> bytes:
    """Return compact JSON as bytes; lone surrogates are kept as escapes."""
    try:
        return compact(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def sse(value: object, event: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + encode(value) + b"\n\n"


def words(text: str) -> list[str]:
    """Split a text into word-sized deltas that join to the same text."""
    return re.findall(r"\s*\S+|\s+$", text)


def pieces(text: str, size: int = 12) -> list[str]:
    """Split a text into deltas of `size` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def plain(content: object) -> str:
    """Return the text of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(plain, content)))
    if isinstance(content, Mapping):
        return plain(content.get("text") or content.get("content") or "")
    return ""


def arguments_of(text: object) -> Mapping[str, object]:
    """Return tool arguments sent as JSON text; keep text that is not a JSON object."""
    if isinstance(text, Mapping):
        return text
    try:
        value = json.loads(str(text or "{}"))
    except ValueError:
        return {"": text}
    return value if isinstance(value, dict) else {"": value}


def estimate(request: ModelRequest, reply: Reply) -> Usage:
    """Return token counts proportional to the texts."""
    heard = len(request.system) + sum(
        len(turn.text) + sum(len(result.text) for result in turn.tool_results)
        for turn in request.messages
    )
    said = len(reply.text) + sum(
        len(call.name) + len(compact(dict(call.arguments))) for call in reply.tool_calls
    )
    thought = len(reply.thinking) // 4
    return Usage(8 + heard // 4, 1 + said // 4 + thought, reasoning_tokens=thought)
