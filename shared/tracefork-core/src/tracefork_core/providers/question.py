"""A request read for what it asks: all that an answer to it, or an edit of it, goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.decode import decode
from tracefork_core.providers.wire import Headers, Wire, read_wire

MESSAGES = {
    "openai.chat_completions": ("messages", "content"),
    "openai.responses": ("input", "content"),
    "anthropic.messages": ("messages", "content"),
    "gemini": ("contents", "parts"),
}
"""Where a request of each format has its messages, and each message what it says."""


class Asked(Protocol):
    """A request as it leaves the process."""

    @property
    def method(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Question:
    """Hold a model call that has no answer yet."""

    url: str
    wire: Wire
    call: ModelCall

    @property
    def streams(self) -> bool:
        """Tell whether the caller waits for a stream."""
        return self.call.stream or self.wire.path.endswith(":streamRawPredict")

    @property
    def wants_events(self) -> bool:
        """Tell whether a stream of Gemini's is to be events; without `alt=sse` it is an array."""
        return any(
            key in ("alt", "$alt") and value == "sse"
            for key, value in parse_qsl(urlsplit(self.url).query)
        )

    @property
    def place(self) -> str:
        """Name the request in a message, without the query, where keys may be."""
        return f"POST {self.wire.host}{self.wire.path}"


def read_question(request: Asked) -> Question:
    """Read a request; UsageError where it is no model call in a known format."""
    asked = (request.method, request.url, request.headers, request.body)
    wire = read_wire(request.url, request.headers, request.body, None, (), b"")
    call = decode(*asked, None, (), b"")
    if wire is None or call is None:
        place = f"{wire.host}{wire.path}" if wire else "an address that cannot be read"
        raise UsageError(
            f"{request.method} {place} is not a model call in a format known here (OpenAI chat"
            " completions, responses and embeddings, Anthropic messages, Gemini):"
            " give the whole bytes of the answer or of the request instead"
        )
    return Question(request.url, wire, call)
