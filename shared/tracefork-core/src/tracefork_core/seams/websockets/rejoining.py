"""What a fork sends again when it continues live on a websocket whose beginning was replayed.

The server of the new connection knows nothing of the recorded session. Three cases:

*Requests that stand alone.* Each `response.create` to OpenAI's Responses API carries its input. So
nothing is sent again.

*A session that was only set up*: settings, and items of the conversation. They are sent again, and
what the server answered to them is read and dropped, as the agent has it already.

*A session that a model has answered.* The answers are part of the server's state. To send the same
messages again would make other answers, and pay for them. The fork is refused, and has to begin
before the first of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tracefork_core.errors import UsageError
from tracefork_core.seams.websockets.messages import Message

_RESPONSES = "/responses"


@dataclass(slots=True)
class Sent:
    """A message of the agent, or None for the handshake, and how many `answers` it read next."""

    message: Message | None
    answers: int = 0


@dataclass(slots=True)
class Rejoining:
    """What was sent on a websocket so far. `patience` is for each answer that is dropped."""

    url: str
    patience: float = 30.0
    sent: list[Sent] = field(default_factory=lambda: [Sent(None)])

    def received(self) -> None:
        """Count an answer to the last message."""
        self.sent[-1].answers += 1

    def again(self, message: Message) -> list[Sent]:
        """Return what to send on a new connection before `message`.

        Raises:
            UsageError: the server cannot be brought to the same place.
        """
        earlier = [sent.message for sent in self.sent if sent.message is not None]
        if all(map(self._stands_alone, [*earlier, message])):
            return []
        if (first := next((it for it in earlier if not _sets_up(it)), None)) is None:
            return self.sent
        url = self.url.partition("?")[0]
        raise UsageError(
            f"tracefork: the fork cannot continue live on {url}: its session holds what the server "
            f"answered to {_name(first)}, and a new connection would not. Fork at that message or "
            "before it."
        )

    def _stands_alone(self, message: Message) -> bool:
        is_responses = urlsplit(self.url).path.endswith(_RESPONSES)
        return is_responses and _document(message).get("type") == "response.create"


def _sets_up(message: Message) -> bool:
    from tracefork_core.providers.realtime import sets_up  # Takes long to load; only forks need it.

    return sets_up(_document(message))


def _name(message: Message) -> str:
    document = _document(message)
    kind = document.get("type") or next(iter(document), None)
    return f"its message {kind!s:.60}" if kind else "a message of the agent"


def _document(message: Message) -> dict[str, Any]:
    try:
        document = json.loads(message.data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
