"""An Anthropic client that is answered in the process, and the agent that uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import anthropic
    import httpx2

Say = Callable[[int], str]
"""Returns the answer of a step."""


def client(say: Say) -> anthropic.Anthropic:
    """Return a client that is answered by a function."""
    import anthropic
    import httpx2

    http = httpx2.Client(transport=transport(say))
    return anthropic.Anthropic(api_key="none", http_client=http)


def transport(say: Say) -> httpx2.BaseTransport:
    """Return a transport that answers; the step is the number of questions so far."""
    import httpx2

    def answer(request: httpx2.Request) -> httpx2.Response:
        step = request.content.count(b'"role":"user"') - 1
        kind = {"content-type": "application/json"}
        return httpx2.Response(200, headers=kind, content=body(say(step)))

    return httpx2.MockTransport(answer)


def body(text: str) -> bytes:
    """Return an answer in the provider's format."""
    message = {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return json.dumps(message).encode()


def converse(asked: anthropic.Anthropic, texts: Sequence[str]) -> str:
    """Send one text after another, each with all before it, and return the last answer."""
    messages: list[Any] = []
    for text in texts:
        messages.append({"role": "user", "content": text})
        said: Any = asked.messages.create(model="claude", max_tokens=99, messages=messages)
        messages.append({"role": "assistant", "content": said.content[0].text})
    return str(messages[-1]["content"])
