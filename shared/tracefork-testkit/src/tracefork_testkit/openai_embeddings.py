"""OpenAI's embeddings: vectors that depend on the text alone."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from hashlib import shake_256

from tracefork_testkit.conversation import Message, ModelRequest
from tracefork_testkit.dialect import EVENT_STREAM, Headers, Json
from tracefork_testkit.openai_chat import openai_error, openai_headers
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp


def vector(text: str, dimensions: int) -> list[float]:
    """Return a unit vector chosen by the hash of the text, in single precision."""
    raw = shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * dimensions)
    numbers = struct.unpack(f"<{dimensions}h", raw)
    norm = math.sqrt(sum(number * number for number in numbers)) or 1.0
    single = struct.pack(f"<{dimensions}f", *(number / norm for number in numbers))
    return list(struct.unpack(f"<{dimensions}f", single))


class OpenAIEmbeddings:
    """Speak POST /v1/embeddings."""

    stream_type = EVENT_STREAM

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode an embeddings request: one user turn for each input."""
        given = payload["input"]
        one = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
        return ModelRequest(
            provider="openai.embeddings",
            model=str(payload.get("model", "")),
            system="",
            messages=tuple(Message("user", str(text)) for text in ([given] if one else given)),
            tools=(),
            stream=False,
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return one vector for each input, as floats or in base64."""
        asked = request.payload.get("dimensions")
        large = "large" in request.model
        dimensions = asked if isinstance(asked, int) else 3072 if large else 1536
        packed = request.payload.get("encoding_format") == "base64"
        data: list[Json] = []
        for index, message in enumerate(request.messages):
            floats = vector(message.text, dimensions)
            value: object = floats
            if packed:
                value = base64.b64encode(struct.pack(f"<{dimensions}f", *floats)).decode()
            data.append({"object": "embedding", "index": index, "embedding": value})
        tokens = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.input_tokens}
        return {"object": "list", "data": data, "model": request.model, "usage": tokens}

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield nothing: embeddings do not stream."""
        return iter(())

    def error(self, status: int, message: str, stamp: Stamp) -> Json:
        """Return OpenAI's error body."""
        return openai_error(status, message)

    def error_event(self, message: str, stamp: Stamp) -> bytes:
        """Return nothing: embeddings do not stream."""
        return b""

    def headers(self, stamp: Stamp) -> Headers:
        """Return OpenAI's headers."""
        return openai_headers(stamp)
