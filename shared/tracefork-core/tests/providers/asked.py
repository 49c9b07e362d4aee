"""Requests as a seam sees them, one for each wire format and endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tracefork_core.providers import Answer, ModelCall, decode

USER = {"role": "user", "content": "hi"}


@dataclass(frozen=True)
class Ask:
    """One request."""

    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    method: str = "POST"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def but(self, **fields: Any) -> Ask:
        """Return this request with other fields in its body."""
        return Ask(self.url, json.dumps(self.json | fields).encode())

    def read(self, answer: Answer) -> ModelCall:
        """Decode an answer to this request."""
        asked = (self.method, self.url, self.headers, self.body)
        call = decode(*asked, answer.status, answer.headers, answer.body)
        assert call is not None
        return call


def asks(url: str, **body: Any) -> Ask:
    """Return a request to a URL with these fields in its body."""
    return Ask(url, json.dumps(body).encode())


CHAT = asks("https://api.openai.com/v1/chat/completions", model="gpt-5", messages=[USER])
AZURE = asks(
    "https://x.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-12-01",
    messages=[USER],
)
LOCAL = asks("http://localhost:11434/v1/chat/completions", model="llama", messages=[USER])
RESPONSES = asks("https://api.openai.com/v1/responses", model="gpt-5", input="hi")
MESSAGES = asks(
    "https://api.anthropic.com/v1/messages", model="claude-x", max_tokens=9, messages=[USER]
)
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro"
_VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers"
GEMINI = asks(f"{_GEMINI}:generateContent", contents=CONTENTS)
EMBEDDINGS = asks("https://api.openai.com/v1/embeddings", model="e", input="hi")

WAYS = {
    "chat": CHAT,
    "chat-stream": CHAT.but(stream=True),
    "chat-stream-usage": CHAT.but(stream=True, stream_options={"include_usage": True}),
    "chat-stream-choices": CHAT.but(n=3, stream=True),
    "azure": AZURE,
    "azure-stream": AZURE.but(stream=True),
    "local-stream": LOCAL.but(stream=True),
    "responses": RESPONSES,
    "responses-stream": RESPONSES.but(stream=True),
    "messages": MESSAGES,
    "messages-stream": MESSAGES.but(stream=True),
    "messages-vertex": asks(
        f"{_VERTEX}/anthropic/models/c@1:rawPredict",
        anthropic_version="vertex-2023-10-16",
        max_tokens=9,
        messages=[USER],
    ),
    "gemini": GEMINI,
    "gemini-events": Ask(f"{_GEMINI}:streamGenerateContent?alt=sse", GEMINI.body),
    "gemini-array": Ask(f"{_GEMINI}:streamGenerateContent", GEMINI.body),
    "gemini-vertex": Ask(f"{_VERTEX}/google/models/gemini-3-pro:generateContent", GEMINI.body),
}
TOOL_REASONS = {
    "openai.chat_completions": "tool_calls",
    "openai.responses": "completed",
    "anthropic.messages": "tool_use",
    "gemini": "STOP",
}
TEXT_REASONS = {
    "openai.chat_completions": "stop",
    "openai.responses": "completed",
    "anthropic.messages": "end_turn",
    "gemini": "STOP",
}
EVERY_WAY = sorted(WAYS)
