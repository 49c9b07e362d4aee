"""Decode a request, to make an answer to it or to edit it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.decode import decode
from tracefork_core.providers.formats import Asked
from tracefork_core.providers.wire import Wire, read_wire

MESSAGES = {
    "openai.chat_completions": ("messages", "content"),
    "openai.responses": ("input", "content"),
    "anthropic.messages": ("messages", "content"),
    "gemini": ("contents", "parts"),
}
"""By format: the field of a request that holds its messages, and of a message its content."""


@dataclass(frozen=True, slots=True)
class Question:
    """A model call without its answer."""

    method: str
    url: str
    wire: Wire
    call: ModelCall

    @property
    def streams(self) -> bool:
        """Whether the client expects a stream."""
        return self.call.stream or self.wire.path.endswith(":streamRawPredict")

    @property
    def wants_events(self) -> bool:
        """Whether Gemini's stream is server-sent events; without `alt=sse` it is a JSON array."""
        return any(
            key in ("alt", "$alt") and value == "sse"
            for key, value in parse_qsl(urlsplit(self.url).query)
        )

    @property
    def place(self) -> str:
        """The request as error messages name it: without the query, which may contain keys."""
        return f"{self.method} {self.wire.host}{self.wire.path}"


def read_question(request: Asked) -> Question:
    """Decode a request.

    Raises:
        UsageError: It is not a model call in a known format.
    """
    asked = (request.method, request.url, request.headers, request.body)
    wire = read_wire(request.url, request.headers, request.body, None, (), b"")
    call = decode(*asked, None, (), b"")
    if wire is None or call is None:
        place = f"{wire.host}{wire.path}" if wire else "an invalid URL"
        raise UsageError(
            f"{request.method} {place} is not a model call in a known format (OpenAI chat"
            " completions, responses and embeddings, Anthropic messages, Gemini)."
            " Give the bytes of the whole answer or request instead"
        )
    return Question(request.method, request.url, wire, call)
